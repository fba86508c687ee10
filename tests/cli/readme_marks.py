"""What READMEs and notes promise, as data: commands to run, blocks that a program prints, figures that a program knows.

A README, or a notes.md beside it, states where its contents come from in comments, which a reader of the rendered page does not see:

    <!-- output: COMMAND -->         before a fenced block or a table: exactly what COMMAND prints
    <!-- values: COMMAND             after prose or a table: COMMAND prints JSON, which the expressions call `r`;
    TEXT = EXPRESSION                TEXT stands in the section above, and its number is EXPRESSION, rounded;
                                     a list is the numbers of TEXT in turn
    -->

`output, long:` and `values, long:` mark commands of more than 20 s, as does `# long` behind a command in a ```sh block.
They run where OVERLAP_ALL is set. Every command runs in a copy of the repository's root.

    SIM=build/release/sim python3 tests/cli/readme_marks.py [--long] [README ...]     writes the blocks of output anew
    python3 tests/cli/readme_marks.py --rows README           prints the rows of its tables as JSON, for marks of values
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get("OVERLAP_ALL"))
CLOCK = re.compile(r"simulated in \S+ ms")
BLOCK = re.compile(r"<!-- output(, long)?: (.*?) -->\n(?:```\n(.*?)^```$|((?:\|[^\n]*\n)+))", re.M | re.S)
VALUES = re.compile(r"<!-- values(, long)?: (.*?)\n(.*?)^-->$", re.M | re.S)


@dataclass
class Output:
    command: str
    long: bool
    shown: str
    span: tuple  # of `shown` in the text


@dataclass
class Value:
    command: str
    long: bool
    text: str
    expression: str
    section: str  # what stands above the mark, from the last heading


def readmes():
    """Every page of the repository, by path from the root; none of build trees, and not what was so in former versions."""
    found = [path for path in ROOT.rglob("*.md")
             if not path.relative_to(ROOT).parts[0].startswith(("build", ".")) and path.name != "CHANGELOG.md"]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(found)}


def outputs(text):
    return [Output(one[2], bool(one[1]), *((one[3], one.span(3)) if one[3] is not None else (one[4], one.span(4))))
            for one in BLOCK.finditer(text)]


def values(text):
    found = []
    for one in VALUES.finditer(text):
        section = " ".join(re.split(r"^#+ .*$", text[:one.start()], flags=re.M)[-1].split())
        for line in one[3].splitlines():
            shown, expression = line.split(" = ", 1)
            found.append(Value(one[2], bool(one[1]), shown.strip(), expression.strip(), section))
    return found


def fenced(text, tag):
    """The contents of the fenced blocks with a tag; those without one have the tag ''."""
    return [content for found, content in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if found == tag]


def commands(text):
    """(command, long) for the lines of ```sh blocks that start with scripts/sim, continuation lines joined, and for such
    commands in `backticks`, if no word of theirs is a placeholder (FILE)."""
    lines = "".join(fenced(text, "sh")).replace("\\\n", " ").splitlines()
    quoted = [line for line in re.findall(r"`(scripts/sim [^`]+)`", text) if not re.search(r"\b[A-Z]{3,}\b", line)]
    return [(line, bool(re.search(r"# long\b", line))) for line in lines + quoted if line.startswith("scripts/sim ")]


def without_clock(text):
    return CLOCK.sub("", text)


def find(items, **wanted):
    """The one of `items`, objects, with these values."""
    found = [item for item in items if all(item.get(key) == value for key, value in wanted.items())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} items with {wanted}")
    return found[0]


def tables(text):
    """Every table as a list of rows, a row as a list of cells; the first row is the heading."""
    found = re.findall(r"^(?:\|[^\n]*\|[ ]*\n)+", text, re.M)
    return [[[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
            for table in found]


def rows(text):
    """The rows of all tables as objects, whose keys are the headings."""
    return [dict(zip(table[0], row)) for table in tables(text) for row in table[2:]]


def predicted(reproduced, figure):
    """The prediction of that name among the rows of configs/experiments/notes.md."""
    return float(find(reproduced, figure=figure)["predicted"])


def counted(reproduced, kind):
    """[within tolerance, all] of the figures of a kind, from the last row of the experiments there."""
    return [int(number) for number in find(reproduced, experiment="all")[kind].split(" of ")]


def agrees(text, value):
    """Whether the first number in `text` is `value`, rounded to as many digits as `text` has; of a list, the first numbers."""
    numbers = list(re.finditer(r"[-−]?\d[\d,]*(?:\.(\d+))?", text))
    values_of = value if isinstance(value, list) else [value]

    def same(number, one):
        stated = float(number[0].replace(",", "").replace("−", "-"))
        return abs(stated - one) <= 0.5000001 * 10 ** -len(number[1] or "")
    return len(numbers) >= len(values_of) and all(map(same, numbers, values_of))


class Shell:
    """A copy of the repository's root in which scripts/sim is the program that SIM names."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("configs", "tests"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("models", "sim", "traces"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "scripts").mkdir()
        (self.folder / "scripts" / "sim").symlink_to(os.path.abspath(os.environ["SIM"]))
        self.printed = {}

    def run(self, command, given=""):
        environment = {key: value for key, value in os.environ.items() if key != "OVERLAP_CONFIGS"}
        return subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, env=environment,
                              encoding="utf-8", input=given, timeout=600)

    def output(self, command):
        """What a command prints. What stands before its first pipe runs once, whatever filters follow."""
        program, _, filters = command.partition(" | ")
        if program not in self.printed:
            self.printed[program] = self.checked(program)
        return self.checked(filters, self.printed[program]) if filters else self.printed[program]

    def checked(self, command, given=""):
        done = self.run(command, given)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def value(self, one):
        names = {"r": json.loads(self.output(one.command)), "find": find, "predicted": predicted, "counted": counted}
        return eval(one.expression, names)  # text of this repository


class ReadmeTestCase(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.readmes = readmes()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.shell = Shell(folder.name)

    def marks(self, of):
        """(README, mark) of every mark that `of` finds and that is to be run."""
        return [(name, one) for name, text in self.readmes.items() for one in of(text) if LONG or not one.long]


def write_anew(shell, path, text, with_long):
    for one in reversed(outputs(text)):
        if one.long and not with_long:
            continue
        printed = shell.output(one.command)
        if without_clock(printed) != without_clock(one.shown):
            text = text[:one.span[0]] + printed + text[one.span[1]:]
            print(f"{path}: wrote the output of {one.command}")
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8")
    for one in values(text):
        if one.long and not with_long:
            continue
        value = shell.value(one)
        if one.text not in one.section or not agrees(one.text, value):
            print(f"{path}: '{one.text}' should be {value} ({one.command}; {one.expression})")


def main(arguments):
    if arguments[:1] == ["--rows"]:
        print(json.dumps(rows(pathlib.Path(arguments[1]).read_text(encoding="utf-8"))))
        return
    chosen = [name for name in arguments if name != "--long"] or list(readmes())
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder)
        for name in chosen:
            path = ROOT / name
            write_anew(shell, path, path.read_text(encoding="utf-8"), "--long" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
