"""What is refused before work, what is said of it, and what is shown while it lasts."""
import gzip
import json
import os
import pty
import re
import resource
import subprocess
import time

from sim_case import PAIR, ROOT, SMALL, SimTestCase

# Shards that are not all equal: built for all GPUs.
LARGE = ["--topology", "mi300x_1024_rail", "--schedule", "shard_p2p", "--gemm", "32769x7168x8192"]
ALIKE = ["--topology", "mi300x_1024_rail", "--schedule", "hetero_fused_1d", "--set", "chunks=4"]


class Budget(SimTestCase):
    def run_with(self, variables, *args):
        environment = {key: value for key, value in os.environ.items() if key != "OVERLAP_CONFIGS"}
        return subprocess.run([os.environ["SIM"], *args], cwd=self.folder, env={**environment, **variables},
                              input="", capture_output=True, encoding="utf-8", timeout=60)

    def refused_with(self, variables, args, *expected):
        done = self.run_with(variables, *args)
        with self.subTest(args=args):
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Asim: [^\n]+\n\Z")
            for text in expected:
                self.assertIn(text, done.stderr)

    def test_dry_run_says_what_a_run_takes(self):
        graph = json.loads(self.output(*LARGE, "--dry-run"))["graph"]
        self.assertEqual(graph["tasks"], 1024 * (1023 + 1024))  # copies, GEMMs
        self.assertGreater(graph["memory_MB"], 2000)
        self.assertGreater(graph["wall_s"], 5)
        self.assertGreater(graph["simulations_at_most"], 3)
        little = self.run_with({"OVERLAP_MEMORY_GB": "2"}, *LARGE, "--dry-run")
        self.assertIn("2.0 GB are available", json.loads(little.stdout)["graph"]["refused"])
        self.assertNotIn("refused", json.loads(self.output(*PAIR, "--dry-run"))["graph"])

    def test_estimates_against_what_runs_take(self):
        """Of one GPU to 100,000: never less than the peak of resident memory, nor four times as much. A child's peak is never less than
        this process had when it started it, so estimates below that are compared with it."""
        def peak_of(*args):
            with subprocess.Popen([os.environ["SIM"], *args], stdout=subprocess.DEVNULL) as process:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            return used.ru_maxrss * 1024e-6
        lowest, larger = peak_of("--version"), 0
        for machine, schedule, gemm in (("h200_1", "serial", "4096x1024x2048"), ("h200_8", "hetero_fused_1d", "8192x1024x2048"),
                                        ("h100_64_rail", "hetero_fused_1d", "32768x1024x2048"),
                                        ("mi300x_1024_rail", "hetero_fused_1d", "32768x7168x8192"),
                                        ("mi300x_16384_rail", "serial", "32768x7168x8192"),
                                        ("mi300x_100000_rail", "serial", "12800000x1024x1024")):
            args = ["--topology", machine, "--schedule", schedule, "--gemm", gemm]
            estimate = json.loads(self.output(*args, "--dry-run"))["graph"]["memory_MB"]
            peak = peak_of(*args)
            larger += peak > 1.2 * lowest
            with self.subTest(machine=machine, estimate=estimate, peak=peak, lowest=lowest):
                self.assertGreaterEqual(max(estimate, 1.01 * lowest), peak)
                self.assertLessEqual(estimate, 4 * peak)
        self.assertGreaterEqual(larger, 2)

    def test_copy_kernels_that_share_links_take_long(self):
        def wall(*args):
            machine = ["--topology", "b200_64_rail", "--set", "agent=cu"]
            return json.loads(self.output(*machine, *args, "--dry-run"))["graph"]["wall_s"]

        few = wall("--schedule", "shard_p2p")  # of 16 compute units each
        many = wall("--schedule", "hetero_fused_1d", "--set", "chunks=1")  # of one
        chunks = wall("--schedule", "hetero_fused_1d", "--set", "chunks=2")
        self.assertLess(few, 5)
        self.assertGreater(many, 5)
        self.assertGreater(chunks, 50)

    def test_what_takes_more_memory_than_there_is_is_refused_at_once(self):
        little = {"OVERLAP_MEMORY_GB": "2"}
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.refused_with(little, LARGE, "tasks or more take about", "2.0 GB are available", "--allow-large")
        self.refused_with(little, [*LARGE, "--graph", "graph.json"], "2.0 GB are available")
        self.refused_with(little, [*ALIKE, "--graph", "graph.json"], "4195328 tasks or more take about")
        self.assertEqual(self.run_with(little, *ALIKE).returncode, 0)  # of one GPU
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime, 20)
        tiny = {"OVERLAP_MEMORY_GB": "0.03"}  # less than the program alone
        self.refused_with(tiny, PAIR, "30 MB are available")
        self.assertEqual(self.run_with(tiny, *PAIR, "--allow-large").returncode, 0)
        self.refused_with({"OVERLAP_MEMORY_GB": "much"}, PAIR, "OVERLAP_MEMORY_GB is 'much'")

    def test_what_expands_beyond_memory_is_refused_before_it_is_all_there(self):
        """300 kB of gzip hold 300 MB of text."""
        (self.folder / "many.jsonl.gz").write_bytes(gzip.compress(b" " * 300_000_000))
        self.refused_with({"OVERLAP_MEMORY_GB": "0.2"}, ["compare", "many.jsonl.gz"],
                          "many.jsonl.gz: ", " of text and more take about ", "of memory, but 200 MB are available")

    def test_a_compressed_trace_that_takes_more_memory_than_there_is_when_parsed_is_refused(self):
        # 20 MB of spaces, 20 kB compressed; JSON takes 8 times its size.
        (self.folder / "trace.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 20_000_000 + b"]}"))
        self.refused_with({"OVERLAP_MEMORY_GB": "0.15"}, ["import", "trace.json.gz", "--out", "case.json"],
                          "the contents of trace.json.gz", "150 MB are available")
        self.assertFalse((self.folder / "case.json").exists())

    def test_candidates_of_advice_that_take_more_memory_than_there_is_are_refused(self):
        self.refused_with({"OVERLAP_MEMORY_GB": "2"}, ["advise", "--topology", "mi300x_1024_rail"],
                          "simulations of candidates", "2.0 GB are available")

    def test_a_line_of_a_batch_and_a_point_of_a_sweep_that_take_too_much_say_so(self):
        uneven = {**SMALL["workload"], "gemm": {**SMALL["workload"]["gemm"], "m": 4097}}
        large = {**SMALL, "topology": "mi300x_1024_rail", "schedule": "shard_p2p", "params": {}, "workload": uneven}
        self.file("batch.jsonl", json.dumps(large) + "\n" + json.dumps(SMALL) + "\n")
        done = self.run_with({"OVERLAP_MEMORY_GB": "2"}, "batch", "batch.jsonl")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 2)
        self.assertIn("GB are available", lines[0]["error"])
        self.assertGreater(lines[1]["makespan_us"], 0)

    def test_a_mesh_of_2048_gpus_is_described_at_once(self):
        mesh = {"schema": 1, "name": "mesh", "description": "", "device": "mi300x", "nodes": 1, "gpus_per_node": 2048,
                "fabric": [{"type": "full_mesh", "bandwidth_GBps": {"value": 46.5, "source": "test"},
                            "latency_us": {"value": 1, "source": "test"}}]}
        self.file("mesh.json", mesh)
        # Ten seconds of a core, where a search for routes from each GPU took 90 and more.
        done = subprocess.run([os.environ["SIM"], "--topology", "mesh.json", "--schedule", "shard_direct", "--gemm",
                               "65536x1024x1024", "--dry-run"], cwd=self.folder, capture_output=True, encoding="utf-8",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (45, 45)), timeout=280)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["graph"]["tasks"], 2048 * (2047 + 2048))
        self.file("mesh.json", {**mesh, "gpus_per_node": 4096})
        self.refused_with({"OVERLAP_MEMORY_GB": "2"}, ["--topology", "mesh.json", "--schedule", "serial", "--dry-run"],
                          "16773120 links", "2.0 GB are available")

    def test_a_file_that_never_ends_or_never_begins_is_refused(self):
        name = "/dev/zero"
        for args in (["--topology", name, "--schedule", "serial"], ["--config", name], ["sweep", name],
                     ["import", name, "--out", "out"], ["compare", name], [*PAIR, "--workload", name]):
            self.refused_with({}, args, name, "is a device or a socket")
        os.mkfifo(self.folder / "pipe")
        self.refused_with({}, ["--config", "pipe"], "pipe: cannot be read (a pipe into which nothing came for 10 s)")
        self.file("large.json", "[" + "0," * 2_000_000 + "0]")
        self.refused_with({"OVERLAP_MEMORY_GB": "0.01"}, ["--config", "large.json"], "large.json", "10 MB are available")

    def test_sixty_thousand_operators_are_read_in_linear_time(self):
        operators = [{"name": f"op{i}", "type": "memory_bound", "read_bytes": 1e6, "write_bytes": 1e6,
                      **({"needs": [f"op{i - 1}"]} if i else {})} for i in range(60_000)]
        self.file("long.json", {"schema": 1, "name": "long", "operators": operators})
        graph = json.loads(self.output("--topology", "mi300x_8", "--schedule", "concurrent", "--workload", "long.json",
                                       "--dry-run"))["graph"]
        self.assertEqual((graph["tasks"], graph["edges"]), (8 * 60_000, 8 * 59_999))

    def test_a_simulation_by_simgrid_is_ended_at_its_limit(self):
        args = ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d", "--engine", "simgrid"]
        self.refused_with({"OVERLAP_SIMGRID_SECONDS": "0.01"}, args, "engine simgrid: not done after 0.01 s",
                          "tasks had ended", "solver bmf", "OVERLAP_SIMGRID_SECONDS")
        self.refused_with({"OVERLAP_SIMGRID_SECONDS": "never"}, args, "OVERLAP_SIMGRID_SECONDS is 'never'")
        self.assertIn("OVERLAP_SIMGRID_SECONDS", self.output("--help"))


