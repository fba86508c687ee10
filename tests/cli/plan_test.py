"""sim --plan: plans that are written by hand, by --graph and by Python; what is refused, and how."""
import gzip
import json
import re

from sim_case import PAIR, ROOT, SimTestCase, without_clock

MM = {"kind": "gemm", "stream": "compute", "m": 2048, "n": 2048, "k": 2048, "dtype": "bf16"}
COPY = {"kind": "copy", "stream": "transfer +1", "src": "+1", "dst": "+0", "bytes": 1e6}
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
    ({**PLACED, "buffers": [{**one, "rows": 10**8} for one in PLACED["buffers"]]}, "/buffers: take "),
]


class Plans(SimTestCase):
    def test_the_plan_of_the_documentation(self):
        """Eight lines by hand. 4096 rows of 8192 bf16 are 67 MB for four GPUs: a shard of 2048 rows has 33.6 MB."""
        page = (ROOT / "sim/plan/README.md").read_text(encoding="utf-8")
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
