"""Inputs as people have them: pipes, compressed cases, files of other programs, machines of their own."""
import gzip
import json
import os
import subprocess
import threading
import unittest

from sim_case import ROOT, SimTestCase

RUN = {"topology": "mi300x_8", "schedule": "serial", "workload": "llama3_70b_gate_up_forward"}


class Inputs(SimTestCase):
    def piped(self, text, *args):
        """What the program prints if its argument PIPE is a pipe out of which `text` comes."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=[text])
        writer.start()
        try:
            return self.output(*[str(pipe) if arg == "PIPE" else arg for arg in args])
        finally:
            writer.join()
            pipe.unlink()

    def test_a_pipe_is_a_file(self):
        config = json.dumps(RUN)
        expected = self.result("--config", self.file("run.json", RUN))["makespan_us"]
        self.assertEqual(json.loads(self.piped(config, "--config", "PIPE", "--format", "json"))["makespan_us"], expected)
        topology = (ROOT / "configs" / "topologies" / "h200_4.json").read_text(encoding="utf-8")
        by_name = self.result("--topology", "h200_4", "--schedule", "serial")["makespan_us"]
        text = self.piped(topology, "--topology", "PIPE", "--schedule", "serial", "--format", "json")
        self.assertEqual(json.loads(text)["makespan_us"], by_name)
        self.assertIn("(topology)", self.piped(topology, "explain", "PIPE"))
        through_shell = subprocess.run(["bash", "-c", f"{os.environ['SIM']} --config <(cat) --format json"], input=config,
                                       capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(through_shell.stdout)["makespan_us"], expected)

    def test_a_sweep_vouches_for_no_pipe(self):
        pipe = self.folder / "machine.json"
        os.mkfifo(pipe)
        sweep = self.file("sweep.json", {"schema": 1, "name": "sweep", "base": RUN, "axes": {"topology": [str(pipe)]}})
        self.assert_refused(["sweep", sweep, "--out", "out"], "is a pipe, whose content a sweep can't vouch for")

    def test_patterns_and_chakra_traces_are_found_beside_a_sweep(self):
        (self.folder / "deep").mkdir()
        for name in ("one", "two"):
            self.file(f"deep/pair_{name}.json", (ROOT / "configs" / "workloads" / "ficco_g2.json").read_text(encoding="utf-8"))
        self.output("chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "4", "--out", "deep/layer")
        base = {"topology": "h200_4", "schedule": "serial"}
        for name, axis, points in (("a", {"files": "pair_*"}, 2), ("b", ["layer"], 1), ("c", {"files": "ficco_g1*"}, 8)):
            self.file(f"deep/{name}.json", {"schema": 1, "name": name, "base": base, "axes": {"workload": axis}})
            self.output("sweep", f"deep/{name}.json", "--out", name)
            rows = [json.loads(line) for line in (self.folder / name / "points.jsonl").read_text(encoding="utf-8").splitlines()]
            self.assertEqual((len(rows), [row.get("error") for row in rows]), (points, points * [None]))

    def test_compressed_cases_of_a_folder_are_compared(self):
        lines = (ROOT / "traces/h200_2/drawn/list_1.cases.jsonl").read_text(encoding="utf-8")
        (self.folder / "plain").mkdir()
        (self.folder / "plain" / "a.jsonl").write_text(lines, encoding="utf-8")
        (self.folder / "small").mkdir()
        (self.folder / "small" / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        plain, small = (self.result("compare", folder) for folder in ("plain", "small"))
        self.assertGreater(plain["all"]["count"], 0)
        self.assertEqual(plain["all"], small["all"])

    def test_cases_come_through_a_pipe(self):
        lines = (ROOT / "traces/h200_2/drawn/list_1.cases.jsonl").read_text(encoding="utf-8")
        (self.folder / "a.jsonl").write_text(lines, encoding="utf-8")
        for text in (lines, lines.splitlines()[-1]):
            self.file("a.jsonl", text)
            self.assertEqual(json.loads(self.piped(text, "compare", "PIPE", "--format", "json"))["all"], self.result("compare", "a.jsonl")["all"])

    def test_a_trace_is_sent_to_import(self):
        (self.folder / "x_kernel_trace.csv").write_text("Kind,Kernel_Name\n", encoding="utf-8")
        self.assert_refused(["compare", "x_kernel_trace.csv"],
                            "x_kernel_trace.csv: is named .csv, expected a measured case (.json, .jsonl or .jsonl.gz); "
                            "of a trace, sim import x_kernel_trace.csv --out CASE.json makes one")

    def test_a_trace_says_what_made_it(self):
        self.output("--topology", "mi300x_8", "--schedule", "serial", "--trace", "t.json")
        other = json.loads((self.folder / "t.json").read_text(encoding="utf-8"))["otherData"]
        self.assertEqual(other["command"], "sim --topology mi300x_8 --schedule serial --trace t.json")
        self.assertEqual(other["config"]["schedule"], "serial")
        self.assertRegex(other["version"], r"^\d+\.\d+\.\d+$")


class Islands(SimTestCase):
    """Two islands of four GPUs, with links between them that are slower than those within."""

    def machine(self, device, slow, across):
        within = [[a, b] for first in (0, 4) for a in range(first, first + 4) for b in range(a + 1, first + 4)]
        links = [{"type": "links", "pairs": pairs, "latency_us": {"value": 0.5, "source": "estimate: a test"},
                  "bandwidth_GBps": {"value": rate, "source": "estimate: a test"}}
                 for pairs, rate in ((within, 46.5), (across, slow))]
        return self.file("islands.json", {"schema": 1, "name": "islands", "description": "Two islands of four GPUs.",
                                          "device": str(ROOT / "configs" / "devices" / f"{device}.json"), "nodes": 1,
                                          "gpus_per_node": 8, "fabric": links})

    def test_the_default_is_what_ends_first(self):
        one_way = [[a, a + 4] for a in range(4)]  # a slow link a GPU, which all that crosses shares
        own_ways = [[a, b] for a in range(4) for b in range(4, 8)]  # a slow link a pair
        for device in ("h200", "mi300x"):
            for across in (one_way, own_ways):
                for slow in (46.5, 37.2, 31, 23.25, 12, 6):
                    for agent in ("dma", "cu"):
                        with self.subTest(device=device, links=len(across), slow=slow, agent=agent):
                            run = ["--topology", self.machine(device, slow, across), "--schedule", "serial", "--gemm", "8192x2560x8192",
                                   "--set", f"agent={agent}"]
                            times = [self.result(*run, *more)["comm_us"] for more in
                                     ([], ["--set", "algorithm=direct"], ["--set", "algorithm=hierarchical"])]
                            self.assertAlmostEqual(times[0], min(times), delta=0.02 * times[0])

    def test_slow_links_are_crossed_once(self):
        # Each of 8 shards of 8192 x 8192 / 8 numbers of 2 bytes goes once to the other island, instead of to each of its GPUs.
        shard = 8192 * 8192 * 2 // 8
        run = ["--topology", self.machine("h200", 12, [[a, a + 4] for a in range(4)]), "--schedule", "serial", "--gemm", "8192x2560x8192"]
        for more, times in (([], 1), (["--set", "algorithm=direct"], 4)):
            self.output(*run, *more, "--trace", "t.json")
            events = json.loads((self.folder / "t.json").read_text(encoding="utf-8"))["traceEvents"]
            copies = [event["args"] for event in events if event["ph"] == "X" and event["pid"] < 8 and "destination" in event.get("args", {})]
            island = lambda name: int(name.split()[1]) // 4
            sent = sum(one["bytes"] for one in copies if island(one["source"]) != island(one["destination"]))
            self.assertEqual(sent, times * 8 * shard)


if __name__ == "__main__":
    unittest.main()
