"""The README is true: its commands run, and its tables of schedules name those that exist."""
import os
import re
import shutil
import subprocess

from sim_case import ROOT, SimTestCase


def blocks(text, tag):
    """The contents of the fenced blocks with a tag; those without one have the tag ''."""
    return [content for found, content in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if found == tag]


def commands(text):
    """The lines of ```sh blocks that start with scripts/sim, with continuation lines joined."""
    lines = "".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("scripts/sim ")]


def tables(text):
    """Every table as a list of rows, a row as a list of cells; the first row is the heading."""
    found = re.findall(r"^(?:\|.*\|[ ]*\n)+", text, re.M)
    return [[[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
            for table in found]


class Readme(SimTestCase):
    def setUp(self):
        super().setUp()
        self.text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.schedules = [line.split()[0] for kind in ("schedules", "schedules in use")
                          for line in self.output("list", kind).splitlines() if line.startswith("  ")]

    def test_commands_run(self):
        # In a copy of the repository root, as a reader would start them, in order.
        for name in ("configs", "tests"):
            shutil.copytree(ROOT / name, self.folder / name)
        for name in ("models", "traces"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "scripts").mkdir()
        (self.folder / "scripts" / "sim").symlink_to(os.environ["SIM"])
        run = commands(self.text)
        self.assertGreaterEqual(len(run), 2)
        for line in run:
            with self.subTest(command=line):
                done = subprocess.run(["bash", "-c", "set -o pipefail; " + line], cwd=self.folder, capture_output=True,
                                      encoding="utf-8", stdin=subprocess.DEVNULL, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_first_output_is_the_real_one(self):
        shown = blocks(self.text, "")[0]
        words = commands(self.text)[0].split("#")[0].split()
        clock = re.compile(r"simulated in \S+ ms")
        self.assertEqual(clock.sub("", shown), clock.sub("", self.output(*words[1:])))

    def test_tables_of_published_figures_are_those_of_the_program(self):
        self.assertIn(self.output("reproduce", "--format", "summary"), self.text)
        cases = (ROOT / "configs" / "experiments" / "README.md").read_text(encoding="utf-8")
        self.assertIn(self.output("reproduce", "--format", "markdown"), cases)

    def test_every_schedule_is_named(self):
        self.assertTrue(self.schedules)
        for name in self.schedules:
            self.assertIn(f"`{name}`", self.text)

    def test_tables_name_no_schedule_that_does_not_exist(self):
        of_schedules = [table for table in tables(self.text) if "schedule" in table[0][0].lower()]
        self.assertTrue(of_schedules, "README.md has no table with 'schedule' over its first column")
        for table in of_schedules:
            for row in table[2:]:
                for name in re.findall(r"`([a-z0-9_]+)`", row[0]):
                    self.assertIn(name, self.schedules)