class Progress(SimTestCase):
    def on_terminal(self, *args, seconds=60):
        """What is written to a standard error that is a terminal, until the program ends or `seconds` are over."""
        leader, follower = pty.openpty()
        with subprocess.Popen([os.environ["SIM"], *args], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=follower) as process:
            os.close(follower)
            text, end = b"", time.monotonic() + seconds
            try:
                while time.monotonic() < end and not re.search(rb"left|so far", text):
                    text += os.read(leader, 4096)
            except OSError:  # the program has ended
                pass
            os.close(leader)
            process.kill()
        return text.decode()

    def test_many_seeds(self):
        text = self.on_terminal("--topology", "h200_4", "--schedule", "hetero_fused_1d", "--set", "transfer=push",
                                "--seeds", "100000")
        self.assertRegex(text, r"\d+ % +\d+ of 500010  simulations")

    def test_advice(self):
        text = self.on_terminal("advise", "--topology", "h200_8", "--gemm", "8192x8192x8192", "--seeds", "10000")
        self.assertRegex(text, r"\d+ of \d+  candidates")

    def test_measured_cases(self):
        slow = {"topology": "h200_4", "schedule": "hetero_fused_1d", "seeds": 100000}
        cases = [{"schema": 1, "system": "h200_4", "unit": "us", "makespan_us": 1000,
                  "scenario": {**slow, "params": {"transfer": "push", "chunks": chunks}}} for chunks in range(1, 17)]
        self.file("cases.jsonl", "\n".join(map(json.dumps, cases)))
        self.assertRegex(self.on_terminal("compare", "cases.jsonl"), r"\d+ of \d+  cases")

    def test_fits(self):
        self.assertRegex(self.on_terminal("calibrate", "h200", "--out", "out"), r"\d+ of \d+  fits of h200")

    def test_a_constraint_that_never_holds(self):
        axes = {f"workload.gemm.{d}": {"from": 1024, "to": 1323, "by": 1} for d in "mnk"}
        self.file("never.json", {"schema": 1, "name": "never", "base": {"topology": "h200_4", "schedule": "serial"},
                                 "axes": axes, "where": ["gpus > 4"]})
        text = self.on_terminal("sweep", "never.json", "--out", "out")
        self.assertRegex(text, r"\d+ of 27000000  combinations looked at, none allowed")

    def test_what_is_done_at_once_shows_nothing(self):
        self.assertEqual(self.on_terminal(*PAIR, "--gemm", "4096x1024x2048"), "")
