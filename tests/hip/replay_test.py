"""replay is built without a GPU, says so when it is run, and refuses plans that it can't run.

Usage: replay_test.py amd|nvidia
Exit 77, with the reason, where the compiler is not installed. GPUs that are there are hidden from the program.
"""
import copy
import json
import sys

from hip_program import ROOT, ProgramTestCase, run_tests

sys.path[:0] = [str(ROOT / "models" / "calibration" / "hip"), str(ROOT / "models" / "calibration" / "hip" / "cases")]

from measure import plans  # noqa: E402
import as_plans  # noqa: E402
import lists  # noqa: E402
import single  # noqa: E402

BLOCK_A, BLOCK_B, BLOCK_C = [0, 0, 0, 16, 24], [1, 0, 0, 24, 8], [2, 0, 0, 16, 8]
GEMM = {"id": 0, "name": "gemm", "kind": "gemm", "gpu": 0, "stream": "compute", "shard": -1, "chunk": -1, "after": [],
        "m": 16, "n": 8, "k": 24, "dtype": "bf16", "accumulate": False, "from": [BLOCK_A, BLOCK_B], "to": [BLOCK_C]}
COPY = {"id": 1, "name": "copy", "kind": "copy", "gpu": 1, "stream": "transfer 0", "shard": 0, "chunk": 0, "after": [0],
        "src": 0, "dst": 1, "agent": "dma", "transfer": "pull", "copy_cus": 0, "from": [[2, 8, 0, 8, 8]],
        "to": [[3, 0, 0, 8, 8]]}
PLAN = {"schema": 1,
        "config": {"topology": "h200_2.json", "schedule": "serial", "params": {},
                   "workload": {"collective": "all_gather", "gemm": {"m": 16, "n": 8, "k": 24, "dtype": "bf16"}}},
        "buffers": [{"gpu": gpu, "name": name, "rows": rows, "columns": columns, "dtype": "bf16"} for gpu, name, rows, columns
                    in [(0, "a", 16, 24), (0, "b", 24, 8), (0, "c", 16, 8), (1, "c", 16, 8)]],
        "inputs": [BLOCK_A, BLOCK_B], "results": [BLOCK_C], "tasks": [GEMM, COPY]}

# Without places and without a config.
OWN = {"schema": 2, "gpus": 2, "measure": {"repeats": 3, "at_peak_clock": False, "marks": True}, "tasks": [
    {"gpu": 0, "kind": "gemm", "stream": "compute", "m": 64, "n": 64, "k": 64, "dtype": "bf16", "gemm_cus": 8},
    {"gpu": 0, "kind": "memory_bound", "stream": "transfer 1", "read_bytes": 0, "write_bytes": 0, "time_us": 50, "waits": True},
    {"gpu": 0, "kind": "copy", "stream": "transfer 1", "src": 1, "dst": 0, "bytes": 65536, "run_bytes": 4096},
    {"gpu": 1, "kind": "local_copy", "stream": "local", "bytes": 65536, "agent": "cu", "copy_cus": 8}]}
BAD_OWN = [
    (["gpus"], 0, "/gpus: is 0, allowed: 1 to 64"),
    (["measure", "repeats"], 0, "/measure/repeats: is 0, allowed: 1 to 10000"),
    (["measure", "marks"], 1, "/measure/marks: expected true or false"),
    (["tasks", 0, "m"], 20, "/tasks/0/m: is 20, allowed: multiples of 8, where no places are given"),
    (["tasks", 0, "accumulate"], True, "/tasks/0: accumulates, where no places are given"),
    (["tasks", 0, "stream"], "local", "/tasks/0: expected stream compute"),
    (["tasks", 1, "waits"], None, "/tasks/1: expected waits, time_us and no bytes"),
    (["tasks", 1, "read_bytes"], 1, "/tasks/1: expected waits, time_us and no bytes"),
    (["tasks", 1, "time_us"], 0, "/tasks/1/time_us: is 0, allowed: 1 to 1000000"),
    (["tasks", 2, "bytes"], 1000, "/tasks/2/bytes: is 1000, allowed: multiples of 16"),
    (["tasks", 2, "run_bytes"], 48, "/tasks/2: has run_bytes that are no divisor of bytes"),
    (["tasks", 2, "transfer"], "push", "/tasks/2: expected the GPU that executes it: dst pulls, src pushes"),
    (["tasks", 3, "copy_cus"], 0, "/tasks/3/copy_cus: is 0, allowed: 1 to 4096"),
    (["tasks", 3, "kind"], "reduce", "/tasks/3: kind is reduce, allowed: gemm, copy, local_copy, memory_bound that waits; with places also reduce"),
    (["tasks", 0], {**OWN["tasks"][1], "stream": "compute"}, "/: can't be run: all streams of rank 0 begin with a wait"),
]
# Where in the plan something else stands (None: is missing), and what the message says.
BAD_PLANS = [
    (["schema"], 3, "/schema: is 3, allowed: 1 to 2"),
    (["not_placed"], "polls flags", "/: can't be run: polls flags"),
    (["buffers"], None, "/: has no 'gpus'"),
    (["config"], None, "/: has places, but no config with the workload that its results are compared with"),
    (["buffers", 0, "columns"], 20, "/buffers/0: rows of 20 elements, allowed: multiples of 8"),
    (["buffers", 0, "dtype"], "fp8", "/buffers/0: dtype: allowed: bf16"),
    (["config", "workload", "collective"], "all_reduce", "collective is all_reduce, allowed: all_gather, reduce_scatter"),
    (["config", "workload", "order"], "gemm_first", "order is gemm_first, allowed with all_gather: collective_first"),
    (["config", "workload", "gemm", "dtype"], "fp8", "dtype is fp8, allowed: bf16"),
    (["config", "workload", "gemm", "m"], 0.5, "/config/workload/gemm/m: expected a whole number"),
    (["tasks"], [], "/tasks: is empty"),
    (["tasks", 0, "kind"], "collective", "/tasks/0: kind is collective, allowed: gemm, copy, local_copy, memory_bound that waits, reduce"),
    (["tasks", 0, "gates"], [], "/tasks/0: can't be run: waits for shares of other tasks"),
    (["tasks", 0, "after"], [0], "/tasks/0/after/0: can't be run: waits for a task that is enqueued later"),
    (["tasks", 0, "k"], 16, "/tasks/0: expected blocks of m, n, k"),
    (["tasks", 0, "stream"], "local", "/tasks/0: expected stream compute"),
    (["tasks", 0, "from", 0], [0, 8, 0, 16, 24], "/tasks/0/from/0: reaches beyond its buffer"),
    (["tasks", 0, "from", 0], [9, 0, 0, 16, 24], "/tasks/0/from/0/0: is 9, allowed: 0 to 3"),
    (["tasks", 0, "from", 0], [0, 0, 0, 16], "/tasks/0/from/0: expected [buffer, row, column, rows, columns]"),
    (["tasks", 0, "from", 0], [0, 0, 0, 8, 24], "/tasks/0: expected A, B and C that fit"),
    (["tasks", 1, "id"], 2, "/tasks/1/id: is 2, allowed: 1"),
    (["tasks", 1, "gpu"], 0, "/tasks/1: expected the GPU that executes it: dst pulls, src pushes"),
    (["tasks", 1, "src"], 1, "/tasks/1: expected blocks in the memory of src and dst"),
    (["tasks", 1, "agent"], "cu", "/tasks/1/copy_cus: is 0, allowed: 1 to 4096"),
    (["tasks", 1, "to", 0], [3, 0, 0, 16, 8], "/tasks/1: expected one block from, one of the same size to"),
    (["tasks", 1, "to", 0], [3, 0, 4, 8, 4], "/tasks/1/to/0: columns 4 + 4, allowed: multiples of 8"),
]
BAD_TEXTS = [("", "no plans; a line is what sim --graph writes"), ("{\"schema\": 1", "no JSON: no '}' at byte 12"),
             ("nonsense", "no JSON: no value at byte 0"), ("[1, 2]", "/: expected an object")]
