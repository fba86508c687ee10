"""sim sweep: which points it runs, what it writes, and that nothing is lost or doubled whatever ends it."""
import csv
import json
import os
import shutil
import signal
import subprocess
import time

from sim_case import PAIR, ROOT, SimTestCase

GEMM = {"collective": "all_gather", "gemm": {"m": 4096, "n": 1024, "k": 2048, "dtype": "bf16"}}
BASE = {"topology": "h200_4.json", "schedule": "hetero_fused_1d", "seeds": 1, "workload": GEMM}
# 48 points of some 10 ms each, because orders are drawn on h200_8: a signal comes before the last point is done.
SLOW = {"schema": 1, "name": "slow", "base": {"topology": "h200_8", "schedule": "hetero_unfused_1d"},
        "axes": {"workload": ["ficco_g2", "ficco_g5", "ficco_g9", "llama3_70b_down_forward"],
                 "params.chunks": [2, 3, 4, 6, 8, 12], "params.agent": ["dma", "cu"]}}


class Sweeping:
    """What the test cases below share."""

    def sweep(self, content, *args, out="out"):
        """Rows of points.csv after a whole sweep."""
        self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE, **content})
        self.output("sweep", "sweep.json", "--out", out, *args)
        return self.rows(out)

    def rows(self, out="out"):
        with open(self.folder / out / "points.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def lines(self, out="out"):
        text = (self.folder / out / "points.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def results(self, out):
        """The bytes of both files."""
        return tuple((self.folder / out / name).read_bytes() for name in ("points.csv", "points.jsonl"))


class SweepPoints(Sweeping, SimTestCase):
    def test_every_combination_the_last_axis_fastest(self):
        rows = self.sweep({"axes": {"params.agent": ["dma", "cu"], "params.chunks": [1, 2, 4]}})
        self.assertEqual([(row["point"], row["agent"], row["chunks"]) for row in rows],
                         [("0", "dma", "1"), ("1", "dma", "2"), ("2", "dma", "4"),
                          ("3", "cu", "1"), ("4", "cu", "2"), ("5", "cu", "4")])

    def test_every_axis_has_a_column(self):
        axes = {"host": ["benchmark", "threads"], "repeat": ["once", "steady"], "params.comm_shape": ["1d", "2d"]}
        base = {**BASE, "topology": "h200_8", "schedule": "ficco", "params": {}}
        rows = self.sweep({"base": base, "axes": axes})
        self.assertEqual([(row["host"], row["repeat"], row["comm_shape"]) for row in rows],
                         [(host, repeat, shape) for host in axes["host"] for repeat in axes["repeat"] for shape in ("1d", "2d")])
        self.output("report", "out")
        page = (self.folder / "out" / "report.html").read_text(encoding="utf-8")
        self.assertRegex(page, "comm_shape [12]d")  # the best of a scenario
        self.assertNotIn("point 4<", page)
        if shutil.which("gnuplot"):
            for name in ("comm_shape", "params.comm_shape"):
                self.output("report", "out", "--plot", "map.svg", "--x", name, "--y", "host")

    def test_every_field_has_a_column(self):
        """Whatever can be swept: no parameter and no key is lost."""
        fields = {name: prefix + name for prefix, names in (("params.", ("comm_shape", "uniformity", "granularity", "dma_commands", "prelaunch", "gemm_cus", "algorithm", "channels", "copy_priority")), ("workload.", ("tokens", "tp", "phase")),
                                                             ("", ("without", "cost_models", "schedules", "seeds", "engine")))
                  for name in names}
        self.assertGreater(len(fields), 15)
        known = self.output(*PAIR, "--format", "csv").splitlines()[0].split(",")
        self.assertEqual([name for name in ("chunks", "agent", "engine", "seeds") if name not in known], [])
        for name, field in fields.items():
            listed = {"schema": 1, "name": "test", "base": {"topology": "h200_8", "schedule": "serial"}, "points": [{field: "?"}]}
            self.file("listed.json", listed)
            said = self.sim("sweep", "listed.json", "--dry-run").stderr
            self.assertNotIn("is no field", said, field)

    def test_files_beside_the_sweep(self):
        (self.folder / "deep").mkdir()
        configs = ROOT / "configs"
        for name, kind, source in (("machine", "topologies", "h200_4"), ("pair", "workloads", "ficco_g2"), ("preset", "schedules", "flux_ag_gemm"),
                                   ("caller", "hosts", "benchmark")):
            self.file(f"deep/{name}.json", (configs / kind / f"{source}.json").read_text())
        axes = {"schedule": ["serial", "preset"], "topology": ["machine", "machine.json"]}
        self.file("deep/sweep.json", {"schema": 1, "name": "test", "base": {"workload": "pair", "host": "caller"}, "axes": axes})
        self.output("sweep", "deep/sweep.json", "--out", "out")
        self.assertEqual([row["error"] for row in self.rows()], 4 * [""])
        point = self.file("point.json", self.output("sweep", "deep/sweep.json", "--point", "2"))
        self.assertEqual(self.result("--config", point)["makespan_us"], float(self.rows()[2]["makespan_us"]))

    def test_a_dry_run_counts(self):
        self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE,
                                 "axes": {"schedule": ["serial", "hetero_fused_1d"], "params.chunks": {"from": 1, "to": 10, "by": 1}},
                                 "where": ["chunks != 3"]})
        dry = self.output("sweep", "sweep.json", "--dry-run")
        self.assertLess(dry.count("\n"), 25)
        counted = json.loads(dry)
        self.assertEqual((counted["combinations"], counted["points"], counted["skipped"]),
                         (20, 10, {"by_where": 1, "repeated": 9}))  # serial has no chunks
        self.output("sweep", "sweep.json", "--out", "out")
        self.assertEqual(len(self.rows()), 10)

    def test_a_layer_of_a_model_is_that_of_sim_model(self):
        base = {**BASE, "topology": "h200_8", "workload": {"model": "llama3_8b", "sequence_parallel": True}}
        rows = self.sweep({"base": base, "axes": {"workload.tokens": [2048, 4096]}})
        self.assertEqual([row["workload"] for row in rows], ["llama3_8b, 2048 tokens", "llama3_8b, 4096 tokens"])
        self.output("model", "llama3_8b", "--topology", "h200_8", "--sequence-parallel", "--tokens", "4096", "--write", "layer.json")
        point = json.loads(self.output("sweep", "sweep.json", "--point", "1"))
        self.assertEqual(point["workload"]["operators"], json.loads((self.folder / "layer.json").read_text())["operators"])
        alone = self.result("--topology", "h200_8", "--schedule", "hetero_fused_1d", "--seeds", "1", "--workload", "layer.json")
        self.assertEqual(float(rows[1]["makespan_us"]), alone["makespan_us"])
        for axis, said in (({"workload.tokens": [0]}, "/workload: /tokens: is 0, expected a whole number from 1"),
                           ({"workload.tokens": [4096], "workload.model": ["llama3_9b"]}, "did you mean 'llama3_8b'?"),
                           ({"workload.tokens": [4096], "workload.tp": [3]}, "the topology has 8")):
            self.file("bad.json", {"schema": 1, "name": "bad", "base": base, "axes": axis})
            self.assert_refused(["sweep", "bad.json", "--out", "none"], said)

    def test_a_row_is_what_sim_says_of_the_point(self):
        rows = self.sweep({"axes": {"schedule": ["serial", "hetero_fused_1d"],
                                    "what_if.topology.fabric.0.bandwidth_GBps": [100, "0.5x"]}})
        lines = self.lines()
        self.assertEqual(len(rows), 4)
        for row, line in zip(rows, lines):
            self.file("point.json", self.output("sweep", "sweep.json", "--point", row["point"]))
            alone = self.result("--config", "point.json")
            for key, value in alone.items():
                if key not in ("schema", "config", "wall_ms", "gemm_library", "notes"):
                    self.assertEqual(line[key], value, key)
            for column in ("makespan_us", "serial_us", "speedup", "losses_us.launch"):
                value = alone
                for part in column.split("."):
                    value = value[part]
                self.assertEqual(float(row[column]), value)
            self.assertEqual(row["what_if.topology.fabric.0.bandwidth_GBps"],
                             str(line["values"]["what_if.topology.fabric.0.bandwidth_GBps"]))
        self.assertNotIn("wall_ms", rows[0])

    def test_ranges(self):
        self.sweep({"axes": {"workload.gemm.m": {"from": 1024, "to": 9000, "times": 2},
                             "workload.gemm.n": {"from": 512, "to": 1536, "by": 512}}})
        self.assertEqual(sorted({line["values"]["workload.gemm.m"] for line in self.lines()}), [1024, 2048, 4096, 8192])
        self.assertEqual(sorted({line["values"]["workload.gemm.n"] for line in self.lines()}), [512, 1024, 1536])

    def test_zipped_and_listed(self):
        rows = self.sweep({"zipped": [{"workload.gemm.m": [1024, 2048], "params.chunks": [2, 4]}],
                           "points": [{"schedule": "serial"}, {"schedule": "uniform_fused_1d", "params.agent": "cu"}]})
        self.assertEqual([(row["m"], row["chunks"], row["schedule"], row["agent"]) for row in rows],
                         [("1024", "", "serial", "dma"), ("1024", "2", "uniform_fused_1d", "cu"),
                          ("2048", "", "serial", "dma"), ("2048", "4", "uniform_fused_1d", "cu")])
        rows = self.sweep({"zipped": [{"workload.gemm.m": [1024, 1024, 2048], "params.chunks": [2, 4, 2]}]}, out="again")
        self.assertEqual([(row["m"], row["chunks"]) for row in rows], [("1024", "2"), ("1024", "4"), ("2048", "2")])

    def test_fields_of_operators_and_parameters_of_library_collectives(self):
        workload = {"operators": [{"name": "c", "type": "collective", "collective": "all_gather", "bytes": 1 << 28}]}
        self.sweep({"base": {"topology": "mi300x_8", "schedule": "serial", "workload": workload},
                    "axes": {"workload.operators.0.bytes": [1 << 27, 1 << 28],
                             "params.algorithm": ["direct", "library"], "params.channels": [32, 64]}})
        lines = [(line["values"], line["makespan_us"]) for line in self.lines()]
        self.assertEqual([(values["params.algorithm"], values.get("params.channels")) for values, _ in lines],
                         2 * [("direct", None), ("library", 32), ("library", 64)])
        for small, large in zip(lines[:3], lines[3:]):
            self.assertLess(small[1], large[1])

    def test_files_in_the_order_in_which_people_count(self):
        self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE, "axes": {"schedule": ["serial", "shard_p2p"]}})
        base = {key: value for key, value in BASE.items() if key != "workload"}
        self.file("files.json", {"schema": 1, "name": "files", "base": base, "axes": {"workload": {"files": "ficco_g1*"}}})
        resolved = json.loads(self.output("sweep", "files.json", "--dry-run"))
        self.assertEqual([value[0] for value in resolved["axes"][0]["values"]],
                         ["ficco_g1"] + [f"ficco_g{number}" for number in range(10, 17)])
        self.assertEqual(resolved["points"], 8)

    def test_a_named_workload_and_a_field_of_it_in_any_order(self):
        workloads, rows = ["ficco_g1", "ficco_g2"], [4096, 8192]
        base = {"topology": "mi300x_8", "schedule": "serial"}
        expected = {(name, m) for name in workloads for m in rows}
        for number, axes in enumerate([{"workload": workloads, "workload.gemm.m": rows},
                                       {"workload.gemm.m": rows, "workload": workloads}]):
            table = self.sweep({"base": base, "axes": axes}, out=f"out{number}")
            lines = self.lines(f"out{number}")
            self.assertEqual([row["error"] for row in table], [""] * 4)
            self.assertEqual([int(row["m"]) for row in table],
                             [line["values"]["workload.gemm.m"] for line in lines])
            self.assertEqual({(line["values"]["workload"], line["values"]["workload.gemm.m"]) for line in lines}, expected)
            # n and k are those of the named workload.
            self.assertEqual(len({(line["values"]["workload"], row["n"], row["k"]) for line, row in zip(lines, table)}), 2)
            self.assertEqual(len({(row["n"], row["k"]) for row in table}), 2)
            self.assertEqual({row["workload"] for row in table}, {f"{name}, m {m}" for name, m in expected})

    def test_where_knows_the_direction_of_transfers(self):
        base = {"topology": "h200_4.json", "schedule": "hetero_fused_1d", "seeds": 1}
        for collective, transfer in (("all_gather", "pull"), ("reduce_scatter", "push")):
            rows = self.sweep({"base": {**base, "workload": {"collective": collective, "gemm": GEMM["gemm"]}},
                               "axes": {"params.chunks": [2, 4]}, "where": [f'transfer == "{transfer}"']}, out=collective)
            self.assertEqual([row["transfer"] for row in rows], [transfer] * 2)

    def test_where_sees_the_machine_that_the_point_has(self):
        """Defaults and numbers of GPUs come from the files as what-ifs and hosts change them."""
        base = {**BASE, "params": {"agent": "cu"}}
        rows = self.sweep({"base": base, "axes": {"what_if.device.copy_kernel.default_cus": [4, 16]}, "where": ["copy_cus == 16"]})
        self.assertEqual([row["copy_cus"] for row in rows], ["16"])
        nodes = {"base": {**BASE, "topology": "mi300x_16"}, "axes": {"what_if.topology.nodes": [1, 2, 4]}}
        self.sweep({**nodes, "where": ["gpus == 16 || nodes > 2"]}, out="nodes")
        self.assertEqual([line["values"]["what_if.topology.nodes"] for line in self.lines("nodes")], [2, 4])
        # By default as many chunks as a node has GPUs
        smaller = {"base": {**BASE, "topology": "mi300x_8"}, "axes": {"what_if.topology.gpus_per_node": [4, 8]}}
        rows = self.sweep({**smaller, "where": ["chunks == 4"]}, out="smaller")
        self.assertEqual([row["chunks"] for row in rows], ["4"])

    def test_where_knows_names_that_begin_like_an_operator(self):
        axes = {"params.order": ["rotation", "ascending"]}
        rows = self.sweep({"base": {**BASE, "schedule": "shard_p2p", "params": {}}, "axes": axes, "where": ["gpus > 1 and order != \"rotation\""]})
        self.assertEqual([line["values"]["params.order"] for line in self.lines()], ["ascending"])
        self.assertEqual([row["error"] for row in rows], [""])

    def test_where(self):
        axes = {"workload.gemm.m": [4096, 4104], "params.chunks": [2, 3, 4], "params.agent": ["dma", "cu"]}
        rows = self.sweep({"axes": axes, "where": ["gemm.m % (gpus * chunks) == 0", "agent == \"cu\" || chunks > 2"]})
        # 4096 / 4 = 1024 is divided by 2 and 4; 4104 / 4 = 1026 by 2 and 3.
        self.assertEqual([(row["m"], row["chunks"], row["agent"]) for row in rows],
                         [("4096", "2", "cu"), ("4096", "4", "dma"), ("4096", "4", "cu"),
                          ("4104", "2", "cu"), ("4104", "3", "dma"), ("4104", "3", "cu")])

    def test_a_parameter_that_a_schedule_lacks_makes_no_further_points(self):
        rows = self.sweep({"axes": {"schedule": ["serial", "hetero_fused_1d"], "params.chunks": [2, 4],
                                    "params.agent": ["dma", "cu"], "params.copy_cus": [4, 8]}})
        self.assertEqual([(row["schedule"], row["chunks"], row["agent"], row["copy_cus"]) for row in rows],
                         [("serial", "", "dma", ""), ("serial", "", "cu", "4"), ("serial", "", "cu", "8"),
                          ("hetero_fused_1d", "2", "dma", ""), ("hetero_fused_1d", "2", "cu", "4"),
                          ("hetero_fused_1d", "2", "cu", "8"), ("hetero_fused_1d", "4", "dma", ""),
                          ("hetero_fused_1d", "4", "cu", "4"), ("hetero_fused_1d", "4", "cu", "8")])

    def test_a_point_that_fails_is_a_row_that_says_why(self):
        rows = self.sweep({"axes": {"workload.gemm.m": [16, 4096], "params.chunks": [2, 64]}})
        self.assertEqual([bool(row["error"]) for row in rows], [False, True, False, False])
        failed, line = rows[1], self.lines()[1]
        self.assertEqual((failed["m"], failed["chunks"], failed["makespan_us"]), ("16", "64", ""))
        self.assertIn("chunks", failed["error"])
        self.assertEqual(failed["error"], line["error"])

    def test_shipped_sweeps_can_run(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "sweeps")
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        self.assertGreaterEqual(len(names), 5)
        for name in names:
            with self.subTest(sweep=name):
                resolved = json.loads(self.output("sweep", name, "--dry-run"))
                self.assertEqual(resolved["name"] + ".json", name)
                for number in (0, resolved["points"] // 2, resolved["points"] - 1):
                    done = self.sim("sweep", name, "--point", str(number))
                    self.assertTrue(done.returncode == 0 or "is no point" in done.stderr, done.stderr)


class SweepRunning(Sweeping, SimTestCase):
    def start(self, *args):
        return subprocess.Popen([os.environ["SIM"], "sweep", "slow.json", "--out", "out", "--workers", "2", *args],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def setUp(self):
        super().setUp()
        self.file("slow.json", SLOW)

    def whole(self):
        self.output("sweep", "slow.json", "--out", "whole", "--workers", "2")
        return self.results("whole")

    def test_the_same_bytes_whatever_the_workers(self):
        expected = self.whole()
        for workers in ("1", "3"):
            self.output("sweep", "slow.json", "--out", "by" + workers, "--workers", workers)
            self.assertEqual(self.results("by" + workers), expected)

    def test_the_same_bytes_from_processes_of_mpi(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun here (package openmpi-bin)")
        expected = self.whole()
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", os.environ["SIM"], "sweep", "slow.json"]
        done = subprocess.run([*mpirun, "--out", "out"], cwd=self.folder, capture_output=True, encoding="utf-8", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("48 points"), 1)  # one process speaks
        self.assertEqual(self.results("out"), expected)
        again = subprocess.run([*mpirun, "--out", "out"], cwd=self.folder, capture_output=True, encoding="utf-8", timeout=120)
        self.assertNotEqual(again.returncode, 0)
        self.assertEqual(again.stderr.count("has a sweep already"), 1)

    def test_kills_lose_and_double_nothing(self):
        expected = self.whole()
        cuts, args = set(), []
        for attempt in range(40):
            process = self.start(*args)
            try:
                process.wait(timeout=0.02 * 1.2 ** attempt)  # long enough at last, however busy the machine is
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
            if process.returncode == 0:
                break
            if (self.folder / "out" / "sweep.json").exists():
                args = ["--resume"]
                points = self.folder / "out" / "points.jsonl"
                cuts.add(points.stat().st_size if points.exists() else 0)
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(len(cuts), 2)
        self.assertEqual(self.results("out"), expected)

    def test_interrupted_then_resumed(self):
        expected = self.whole()
        for sent in (signal.SIGINT, signal.SIGTERM):
            process = self.start()
            while not (self.folder / "out" / "points.jsonl").exists() or \
                    (self.folder / "out" / "points.jsonl").stat().st_size == 0:
                time.sleep(0.002)
            process.send_signal(sent)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 2, errors)
            self.assertRegex(errors, r"stopped at \d+ of 48; --resume continues from there")
            self.output("sweep", "slow.json", "--out", "out", "--resume")
            self.assertEqual(self.results("out"), expected)
            self.assertIn("48 points; 0 run", self.output("sweep", "slow.json", "--out", "out", "--resume"))
            shutil.rmtree(self.folder / "out")

    def test_a_full_disk(self):
        expected = self.whole()
        limited = subprocess.run(["bash", "-c", 'ulimit -f 16; exec "$SIM" sweep slow.json --out out'], cwd=self.folder,
                                 capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual(limited.returncode, 2, limited.stderr)
        self.assertRegex(limited.stderr, r"\Asim: out/points\.\w+: cannot be written: .*--resume\)\n\Z")
        self.output("sweep", "slow.json", "--out", "out", "--resume")
        self.assertEqual(self.results("out"), expected)

    def test_one_at_a_time_in_a_folder(self):
        process = self.start()
        while not (self.folder / "out" / "progress.json").exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)  # so that it is there for certain
        done = self.sim("sweep", "slow.json", "--out", "out", "--resume")
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        self.assertEqual((done.returncode, process.returncode), (2, 0))
        self.assertIn("another sim sweep", done.stderr)
