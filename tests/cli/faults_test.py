"""What a run and a sweep leave when a call of the system fails: at every call of every function that output takes, in a sweep at
every third, which scripts/test --all does not leave out."""
import errno
import itertools
import os
import subprocess

from sim_case import EVERY_CASE, PAIR, SMALL, SimTestCase

OUTPUT_CALLS = {"open": errno.EMFILE, "write": errno.ENOSPC, "fsync": errno.EIO, "rename": errno.EIO, "close": errno.EDQUOT,
                "fchmod": errno.EPERM, "ftruncate": errno.EIO, "pread": errno.EIO, "mkdir": errno.ENOSPC}
SWEEP = {"schema": 1, "name": "small", "base": {**SMALL, "seeds": 1},
         "axes": {"params.chunks": [1, 2], "params.agent": ["dma", "cu"]}}


class FaultsTestCase(SimTestCase):
    def setUp(self):
        super().setUp()
        self.file("sweep.json", SWEEP)
        self.report = self.folder / "failed"

    def failing(self, call, args):
        """A run in which `call` (see tests/faults/fail_call.cpp) fails, and whether it was made at all."""
        self.report.unlink(missing_ok=True)
        environment = {**os.environ, "LD_PRELOAD": os.environ["FAIL_CALL_LIBRARY"], "FAIL_CALL": call,
                       "FAIL_CALL_REPORT": str(self.report)}
        done = subprocess.run([os.environ["SIM"], *args], cwd=self.folder, env=environment, capture_output=True,
                              encoding="utf-8", timeout=60)
        reached = self.report.exists()
        self.report.unlink(missing_ok=True)
        if done.returncode != 0 or not reached:
            self.assertEqual(done.returncode, 2 if reached else 0, done.stderr)
        self.assertRegex(done.stderr, r"\Asim: [^\n]+\n\Z" if done.returncode else r"\A\Z")
        self.assertEqual([name for name in self.files() if name.endswith(".part")], [], "left behind")
        return done, reached

    def checked(self, call, args, check):
        """Whether `call` was made in a run that passed `check`."""
        try:
            done, reached = self.failing(call, args)
            check(done)
        except AssertionError as error:
            raise AssertionError(f"where this call fails: {call}") from error
        return reached

    def at_every_call(self, function, args, check, later="", step=1):
        """Calls `check(done)` after each call of `function` has failed in a run of its own; returns how many there are, with a
        `step` at most so many."""
        for number in itertools.count(1, step):
            if not self.checked(f"{function} {number}{later} {OUTPUT_CALLS[function]}", args, check):
                return number - 1

    def results(self, out):
        return tuple((self.folder / out / name).read_bytes() for name in ("points.csv", "points.jsonl"))


class FaultsOfRuns(FaultsTestCase):
    def test_a_file_that_is_replaced(self):
        """`--trace` over an older trace: all of the old or all of the new, and exit 0 only with the new."""
        trace = self.folder / "trace.json"
        self.output(*PAIR, "--trace", "trace.json", "--format", "csv")
        new, old = trace.read_bytes(), b"what was there before"

        def begin():
            trace.write_bytes(old)
            trace.chmod(0o640)

        def check(done):
            self.assertIn(trace.read_bytes(), (old, new))
            if done.returncode == 0:
                self.assertEqual(trace.read_bytes(), new)
                self.assertEqual(done.stdout.count("\n"), 2)
            self.assertEqual(trace.stat().st_mode & 0o777, 0o640)
            begin()

        made = {}
        for function, later in itertools.product(("open", "write", "fsync", "rename", "close", "fchmod"), ("", "+")):
            begin()
            made[function] = self.at_every_call(function, [*PAIR, "--trace", "trace.json", "--format", "csv"], check, later)
        for function, least in (("open", 3), ("write", 1), ("fsync", 2), ("rename", 1), ("close", 3), ("fchmod", 1)):
            self.assertGreaterEqual(made[function], least, function)

    def test_a_new_file(self):
        """`--graph` makes a file: whole, or not there."""
        args = [*PAIR, "--graph", "graph.json", "--format", "csv"]
        self.output(*args)
        graph = self.folder / "graph.json"
        whole = graph.read_bytes()

        def check(done):
            if graph.exists():
                self.assertEqual(graph.read_bytes(), whole)
                graph.unlink()
            else:
                self.assertEqual(done.returncode, 2)

        for function in ("open", "write", "fsync", "rename", "close"):
            graph.unlink(missing_ok=True)
            self.assertGreaterEqual(self.at_every_call(function, args, check), 1, function)