BAD_ARGUMENTS = [
    ([], "usage: replay PLANS"),
    (["no_such.json"], "no_such.json: cannot be read"),
    (["."], ".: is a directory, expected a file of plans"),
    (["plan.json", "plan.json"], "unknown argument plan.json; usage: "),
    (["plan.json", "--repeats", "0"], "--repeats 0: allowed: 1, 2, 3"),
    (["plan.json", "--out"], "--out needs a value; usage: "),
    (["plan.json", "--seconds", "x"], "--seconds x: allowed: 1, 2, 3"),
]


def changed(path, value, plan=PLAN):
    plan = copy.deepcopy(plan)
    place = plan
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(plan)


class Replay(ProgramTestCase):
    program_name = "replay"

    def setUp(self):
        super().setUp()
        (self.folder / "plan.json").write_text(json.dumps(PLAN))

    def test_is_built_for_every_architecture(self):
        self.check_architectures()

    def test_says_that_there_is_no_gpu(self):
        self.assertRegex(self.refusal("plan.json", "--out", "out.jsonl"), "^no GPU: .")
        (self.folder / "many.jsonl").write_text(changed(["schema"], 3) + "\n" + json.dumps(PLAN) + "\n")
        self.assertRegex(self.refusal("many.jsonl"), "^no GPU: .")  # in a list, a bad plan is noted in its place

    def test_takes_the_plans_of_measure(self):
        for gpus in plans.COUNTS:
            lines = plans.shipped(gpus)[::10]
            self.assertGreater(len(lines), 5)
            for line in lines:  # a plan that is alone is read before a GPU is needed
                (self.folder / "one.jsonl").write_text(line + "\n")
                self.assertRegex(self.refusal("one.jsonl"), "^no GPU: .")

    def test_takes_plans_that_are_of_no_schedule(self):
        config = {key: value for key, value in PLAN["config"].items() if key in ("topology", "workload")}
        (self.folder / "own.json").write_text(changed(["config"], config))
        self.assertRegex(self.refusal("own.json"), "^no GPU: .")

    def test_takes_plans_of_cases(self):
        machine = lists.Machine(4, 132)
        cases = [case for name in ("two_gpus", "four_gpus", "beside", "drawn", "local") for case in single.singles(getattr(lists, name)(machine))]
        texts = [json.dumps(OWN)] + [json.dumps(plan) for case in cases[::60] if case[0] in as_plans.PARTS
                                     for plan in as_plans.plans_of(*case, machine.units)]
        self.assertGreater(len(texts), 50)
        for text in texts:
            (self.folder / "own.json").write_text(text)
            self.assertRegex(self.refusal("own.json"), "^no GPU: .")

    def test_refuses_bad_plans(self):
        texts = [(changed(path, value), message) for path, value, message in BAD_PLANS] + BAD_TEXTS
        texts += [(changed(path, value, OWN), message) for path, value, message in BAD_OWN]
        for text, message in texts:
            with self.subTest(message=message):
                (self.folder / "bad.json").write_text(text)
                said = self.refusal("bad.json")
                self.assertTrue(said.startswith("bad.json: "), said)
                self.assertIn(message, said)

    def test_refuses_bad_arguments(self):
        self.check_refused_arguments(BAD_ARGUMENTS)


if __name__ == "__main__":
    run_tests(Replay)
