"""What the tests of the command line share: a temporary folder, and the program named by SIM run in it."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVERY_CASE = bool(os.environ.get("OVERLAP_ALL"))  # instead of a sample: scripts/test --all
PAIR = ["--topology", "h200_4.json", "--schedule", "hetero_fused_1d"]
SMALL = {"topology": "h200_4.json", "schedule": "hetero_fused_1d", "params": {"chunks": 2},
         "workload": {"collective": "all_gather", "gemm": {"m": 4096, "n": 1024, "k": 2048, "dtype": "bf16"}}}


def without_clock(result):
    """A result less what differs from run to run."""
    return {key: value for key, value in result.items() if key != "wall_ms"}


def without_command(trace):
    """The bytes of a trace less the command that made it, which names the file."""
    return re.sub(rb'"command":"(?:[^"\\]|\\.)*",', b"", trace)


class SimTestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        """Writes text, or data as JSON, into the temporary folder and returns the name."""
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def page_data(self, name):
        """What a page shows: its title, how it was made, and its blocks."""
        page = (self.folder / name).read_text(encoding="utf-8")
        return json.loads(re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.DOTALL)[1])

    def assert_needs_nothing(self, name):
        """No other file, nor the network; what a browser asks for is in report_page_test."""
        page = (self.folder / name).read_text(encoding="utf-8")
        for outside in ("<link", "<img", "<iframe", "<script src", "@import"):
            self.assertNotIn(outside, page)

    def tables(self, name, heading):
        """Rows of the tables of a page below that heading, as the shown texts."""
        below, found = False, []
        for block in self.page_data(name)["blocks"]:
            if "heading" in block:
                below = block["heading"] == heading
            if below and "table" in block:
                found += [[cell if isinstance(cell, str) else cell["text"] for cell in row] for row in block["table"]["rows"]]
        return found

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def sim(self, *args, stdin=None):
        environment = {key: value for key, value in os.environ.items() if key != "OVERLAP_CONFIGS"}
        return subprocess.run([os.environ["SIM"], *args], cwd=self.folder, env=environment, input=stdin or "",
                              capture_output=True, encoding="utf-8", errors="replace", timeout=300)  # a hang, not a bound on time

    def output(self, *args, stdin=None):
        """Standard output of a run that succeeds and has nothing to say on standard error but how far it is."""
        done = self.sim(*args, stdin=stdin)
        said = re.sub(r"^\d+ %  \d+ of \d+  .*\n", "", done.stderr, flags=re.MULTILINE)
        self.assertEqual((done.returncode, said), (0, ""), args)
        return done.stdout

    def result(self, *args):
        return json.loads(self.output(*args, "--format", "json"))

    def assert_refused(self, args, *expected):
        """Exit code 2, one line on standard error that holds all of `expected`, and nothing else left behind."""
        before = self.files()
        done = self.sim(*args)
        with self.subTest(args=args):
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, r"\Asim: [^\n]+\n\Z")
            for text in expected:
                self.assertIn(text, done.stderr)
            self.assertEqual(self.files(), before)