class FaultsOfSweeps(FaultsTestCase):
    STEP = 1 if EVERY_CASE else 3

    def setUp(self):
        super().setUp()
        self.output("sweep", "sweep.json", "--out", "whole")
        self.whole = self.results("whole")

    def finish(self, done):
        """After a failure the sweep can be ended, with the same bytes, whatever was there."""
        if done.returncode == 0:
            self.assertEqual(self.results("out"), self.whole)
        begun = (self.folder / "out" / "sweep.json").exists()
        self.output("sweep", "sweep.json", "--out", "out", *(["--resume"] if begun else []))
        self.assertEqual(self.results("out"), self.whole)
        for path in sorted((self.folder / "out").iterdir()):
            path.unlink()
        (self.folder / "out").rmdir()

    def test_from_the_start(self):
        args = ["sweep", "sweep.json", "--out", "out", "--workers", "2"]
        made = {function: self.at_every_call(function, args, self.finish, step=self.STEP)
                for function in ("open", "write", "fsync", "rename", "close", "ftruncate", "pread", "mkdir")}
        for function, least in (("open", 6), ("write", 6), ("fsync", 6), ("rename", 3), ("close", 5), ("ftruncate", 2),
                                ("pread", 2), ("mkdir", 1)):
            self.assertGreaterEqual(made[function], least, function)

    def test_in_a_resumed_sweep(self):
        """The folder of a sweep that ended half-way, with a row that is not vouched for."""
        self.failing(f"write 6+ {errno.ENOSPC}", ["sweep", "sweep.json", "--out", "out", "--workers", "1"])
        half = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertIn("progress.json", half)
        self.assertNotEqual((half["points.csv"], half["points.jsonl"]), self.whole)

        def check(done):
            self.finish(done)
            (self.folder / "out").mkdir()
            for name, content in half.items():
                (self.folder / "out" / name).write_bytes(content)

        args = ["sweep", "sweep.json", "--out", "out", "--resume", "--workers", "2"]
        for function, least in (("open", 5), ("write", 4), ("fsync", 4), ("rename", 1), ("ftruncate", 2), ("pread", 1)):
            self.assertGreaterEqual(self.at_every_call(function, args, check, step=self.STEP), least, function)


class FaultsOfMemory(FaultsTestCase):
    """An allocation that fails is one line and exit 2, and no output is short. Every allocation of a simulation is tried in
    tests/faults/allocation_test.cpp; here are some of those of the whole program, ever further apart."""

    def some_allocations(self, args, check):
        number = 1
        while self.checked(f"malloc {number} {errno.ENOMEM}", args, check):
            number += 1 + number // (5 if EVERY_CASE else 2)
        return number

    def test_a_run(self):
        whole = self.output(*PAIR, "--format", "csv").split(",")

        def check(done):
            if done.returncode == 0:
                self.assertEqual(len(done.stdout.split(",")), len(whole))

        self.assertGreater(self.some_allocations([*PAIR, "--format", "csv"], check), 1000)

    def test_a_sweep(self):
        self.output("sweep", "sweep.json", "--out", "whole")
        whole = self.results("whole")

        def check(done):
            if (self.folder / "out" / "sweep.json").exists():
                self.output("sweep", "sweep.json", "--out", "out", "--resume")
                self.assertEqual(self.results("out"), whole)
            else:
                self.assertEqual(done.returncode, 2)
            for path in sorted((self.folder / "out").glob("*")):
                path.unlink()

        self.assertGreater(self.some_allocations(["sweep", "sweep.json", "--out", "out", "--workers", "2"], check), 1000)
