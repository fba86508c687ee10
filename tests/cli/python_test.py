"""The Python module gives what the program prints, leaves the process as it was, and keeps up with `sim batch`."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from sim_case import ROOT, SMALL, SimTestCase, without_clock

MODULE = pathlib.Path(os.environ["SIM"]).resolve().parent / "python"
SWEEP = {"base": {key: value for key, value in SMALL.items() if key != "params"}, "axes": {"params.chunks": [1, 2, 4], "schedule": ["serial", "hetero_fused_1d"]}}
CASES = ROOT / "traces/h200_2/pytorch/operators.cases.jsonl"


@unittest.skipUnless(list(MODULE.glob("_overlap*.so")), "the Python module was not built (python3-dev, pybind11-dev)")
class PythonModule(SimTestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.pop("OVERLAP_CONFIGS", None)
        sys.path.insert(0, str(MODULE))
        global overlap
        import overlap

    def python(self, code):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(MODULE)}, cwd=self.folder,
                              capture_output=True, encoding="utf-8", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_results_are_those_of_the_program(self):
        self.file("run.json", SMALL)
        self.assertEqual(without_clock(overlap.run(SMALL)), without_clock(self.result("--config", "run.json")))
        self.assertEqual(overlap.__version__, self.output("--version").strip())
        pair = {"topology": "h200_2", "workload": SMALL["workload"]}
        self.file("pair.json", pair["workload"])
        advice = overlap.advise(pair, top=1, agents=["cu"], kernels="library")
        printed = json.loads(self.output("advise", "--topology", "h200_2", "--workload", "pair.json", "--top", "1", "--agent",
                                         "cu", "--kernels", "library", "--format", "json"))
        for one in (advice, printed):
            one["best"] = [without_clock(run) for run in one["best"]]
        self.assertEqual(advice, printed)
        listed = overlap.advise({"topology": "h200_2", "workload": "llama3_70b_mlp_layer"}, top=1)["pairs"]
        printed = json.loads(self.output("advise", "--topology", "h200_2", "--workload", "llama3_70b_mlp_layer", "--top", "1", "--format", "json"))["pairs"]
        for one in (listed, printed):
            one["run"] = without_clock(one["run"])
        self.assertEqual(listed, printed)
        self.assertEqual([one["pair"] for one in listed["choices"]], ["ag > gate_up", "down > rs"])
        self.assertLess(abs(overlap.run(listed["run"]["config"])["makespan_us"] / listed["makespan_us"] - 1), 1e-9)
        cases = self.file("few.jsonl", "".join(CASES.read_text(encoding="utf-8").splitlines(keepends=True)[:3]))
        printed = json.loads(self.output("compare", cases, "--format", "json"))
        compared = overlap.compare(str(self.folder / cases))
        self.assertEqual(len(compared["cases"]), len(printed["cases"]))
        self.assertEqual([one["error"] for one in compared["cases"]], [one["error"] for one in printed["cases"]])
        self.assertEqual(compared["all"], printed["all"])

    def test_a_sweep_is_columns(self):
        columns = overlap.sweep(SWEEP)
        self.file("sweep.json", {"schema": 1, "name": "sweep", **SWEEP})
        self.output("sweep", "sweep.json", "--out", "out")
        with open(self.folder / "out" / "points.csv", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        self.assertEqual(list(columns), header)
        self.assertEqual([len(column) for column in columns.values()], [len(rows)] * len(header))
        place = header.index("makespan_us")
        self.assertEqual(columns["makespan_us"], [float(row[place]) for row in rows])
        self.assertEqual(set(columns["error"]), {None})
        try:
            import pandas
        except ImportError:
            return
        self.assertEqual(pandas.DataFrame(columns).shape, (len(rows), len(header)))

    def test_mistakes_are_one_line(self):
        self.assertTrue(issubclass(overlap.UserError, ValueError))
        for call, line in ((lambda: overlap.run({**SMALL, "topology": "h200_5"}), self.sim("--topology", "h200_5", "--schedule",
                                                                                          "serial").stderr),
                           (lambda: overlap.compare("nowhere"), self.sim("compare", "nowhere").stderr)):
            with self.assertRaises(overlap.UserError) as caught:
                call()
            self.assertEqual(f"sim: {caught.exception}\n", line)
        for call in (lambda: overlap.run([]), lambda: overlap.run({"topologie": 1}), lambda: overlap.sweep({"axes": {}}),
                     lambda: overlap.sweep("nothing"), lambda: overlap.advise({"topology": "h200_1"}),
                     lambda: overlap.advise(SMALL, top=0), lambda: overlap.advise(SMALL, agents=["gpu"])):
            with self.assertRaisesRegex(overlap.UserError, r"\A[^\n]+\Z"):
                call()

    def test_a_file_of_the_caller_is_read_again(self):
        workload = str(self.folder / self.file("pair.json", SMALL["workload"]))
        first = overlap.run({**SMALL, "workload": workload})
        self.file("pair.json", json.dumps(SMALL["workload"]).replace("4096", "8192"))
        self.assertGreater(overlap.run({**SMALL, "workload": workload})["makespan_us"], first["makespan_us"])

    def test_threads_run_beside_each_other(self):
        expected = without_clock(overlap.run(SMALL))
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: without_clock(overlap.run(SMALL)), range(32)))
        self.assertEqual(results, [expected] * 32)
        # While a call works, Python goes on: with the lock held, one gap would be the whole call.
        seconds = []

        def work():
            begin = time.perf_counter()
            overlap.sweep({"base": {**SMALL, "seeds": 15}, "axes": {"workload.gemm.m": {"from": 4096, "to": 12288, "by": 16}}})
            seconds.append(time.perf_counter() - begin)
        thread = threading.Thread(target=work)
        thread.start()
        last = time.perf_counter()
        largest = 0
        while thread.is_alive():
            time.sleep(0.001)
            now = time.perf_counter()
            largest, last = max(largest, now - last), now
        self.assertGreater(seconds[0], 0.1)
        self.assertLess(largest, seconds[0] / 2)

    def test_import_leaves_the_process_alone(self):
        maps = self.python("import overlap; print(open('/proc/self/maps').read())")
        self.assertIn("_overlap", maps)
        for library in ("libmpi", "simgrid", "libns3"):
            self.assertNotIn(library, maps)
        self.assertEqual(self.python(f"""import overlap, ctypes
