"""The same bytes from every compiler, run and process: the simulator under test against one built by clang++.

Exit 77, with the reason, where clang++ is not installed. Only the engine's own time, wall_ms, may differ.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from sim_case import ROOT, SimTestCase

CLANG = "clang++-19"
# Full mesh, switch with unspecified orders (seeds), unequal links with multi-hop routes, torus, nodes with NICs.
TOPOLOGIES = ["mi300x_8", "h200_4", "mi250x_8", "torus_4x4", "mi300x_16", "h100_8"]
ON_TORUS = ["serial", "shard_p2p", "ring_chunked", "hetero_fused_1d"]  # the others take half a second each
WORKLOADS = ["llama3_70b_gate_up_forward", "llama3_70b_down_forward", "mixtral_8x7b_combine", "llama3_70b_qkv_wgrad",
             "llama3_70b_independent", "llama3_70b_mlp_layer"]


class CompilersAgree(SimTestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([ROOT / "scripts" / "build", "clang", "sim"], check=True)
        cls.programs = [os.environ["SIM"], str(ROOT / "build" / "clang" / "sim")]

    def schedules(self):
        names = re.findall(r"^  (\w+)", self.output("list", "schedules"), re.M)
        self.assertIn("hetero_fused_1d", names)
        return names

    def batch(self):
        """Run configs that succeed, one a line: every schedule, topology and workload are among them."""
        cases = [{"topology": topology, "schedule": schedule, "workload": workload, "params": params}
                 for topology in TOPOLOGIES
                 for schedule in (ON_TORUS if topology == "torus_4x4" else self.schedules())
                 for workload in (WORKLOADS if topology == "mi300x_8" else WORKLOADS[:2])
                 for params in ({}, {"agent": "cu"}) if topology in ("mi300x_8", "h200_4") or not params]
        cases += [{"topology": "mi300x_64_fat_tree", "schedule": "hierarchical_chunked", "params": {"chunks": 2}}]
        self.file("all.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
        answers = self.sim("batch", "all.jsonl").stdout.splitlines()
        good = [case for case, answer in zip(cases, answers, strict=True) if "error" not in json.loads(answer)]
        self.assertGreater(len(good), 150)
        for key, names in (("schedule", self.schedules()), ("topology", TOPOLOGIES), ("workload", WORKLOADS)):
            self.assertLessEqual(set(names), {case.get(key) for case in good})
        return self.file("good.jsonl", "".join(json.dumps(case) + "\n" for case in good))

    def outputs(self, programs, *args):
        """Standard output of all `programs`, run at the same time."""
        running = [subprocess.Popen([program, *args], cwd=self.folder, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, encoding="utf-8") for program in programs]
        results = [process.communicate(timeout=600)[0] for process in running]
        self.assertEqual([process.returncode for process in running], [0] * len(programs))
        return [re.sub(r'"wall_ms":[^,}]+', "", result) for result in results]

    def test_the_same_results(self):
        batch = self.batch()
        alone = self.outputs(self.programs[:1], "batch", batch)[0].splitlines()
        for output in self.outputs(self.programs * 2, "batch", batch):
            for first, second in zip(alone, output.splitlines(), strict=True):
                self.assertEqual(first, second)

    def test_the_same_traces(self):
        for topology in ("h200_4", "mi250x_8"):
            for program, name in zip(self.programs, ("one", "other"), strict=True):
                self.outputs([program], "--topology", topology, "--schedule", "hetero_fused_1d",
                             "--trace", name, "--format", "json")
            one, other = ((self.folder / name).read_bytes() for name in ("one", "other"))
            self.assertIn(b"traceEvents", one)
            self.assertEqual(one, other)

    def test_the_same_costs(self):
        for args in (["--device", "h200", "--gemm", "8192x2560x8192"], ["--device", "mi300x", "--copy", "64MB"]):
            one, other = self.outputs(self.programs, "cost", *args)
            self.assertIn("us", one)
            self.assertEqual(one, other)


if __name__ == "__main__":
    if shutil.which(CLANG) is None:
        print(f"skipped: no {CLANG}; scripts/setup --all installs it")
        sys.exit(77)
    unittest.main()
