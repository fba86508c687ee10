"""What scripts/measure_pytorch needs no GPU for: lists of drawn cases, and the host file of measured calls."""
import json
import subprocess
import sys

from sim_case import ROOT, SimTestCase

sys.path.insert(0, str(ROOT / "models/calibration"))
from pytorch import cases, host  # noqa: E402

CALLS = {"gemm": 10, "kernel": 5, "copy": 6, "all_gather": 20, "event_record": 1, "event_wait": 2, "enter_stream": 8}
MACHINE = {"kind": "machine", "device": "NVIDIA H200", "pytorch": "2.11.0", "date": "2026-11-25", "command": "measured"}


class PytorchLists(SimTestCase):
    def drawn(self, seed):
        file = self.folder / f"{seed}.jsonl"
        subprocess.run([ROOT / "scripts/measure_pytorch", file, "--drawn", str(seed), "--list", "h200_2"], check=True)
        return file.read_text(encoding="utf-8")

    def test_a_seed_draws_the_same_cases_and_all_are_predicted(self):
        lines = self.drawn(1).splitlines()
        self.assertEqual(lines, self.drawn(1).splitlines())
        self.assertNotEqual(lines, self.drawn(2).splitlines())
        results = [json.loads(line) for line in self.output("batch", "1.jsonl").splitlines()]
        # 10 operators: 2 pairs, 2 libraries, eager and graph; 16 of generation by 2; 8 blocks: MLP and layer, 3 links; 8 iterations.
        self.assertEqual(len(results), 10 * 8 + 16 * 2 + 8 * 6 + 8)
        self.assertTrue(all(one["makespan_us"] > 0 for one in results))

    def test_a_topology_without_its_gpus_is_refused_in_a_line(self):
        done = subprocess.run([ROOT / "scripts/measure_pytorch", self.folder / "x", "--drawn", "1", "--list", "h200"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--list: is 'h200' (expected the name of a topology", done.stderr)

    def test_turns_of_an_operator_are_runs_of_one_case(self):
        row = {"kind": "operator", "operator": "all_gather_gemm_async_tp", "m": 512, "n": 256, "k": 256, "ranks": 2, "state": "steady"}
        turns = [row | {"mode": "eager", "median_us": max(samples), "samples_us": samples} for samples in ([200, 210], [400, 410], [190, 220])]
        found = list(cases.cases(MACHINE, [turns[0], row | {"mode": "graph", "median_us": 90}, *turns[1:]]))
        self.assertEqual([case["makespan_us"] for case in found], [205, 90])  # of 190, 200, 210, 220
        self.assertEqual([len(case["runs"]) for case in found], [2, 1])
        (self.folder / "turns.jsonl").write_text("\n".join(map(json.dumps, [{"schema": 1} | MACHINE, *found])), encoding="utf-8")
        compared = json.loads(self.output("compare", "turns.jsonl", "--format", "json"))
        self.assertEqual([round(one["measured_us"], 9) for one in compared["cases"]], [205, 90])
        self.assertAlmostEqual(compared["cases"][0]["measured_spread"], 0)  # both runs' medians are 205

    def test_recorded_rows_give_the_shipped_cases(self):
        files = [file for file in sorted((ROOT / "traces").rglob("*.cases.jsonl"))
                 if file.with_name(file.name.replace(".cases", "")).exists()]
        self.assertGreater(len(files), 15)
        for file in files:
            with self.subTest(file=file.relative_to(ROOT)):
                rows = file.with_name(file.name.replace(".cases", "")).read_text(encoding="utf-8").splitlines()
                shipped = file.read_text(encoding="utf-8").splitlines()[1:]
                self.assertEqual([(one["scenario"], one["makespan_us"]) for one in cases.cases(*self.machine_and(rows))],
                                 [(one["scenario"], one["makespan_us"]) for one in map(json.loads, shipped)])

    @staticmethod
    def machine_and(lines):
        machine, *rows = map(json.loads, lines)
        return machine, rows

    def test_an_operator_takes_its_calls_and_a_rest(self):
        rows = [{"kind": "host_call", "call": call, "host_us": us} for call, us in CALLS.items()]
        self.assertIsNone(host.host_of(MACHINE, rows[:-1]))
        self.assertNotIn("operators_us", host.host_of(MACHINE, rows))
        rows += [{"kind": "host_operator", "operator": "all_gather_gemm_async_tp", "ranks": 2, "host_us": 150, "loops_us": loops}
                 for loops in ([190, 210], [320])]
        rows += [{"kind": "host_operator", "operator": "gemm_reduce_scatter_async_tp", "ranks": 4, "host_us": 50}]
        written = host.host_of(MACHINE, rows)
        # 2 GEMMs, 3 kernels, 3 copies, 2 events, 2 waits, 2 changes of the stream: 20 + 15 + 18 + 2 + 4 + 16 = 75.
        self.assertEqual(written["operators_us"]["async_tp_all_gather"]["value"], 125)
        self.assertEqual(written["operators_us"]["async_tp_reduce_scatter"]["value"], 0)  # its calls alone take 146
        run = {"topology": "h200_2", "schedule": "async_tp", "host": str(self.file("mine.json", written)),
               "workload": {"collective": "all_gather", "gemm": {"m": 512, "n": 256, "k": 256, "dtype": "bf16"}}}
        self.assertGreater(self.result("--config", self.file("run.json", run))["makespan_us"], 200)
