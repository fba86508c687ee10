"""READMEs are true: their commands run, what they show is what the program prints, and what they name exists.

readme_marks.py says how a README states where its contents come from."""
import os
import re
import shutil
import unittest

import readme_marks
from readme_marks import LONG, ROOT, ReadmeTestCase, agrees, commands, fenced, outputs, readmes, tables, values, without_clock
from sim_case import SimTestCase


def anchors(text):
    """What a link to a heading is called: lower case, dashes for blanks, no other signs."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class ReadmeCommands(ReadmeTestCase):
    """In one folder, and blocks first: a command of test_commands_run may read what one of a block wrote."""

    def test_commands_run(self):
        # README by README, in order: a command may read what the one before it wrote.
        # Once each, and not where another test of this class runs it: in whatever format, through whatever pipe, or with further folders.
        ran = {one.command.split(" | ")[0].split(" --format")[0]
               for text in self.readmes.values() for one in outputs(text) + values(text)}
        ran |= {" ".join(words[:3]) for words in map(str.split, ran)
                if words[:2] == ["scripts/sim", "compare"] and not any(word.startswith("-") for word in words)}
        marked = len(ran)
        for name, text in self.readmes.items():
            for line, long in commands(text):
                if line.split("#")[0].strip() in ran or (long and not LONG):
                    continue
                ran.add(line.split("#")[0].strip())
                with self.subTest(readme=name, command=line):
                    if "--plot" in line and shutil.which("gnuplot") is None:
                        self.skipTest("gnuplot is not installed")
                    done = self.shell.run("set -o pipefail; " + line)
                    self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(ran) - marked, 20)

    def test_first_command_is_shown_with_its_output(self):
        text = self.readmes["README.md"]
        first = commands(text)[0][0].split("#")[0].strip()
        self.assertTrue(outputs(text)[0].command.startswith(first + " | sed"), first)

    def test_blocks_are_what_the_program_prints(self):
        marks = self.marks(outputs)
        self.assertGreaterEqual(len(marks), 5)
        for name, one in marks:
            with self.subTest(readme=name, command=one.command):
                self.assertEqual(without_clock(one.shown), without_clock(self.shell.output(one.command)))

    def test_figures_in_prose_are_those_of_the_program(self):
        marks = self.marks(values)
        self.assertGreaterEqual(len(marks), 20)
        for name, one in marks:
            with self.subTest(readme=name, text=one.text):
                self.assertIn(one.text, one.section)
                value = self.shell.value(one)
                self.assertTrue(agrees(one.text, value), f"{one.expression} is {value}")

    def test_every_mark_is_read(self):
        for name, text in self.readmes.items():
            for word, found in (("output", outputs(text)), ("values", readme_marks.VALUES.findall(text))):
                self.assertEqual(len(re.findall(rf"<!-- {word}\b", text)), len(found), name)


class ReadmeMarks(unittest.TestCase):
    """The checks themselves fail where they should."""

    def test_numbers(self):
        for text, value, good in [("3.3 %", 3.349, True), ("3.3 %", 3.351, False), ("1,306 cases", 1306, True),
                                  ("−1.2 %", -1.24, True), ("−1.2 %", 1.2, False), ("0.7", 0.65, True), ("12", 12.6, False),
                                  ("19 of 47", [19, 47], True), ("19 of 47", [19, 46], False), ("19 of", [19, 47], False)]:
            with self.subTest(text=text, value=value):
                self.assertEqual(agrees(text, value), good)

    def test_values_and_outputs(self):
        text = "# a\n5 %\n# b\nIt is 3 %.\n<!-- values: cat x.json\n3 % = r[\"a\"]\n-->\n<!-- output, long: ls -->\n| a |\n|---|\n"
        value, = values(text)
        self.assertEqual((value.command, value.text, value.expression, value.long), ("cat x.json", "3 %", 'r["a"]', False))
        self.assertNotIn("5 %", value.section)
        output, = outputs(text)
        self.assertEqual((output.command, output.shown, output.long), ("ls", "| a |\n|---|\n", True))

    def test_find(self):
        self.assertEqual(readme_marks.find([{"a": 1}, {"a": 2, "b": 3}], a=2)["b"], 3)
        with self.assertRaises(LookupError):
            readme_marks.find([{"a": 1}, {"a": 1}], a=1)


class ReadmeNames(SimTestCase):
    def test_every_schedule_is_defined_and_no_other(self):
        schedules = [line.split()[0] for kind in ("schedules", "schedules in use")
                     for line in self.output("list", kind).splitlines() if line.startswith("  ")]
        self.assertTrue(schedules)
        text = readmes()["sim/schedules/README.md"]
        for name in schedules:
            self.assertIn(f"`{name}`", text)
        of_schedules = [table for table in tables(text) if "schedule" in table[0][0].lower()]
        self.assertTrue(of_schedules, "no table with 'schedule' over its first column")
        for table in of_schedules:
            for row in table[2:]:
                for name in re.findall(r"`([a-z0-9_]+)`", row[0]):
                    self.assertIn(name, schedules)

    def test_links_lead_to_headings(self):
        # [text](path#heading) or [text](#heading).
        texts = readmes()
        followed = 0
        for name, text in texts.items():
            for path, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
                with self.subTest(readme=name, path=path, heading=heading):
                    target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                    self.assertIn(heading, anchors(texts[target]))
                followed += 1
        self.assertGreaterEqual(followed, 50)

    def test_paths_and_links_exist(self):
        # `sim/run/run.cpp` in backticks, and [text](path) where it is no address.
        named = 0
        for name, text in readmes().items():
            folder = (ROOT / name).parent
            prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
            paths = re.findall(r"`((?:sim|models|configs|traces|tests|scripts)/[\w./*-]+)`", prose)
            found = [(ROOT, path) for path in paths]
            found += [(folder, path) for path in re.findall(r"\]\(([^)#:]+)\)", prose)]
            for base, path in found:
                with self.subTest(readme=name, path=path):
                    self.assertTrue(list(base.glob(path)) if "*" in path else (base / path).exists())
                named += 1
        self.assertGreaterEqual(named, 50)

    def test_commands_that_are_named_exist(self):
        known = set(re.findall(r"^  (\w+) ", self.output("--help").split("SUBCOMMANDS:")[-1].split("Subcommands:")[-1], re.M))
        self.assertIn("sweep", known)
        for name, text in readmes().items():
            for command in re.findall(r"`sim ([a-z]+)", text):
                with self.subTest(readme=name, command=command):
                    self.assertIn(command, known)
        self.assertTrue(fenced(readmes()["README.md"], "sh"))
