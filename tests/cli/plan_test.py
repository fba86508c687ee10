"""sim --plan: plans that are written by hand, by --graph and by Python; what is refused, and how."""
import csv
import gzip
import io
import json
import shutil
import re

from sim_case import PAIR, ROOT, SimTestCase, without_clock

EXAMPLE = ROOT / "configs/examples/09_a_plan"

MM = {"kind": "gemm", "stream": "compute", "m": 2048, "n": 2048, "k": 2048, "dtype": "bf16"}
COPY = {"kind": "copy", "stream": "transfer +1", "src": "+1", "dst": "+0", "bytes": 1e6}
LOCAL = {"kind": "local_copy", "stream": "local", "bytes": 1 << 26}
WAIT = {"kind": "memory_bound", "stream": "local", "read_bytes": 0, "write_bytes": 0, "time_us": 100, "waits": True}
A, B, C = [0, 0, 0, 2048, 2048], [1, 0, 0, 2048, 2048], [2, 0, 0, 2048, 2048]
PLACED = {"schema": 2, "gpus": 1, "buffers": [{"gpu": 0, "name": name, "rows": 2048, "columns": 2048, "dtype": "bf16"} for name in "abc"],
          "inputs": [A, B], "results": [C], "tasks": [{**MM, "gpu": 0, "from": [A, B], "to": [C]}]}


def plan(*lines, **more):
    return {"schema": 2, "gpus": 4, "tasks": [{"each_rank": list(lines)}], **more}


REFUSED = [  # a plan, and what the one line about it says
    (plan(), "/tasks/0/each_rank"),
    ({"schema": 2, "gpus": 4, "tasks": []}, "/tasks: is empty"),
    ({"schema": 1, "gpus": 4, "tasks": []}, "/schema: is a version that left out what a simulation needs"),
    (plan({**MM, "name": "x", "after": ["y"]}, {**MM, "stream": "local", "name": "y", "after": ["x"]}),
     "/tasks: form a cycle: task 0 'x' of rank 0 waits for task 1 'y' of rank 0 waits for task 0 'x' of rank 0"),
    (plan({**COPY, "name": "x", "after": [["x", "+1"]]}), "/tasks: form a cycle: task 0 'x' of rank 0 waits for task 0 'x' of rank 1"),
    (plan({**MM, "stream": "compte"}), "/tasks/0/each_rank/0/stream: is 'compte', which is no stream (did you mean 'compute'?)"),
    (plan({**MM, "stream": "transfer 4"}), "/tasks/0/each_rank/0/stream: is 'transfer 4', which is no stream"),
    (plan({**MM, "after": ["own"]}), "/tasks/0/each_rank/0/after/0: is 'own', which no task is called"),
    (plan({**MM, "after": [7]}), "/tasks/0/each_rank/0/after/0: is 7, expected the name of a task, or its number, 0 to 0"),
    (plan({**MM, "name": "x"}, {**MM, "name": "x"}, {**MM, "after": ["x"]}), "is 'x', which 2 tasks are called"),
    (plan({**MM, "gpu": 0}), "/tasks/0/each_rank/0/gpu: stands in each_rank"),
    (plan({**MM, "byts": 1}), "/tasks/0/each_rank/0/byts: is an unknown key"),
    (plan({**COPY, "src": "+4"}), "copies from rank 0 to itself (allowed: kind local_copy)"),
    (plan({**COPY, "src": 4}), "/tasks/0/each_rank/0/src: is 4, but the plan has 4 GPUs"),
    (plan({**COPY, "transfer": "push"}), "is executed by rank 0, but src executes what transfer 'push' copies"),
    (plan({**COPY, "agent": "cu", "copy_cus": 4096}), "takes 4096 compute units, but h200 has 132"),
    (plan({**COPY, "bytes": {"ranks": [1, 2]}}), "/tasks/0/each_rank/0/bytes/ranks: is [1,2], expected 4 values"),
    (plan({**COPY, "dma_command": "swap", "transfer": "push", "src": "+0", "dst": "+1"}),
     "has a command that DMA engines of h200 were not measured with (allowed: plain copies)"),
    (plan({**COPY, "kind": "host"}), "/tasks/0/each_rank/0/kind: is 'host'"),
    (plan({**MM, "operator": 0}), "is of operator 0, but the plan's workload has 0 operators"),
    (plan({**MM, "m": 1000000, "n": 1000000}), "GB of one GPU, but h200 has "),
    ({**plan(MM), "gpus": 16}, "/gpus: is 16, but the topology has 4"),
    ({**PLACED, "inputs": [A]}, "reads rows 0 to 2047, columns 0 to 2047 of 'b' of rank 0, not all of which is written by tasks that it waits for"),
    ({**PLACED, "inputs": [A, [1, 0, 0, 2047, 2048]]}, "reads rows 0 to 2047, columns 0 to 2047 of 'b'"),
    ({**PLACED, "results": [[2, 0, 0, 2049, 2048]]}, "/results: reach beyond buffer 2"),
    ({**PLACED, "tasks": [{**MM, "gpu": 0, "m": 1024, "from": [A, B], "to": [C]}]}, "has other blocks, expected A of m x k, B of k x n, C of m x n"),
    (plan({**LOCAL, "agent": "dma", "copy_cus": 8}), "has copy_cus, but agent 'dma' takes no units"),
    (plan({**LOCAL, "agent": "cu", "copy_cus": 4096}), "takes 4096 compute units, but h200 has 132"),
    (plan({**LOCAL, "agent": "gpu"}), "/tasks/0/each_rank/0/agent: is 'gpu'"),
    (plan({**WAIT, "read_bytes": 1}), "waits, but has bytes or no time_us"),
    (plan({**WAIT, "time_us": 0}), "waits, but has bytes or no time_us"),
    (plan(MM, measure={"repeats": -1}), "/measure/repeats: is -1"),
    (plan(MM, measure={"warmups": 1}), "/measure/warmups: is an unknown key (did you mean 'warm_ups'?)"),
    ({**PLACED, "buffers": [{**one, "rows": 10**8} for one in PLACED["buffers"]]}, "/buffers: take "),
]


