"""scripts/sim starts at once when nothing has changed, from anywhere, and passes everything through."""
import os
import pathlib
import subprocess
import time
import unittest

from sim_case import PAIR, ROOT, SimTestCase

SCRIPT = ROOT / "scripts" / "sim"


@unittest.skipUnless(pathlib.Path(os.environ["SIM"]).resolve() == ROOT / "build" / "release" / "sim",
                     "scripts/sim would build another tree than the one under test")
class Scripts(SimTestCase):
    def start(self, *command, **options):
        return subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, encoding="utf-8",
                              timeout=60, **options)

    def setUp(self):
        super().setUp()
        self.assertEqual(self.start(ROOT / "scripts" / "build", "release", "sim").returncode, 0)

    def test_adds_nothing(self):
        for args in ([*PAIR, "--format", "csv", "--dry-run"], ["explain", "ring_chunked"], ["explain", "a  b*\n"],
                     ["list", ""], ["--set", ""]):
            direct, through = self.start(os.environ["SIM"], *args), self.start(SCRIPT, *args)
            self.assertEqual((through.returncode, through.stdout, through.stderr),
                             (direct.returncode, direct.stdout, direct.stderr))

    def test_paths_are_the_callers(self):
        (self.folder / "deep").mkdir()
        (self.folder / "deep" / "start").symlink_to(SCRIPT)
        done = self.start("deep/start", *PAIR, "--graph", "deep/graph.json", "--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.files(), ["deep", "deep/graph.json", "deep/start"])

    def test_starts_at_once(self):
        def seconds(program):
            begin = time.monotonic()
            self.start(program, "--version")
            return time.monotonic() - begin
        extra = min(seconds(SCRIPT) for _ in range(5)) - min(seconds(os.environ["SIM"]) for _ in range(5))
        self.assertLess(extra, 1.0)  # 0.1 s on an idle machine

    def test_standard_input_reaches_the_program(self):
        done = self.start(SCRIPT, "batch", "-", input='{"topology": "h200_2", "schedule": "serial"}\n')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("makespan_us", done.stdout)

    def test_build_says_how_it_is_used(self):
        done = self.start(ROOT / "scripts" / "build")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage", done.stderr)
