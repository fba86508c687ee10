"""Tests that lack data or a tool are skipped, not passed: what the exit codes of both runners say, and what scripts/test prints."""
import subprocess
import sys

from sim_case import ROOT, SimTestCase

CLASSES = """
import unittest

class Some(unittest.TestCase):
    def test_runs(self):
        pass
    def test_lacks_a_tool(self):
        self.skipTest("no such\\n  tool")

@unittest.skip("no tool at all")
class None_(unittest.TestCase):
    def test_one(self):
        pass
    def test_other(self):
        pass

class NoSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no server")
    def test_one(self):
        pass
    def test_other(self):
        pass

class Fails(unittest.TestCase):
    def test_fails(self):
        self.fail()
    def test_lacks_a_tool(self):
        self.skipTest("no tool")

class All(unittest.TestCase):
    def test_runs(self):
        pass

class Empty(unittest.TestCase):
    pass
"""

LOG = """3/4 Testing: cli.page
3/4 Test: cli.page
Output:
----------------------------------------------------------
skipped: 2 of 2: no browser
<end of output>
4/4 Testing: validation: tables
4/4 Test: validation: tables
skipped: 1 of 3: no such tables
skipped: 1 of 3: no compiler
a line with skipped: in it
"""
SUMMARY = """
100% tests passed, 0 tests failed out of 4

The following tests did not run:
\t  3 - cli.page (Skipped)
"""


class Skips(SimTestCase):
    def test_python_classes(self):
        self.file("some_test.py", CLASSES)
        for name, code, lines in (("Some", 0, ["skipped: 1 of 2: no such tool"]), ("None_", 77, ["skipped: 2 of 2: no tool at all"]),
                                  ("NoSetUp", 77, ["skipped: 2 of 2: no server"]), ("Fails", 1, ["skipped: 1 of 2: no tool"]),
                                  ("All", 0, []), ("Empty", 1, ["some_test.Empty has no tests"]), ("Missing", 1, [])):
            with self.subTest(name=name):
                done = subprocess.run([sys.executable, ROOT / "tests" / "cli" / "run_class.py", "some_test." + name],
                                      cwd=self.folder, capture_output=True, encoding="utf-8", timeout=60)
                self.assertEqual((done.returncode, done.stdout.splitlines()), (code, lines), done.stderr)

    def end_of_tests(self, log):
        done = subprocess.run(["awk", "-v", "log_file=" + self.file("LastTest.log", log), "-f", ROOT / "scripts" / "skipped.awk"],
                              input="4/4 Test #4: validation: tables ... Passed\n" + SUMMARY, cwd=self.folder, capture_output=True,
                              encoding="utf-8", timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("4/4 Test #4"))
        self.assertTrue(done.stdout.endswith(SUMMARY[1:]), done.stdout)
        return done.stdout

    def test_reasons_stand_before_the_summary(self):
        self.assertIn("\n2 tests were skipped, in all or in part:\n  cli.page: 2 of 2: no browser\n"
                      "  validation: tables: 1 of 3: no such tables\n  validation: tables: 1 of 3: no compiler\n100%",
                      self.end_of_tests(LOG))
        self.assertIn("No test was skipped.", self.end_of_tests(LOG.replace("skipped: ", "")))
