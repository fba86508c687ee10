"""ThreadSanitizer over what runs on several threads: sweeps, advice, comparisons, and the simulations of a large run. The
program of the tree `tsan` has a TBB of std::thread (tests/tsan), so that nothing it waits for is hidden."""
import csv
import os
import pathlib
import subprocess
import unittest

from sim_case import ROOT, SMALL, SimTestCase

TREE = ROOT / "build" / "tsan"
SWEEP = {"schema": 1, "name": "races", "base": {**{key: value for key, value in SMALL.items() if key != "params"}, "seeds": 2},
         "axes": {"topology": ["h200_4", "mi250x_8"], "schedule": ["serial", "ring_chunked", "hetero_fused_1d", "flag_gated"],
                  "params.chunks": [1, 2, 3], "params.agent": ["dma", "cu"],
                  "what_if.device.dma.peer_engines": [1, 2]},
         "where": ["gpus * chunks > 4"]}


class Races(SimTestCase):
    @classmethod
    def setUpClass(cls):
        for target in ("sim", "race"):
            subprocess.run([ROOT / "scripts" / "build", "tsan", target], check=True)

    def watched(self, program, *args):
        environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66 halt_on_error=0"}
        return subprocess.run([str(program), *args], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, encoding="utf-8", timeout=1500)

    def quiet(self, *args):
        done = self.watched(TREE / "sim", *args)
        self.assertNotIn("ThreadSanitizer", done.stderr, args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_race_is_seen(self):
        done = self.watched(TREE / "race")
        self.assertEqual(done.returncode, 66)
        self.assertIn("data race", done.stderr)

    def test_a_sweep(self):
        self.file("sweep.json", SWEEP)
        self.quiet("sweep", "sweep.json", "--out", "watched", "--workers", "4")
        self.output("sweep", "sweep.json", "--out", "alone", "--workers", "1")
        one, other = ((pathlib.Path(self.folder) / name / "points.csv").read_bytes() for name in ("watched", "alone"))
        self.assertGreater(one.count(b"\n"), 60)
        self.assertEqual(one, other)

    def test_a_large_run(self):
        """Its simulations share the cores (sim/run/run.cpp)."""
        args = ["--topology", "mi300x_16", "--schedule", "hetero_fused_1d", "--set", "chunks=128", "--format", "csv"]
        self.assertEqual(len(self.quiet(*args).splitlines()), 2)

    def test_drawn_orders(self):
        """Of 570 tasks each, together more than are worth all cores (sim/engine/engine.hpp)."""
        args = ["--topology", "h200_8", "--schedule", "hetero_fused_1d", "--set", "chunks=8", "--set", "transfer=push", "--seeds",
                "16", "--format", "csv"]
        one, other = (next(csv.DictReader(text.splitlines())) for text in (self.quiet(*args), self.output(*args)))
        self.assertNotEqual(one["makespan_p10_us"], one["makespan_p90_us"])
        self.assertEqual({**one, "wall_ms": ""}, {**other, "wall_ms": ""})

    def test_advice(self):
        self.assertIn("serial", self.quiet("advise", "--topology", "h200_2", "--gemm", "2048x1024x2048", "--agent", "dma",
                                           "--seeds", "1"))


if __name__ == "__main__":
    unittest.main()