overlap.run({{**{SMALL!r}, "engine": "simgrid"}})
print(hasattr(ctypes.CDLL(None), "MPI_Init"))""").strip(), "False")  # SimGrid's is not for the process

    def test_keeps_up_with_batch(self):
        configs = [{"topology": "mi300x_8", "schedule": "ring_chunked", "params": {"chunks": 8},
                    "workload": {"collective": "all_gather", "gemm": {"m": 8192 + 512 * i, "n": 1024, "k": 2048, "dtype": "bf16"}}}
                   for i in range(300)]
        self.file("batch.jsonl", "".join(json.dumps(config) + "\n" for config in configs))

        def of_batch():
            before = os.times()
            lines = self.output("batch", "batch.jsonl").splitlines()
            after = os.times()
            return [json.loads(line)["makespan_us"] for line in lines], after[2] + after[3] - before[2] - before[3]

        def of_module():
            begin = time.process_time()
            makespans = [overlap.run(config)["makespan_us"] for config in configs]
            return makespans, time.process_time() - begin
        ratios = []
        for _ in range(3):
            (expected, batch), (makespans, module) = of_batch(), of_module()
            self.assertEqual(makespans, expected)
            ratios.append(module / batch)
        self.assertLess(min(ratios), 1.4)  # 1.10 to 1.20, measured over 1,000 runs

    def test_the_example_runs(self):
        example = (ROOT / "sim/python/example.py").read_text(encoding="utf-8")
        said = self.python(example).splitlines()
        self.assertRegex(said[0], r"^shard_p2p: \d+ us")
        self.assertEqual(len([line for line in said if line.startswith("m=")]), 6)
        self.assertIn("did you mean", said[-1])