class Plans(SimTestCase):
    def test_the_plan_of_the_documentation(self):
        """Eight lines by hand. 4096 rows of 8192 bf16 are 67 MB for four GPUs: a shard of 2048 rows has 33.6 MB."""
        page = (ROOT / "sim/plan/format.md").read_text(encoding="utf-8")
        text = re.search(r"```json\n(.*?)```", page, re.DOTALL)[1]
        self.assertEqual(text, (ROOT / "sim/plan/example.json").read_text(encoding="utf-8"))
        self.assertEqual(len(text.splitlines()), 8)
        self.file("plan.json", text)
        result = self.result("--topology", "h200_4", "--plan", "plan.json", "--trace", "out.json")
        gemm = json.loads(self.output("cost", "--topology", "h200_4", "--gemm", "2048x2560x8192", "--format", "json"))["time_us"]
        self.assertGreater(result["makespan_us"], 4 * 0.9 * gemm)
        self.assertLess(result["makespan_us"], result["serial_us"])
        self.assertIn('"get 3"', (self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertIn("28 tasks, 4 x h200", self.output("--topology", "h200_4", "--plan", "plan.json"))

    def test_a_written_plan_is_the_same_run(self):
        run = self.result(*PAIR, "--graph", "plan.json.gz")
        again = self.result("--plan", "plan.json.gz")
        for key in run.keys() - {"config", "wall_ms"}:
            self.assertEqual(run[key], again[key], key)
        self.assertEqual(again["config"]["plan"], "plan.json.gz")
        self.assertEqual(without_clock(self.result("--config", self.file("config.json", again["config"]))), without_clock(again))
        for more in (["--without", "contention"], ["--host", "pytorch_eager"], ["--what-if", "device.dma.peer_engines=2"],
                     ["--steady"], ["--engine", "simgrid"]):
            self.assertEqual(self.result(*PAIR, *more)["makespan_us"], self.result("--plan", "plan.json.gz", *more)["makespan_us"], more)
        by_plan = json.loads(self.output("sensitivity", "--plan", "plan.json.gz", "--only", "hardware", "--format", "json"))
        by_schedule = json.loads(self.output("sensitivity", *PAIR, "--only", "hardware", "--format", "json"))
        times = [[(one["key"], *[(one[side] or {}).get("makespan_us") for side in ("low", "high")]) for one in by["values"]] for by in (by_plan, by_schedule)]
        self.assertEqual(*times)
        self.assertEqual(gzip.open(self.folder / "plan.json.gz").read(), self.written(*PAIR, "--graph", "plain.json"))
        self.assertEqual(gzip.open(self.folder / "plan.json.gz").read(), self.written("--plan", "plan.json.gz", "--graph", "again.json"))

    def written(self, *args):
        self.output(*args, "--dry-run")
        return (self.folder / args[-1]).read_bytes()

    def test_what_is_refused_in_one_line(self):
        for bad, message in REFUSED:
            with self.subTest(message):
                self.file("bad.json", bad)
                self.assert_refused(["--topology", "h200_4", "--plan", "bad.json"], message)

    def test_a_plan_stands_alone(self):
        self.file("plan.json", plan(MM))
        self.assert_refused([*PAIR, "--plan", "plan.json"], "/schedule: stands beside a plan, which says it itself")
        self.assert_refused(["--topology", "h200_4", "--plan", "plan.json", "--set", "chunks=2"], "/params: stands beside a plan")
        self.assert_refused(["--topology", "h200_4", "--plan", "plan.json", "--gemm", "8x8x8"], "/workload: stands beside a plan")
        self.file("result.json", self.result("--topology", "h200_4", "--plan", "plan.json"))
        self.assert_refused(["--plan", "result.json"], "is a result of sim, expected a plan")
        self.assert_refused(["--config", "plan.json"], "is a plan, expected a run config (sim --plan FILE simulates it)")

    def test_a_task_may_wait_for_a_later_one_of_another_stream(self):
        """The copy is enqueued behind the GEMM that waits for it: both orders of the file are the same run."""
        first = self.file("first.json", plan({**COPY, "name": "c"}, {**MM, "after": ["c"]}))
        later = self.file("later.json", plan({**MM, "after": ["c"]}, {**COPY, "name": "c"}))
        self.assertEqual(*[self.result("--topology", "h200_4", "--plan", file)["makespan_us"] for file in (first, later)])

    def makespan_us(self, *lines):
        return self.result("--topology", "h200_4", "--plan", self.file("plan.json", plan(*lines)))["makespan_us"]

    def test_a_wait_takes_its_time_and_nothing_else(self):
        self.assertAlmostEqual(self.makespan_us(WAIT, LOCAL), 100 + self.makespan_us(LOCAL), places=6)
        self.assertAlmostEqual(self.makespan_us({**WAIT, "time_us": 1}, MM), self.makespan_us(MM), places=6)

    def test_local_copies_by_few_thread_blocks_are_slow(self):
        """67 MB are read and written: by 8 blocks on 8 of 132 SMs they take longer than by a schedule's kernel, by 32 less."""
        few, more = (self.makespan_us({**LOCAL, "agent": "cu", "copy_cus": blocks}) for blocks in (8, 32))
        self.assertGreater(few, 2 * more)
        self.assertGreater(more, self.makespan_us(LOCAL))
        self.assertAlmostEqual(self.makespan_us({**LOCAL, "agent": "dma"}), self.makespan_us({**LOCAL, "agent": "cu", "copy_cus": 132}), delta=2)

    def test_keeps_how_it_is_measured(self):
        measure = {"repeats": 5, "warm_ups": 0, "at_peak_clock": False, "cold_caches": True, "marks": True}
        tasks = [{**LOCAL, "agent": "cu", "copy_cus": 8}, {**LOCAL, "agent": "dma"}, WAIT]
        self.file("plan.json", plan(*tasks, measure=measure))
        written = json.loads(self.written("--topology", "h200_4", "--plan", "plan.json", "--graph", "again.json"))
        self.assertEqual(written["measure"], measure)
        self.assertEqual([{key: line[key] for key in task} for line, task in zip(written["tasks"][0]["each_rank"], tasks)], tasks)

    def rows(self, sweep):
        self.file("sweep.json", {"schema": 1, "name": "plans", **sweep})
        shutil.rmtree(self.folder / "swept", ignore_errors=True)
        self.output("sweep", "sweep.json", "--out", "swept")
        return list(csv.DictReader(io.StringIO((self.folder / "swept/points.csv").read_text(encoding="utf-8"))))

    def test_sweeps_take_plans_as_schedules(self):
        """Beside schedules, by a pattern, alone, and with a machine that only the plan names; parameters are of schedules."""
        shutil.copy(EXAMPLE / "halves.json", self.folder / "one.plan.json")
        self.file("two.plan.json", plan(MM, COPY))
        rows = self.rows({"base": {"topology": "h200_4"}, "axes": {"plan": {"files": "*.plan.json"}, "what_if.topology.fabric.0.bandwidth_GBps": ["1x", "2x"]}})
        self.assertEqual([row["schedule"] for row in rows], ["plan ./one.plan.json"] * 2 + ["plan ./two.plan.json"] * 2)
        self.assertEqual([row["error"] for row in rows], [""] * 4)
        for row, more in zip(rows, ([], ["--what-if", "topology.fabric.0.bandwidth_GBps=2x"])):
            self.assertEqual(float(row["makespan_us"]), self.result("--topology", "h200_4", "--plan", "one.plan.json", *more)["makespan_us"])
        self.assertNotEqual(rows[0]["makespan_us"], rows[1]["makespan_us"])
        self.output("report", "swept")
        self.assertIn("plan ./one.plan.json", (self.folder / "swept/report.html").read_text(encoding="utf-8"))
        base = {"topology": "h200_4", "workload": json.loads((self.folder / "one.plan.json").read_text(encoding="utf-8"))["config"]["workload"]}
        rows = self.rows({"base": base, "points": [{"schedule": "hetero_fused_1d"}, {"plan": "one.plan.json"}], "axes": {"params.chunks": [2, 4]},
                          "where": ["gemm.m == 8192 && gpus == 4 && (schedule == \"plan\" || chunks > 2)"]})
        self.assertEqual([(row["schedule"], row["chunks"]) for row in rows], [("plan one.plan.json", ""), ("hetero_fused_1d", "4")])
        self.assertEqual(rows[1]["serial_us"], rows[0]["serial_us"])
        self.output("report", "swept")
        shutil.copytree(self.folder, self.folder / "else/where", ignore=shutil.ignore_patterns("else"))
        point = json.loads(self.output("sweep", "else/where/sweep.json", "--point", "1"))
        self.assertEqual(self.result("--config", self.file("point.json", point))["makespan_us"], float(rows[0]["makespan_us"]))
        rows = self.rows({"base": {"plan": "one.plan.json"}, "axes": {"host": ["threads", "pytorch_eager"]}})
        self.assertEqual([row["topology"] for row in rows], ["h200_4.json"] * 2)

    def test_sweeps_refuse_plans_that_do_not_run(self):
        self.file("bad.json", plan({**MM, "stream": "compte"}))
        for axes, message in (({"plan": ["bad.json"]}, "bad.json: /tasks/0/each_rank/0/stream: is 'compte'"), ({"plan": ["none.json"]}, "none.json: "),
                              ({"plan": {"files": "*.none"}}, "plan: has the pattern '*.none'"), ({"plan": [1]}, "/plan: is 1, expected a file name or an object"),
                              ({"plan": [plan(MM)], "schedule": ["serial"]}, "/schedule: stands beside a plan")):
            self.file("sweep.json", {"schema": 1, "base": {"topology": "h200_4"}, "axes": axes})
            self.assert_refused(["sweep", "sweep.json", "--out", "swept"], message)

    def spans(self, trace):
        """Of a timeline of our own, as a measured case has them."""
        events = json.loads((self.folder / trace).read_text(encoding="utf-8"))["traceEvents"]
        gpus = [one["pid"] for one in events if one["name"] == "process_name" and one["args"]["name"].startswith("GPU ")]
        streams = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
        return [{"task": number, "name": one["name"], "kind": one["cat"], "gpu": one["pid"], "stream": streams[one["pid"], one["tid"]],
                 "start_us": one["ts"], "end_us": one["ts"] + one["dur"]}
                for number, one in enumerate(one for one in events if one["ph"] == "X" and one["pid"] in gpus and one["cat"] in ("gemm", "copy"))]

    def test_a_plan_is_compared_with_its_spans(self):
        """What ran: the file beside the case, the plan itself, or one that says no work. All of its tasks are found in the timeline."""
        (self.folder / "cases").mkdir()
        for name, content in (("halves", json.loads((EXAMPLE / "halves.json").read_text(encoding="utf-8"))), ("bare", plan(MM, {**COPY, "name": "get"}))):
            self.file(f"cases/{name}.plan", content)
            for scenario in ({"topology": "h200_4", "plan": f"{name}.plan"}, {"topology": "h200_4", "plan": content}):
                self.output("--topology", "h200_4", "--plan", f"cases/{name}.plan", "--host", "replay", "--trace", "out.json")
                spans = self.spans("out.json")
                self.file("cases/case.json", {"schema": 1, "system": "made_up", "scenario": scenario, "spans": spans,
                                              "samples_us": [max(span["end_us"] for span in spans)]})
                report = json.loads(self.output("compare", "cases/case.json", "--format", "json"))
                one = report["cases"][0]
                self.assertAlmostEqual(one["error"], 0, places=4)
                self.assertEqual((one["tasks"]["only_measured"], one["tasks"]["only_predicted"]), (0, 0))
                self.assertTrue({"gemm", "copy"} <= report["task_kinds"].keys())
                self.assertLess(report["task_kinds"]["gemm"]["mean_abs"], 1e-3)
                self.assertNotIn("first_divergence", one["tasks"])

    def test_a_plan_and_a_schedule_of_the_same_work_are_ranked(self):
        work = json.loads((EXAMPLE / "halves.json").read_text(encoding="utf-8"))["config"]["workload"]
        shutil.copy(EXAMPLE / "halves.json", self.folder)
        scenarios = [{"topology": "h200_4", "plan": "halves.json"}, *({"topology": "h200_4", "schedule": name, "workload": work} for name in ("serial", "shard_p2p"))]
        for number, (scenario, us) in enumerate(zip(scenarios, (300, 400, 350))):
            self.file(f"{number}.json", {"schema": 1, "system": "made_up", "scenario": scenario, "samples_us": [us]})
        report = json.loads(self.output("compare", "0.json", "1.json", "2.json", "--format", "json"))
        self.assertEqual([one["cases"] for one in report["scenarios"]], [3])
        self.assertEqual(report["scenarios"][0]["measured_best"], "plan halves.json")

    def test_measured_spans_are_compared_with_the_plan_of_what_ran(self):
        """The plan of a measured schedule instead of the schedule: the same prediction and the same errors of all tasks."""
        kept = {}
        for line in (ROOT / "traces/h100_2/overlap/first.jsonl").read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if "spans" in case:
                kept.setdefault(case["scenario"]["schedule"], case)
        self.assertGreater(len(kept), 3)
        for name, case in kept.items():
            scenario = case["scenario"]
            self.file("config.json", scenario)
            self.output("--config", "config.json", "--graph", "ran.json", "--dry-run")
            self.file("schedule.json", case)
            self.file("plan.json", {**case, "scenario": {"topology": scenario["topology"], "plan": "ran.json"}})
            one, other = (json.loads(self.output("compare", file, "--format", "json"))["cases"][0] for file in ("schedule.json", "plan.json"))
            for key in ("predicted_us", "error", "tasks"):
                self.assertEqual(one[key], other[key], (name, key))
