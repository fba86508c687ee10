"""OUT, the folder of a measurement: what is to be measured, what is done, and what was noticed."""
import dataclasses
import fcntl
import json
import os
import re

from .fault import UserError
from .pieces import Piece

SCHEMA = 1
NUMBERS = re.compile(r'"pass":\d+,"case_line":(\d+)')
PLAN = re.compile(r'"plan":(\d+)')


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(path, text):
    """All of the text or nothing."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def whole_lines(path):
    """Lines that end and are JSON objects; the last one of a program that was killed may be cut off."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            if isinstance(json.loads(line), dict):
                yield line.decode()
        except ValueError:
            continue


class Folder:
    def __init__(self, path):
        self.path = path
        self.rows = path / "pieces"
        self.lines, self.pieces, self.state = {}, [], {}

    def open(self):
        """Creates the folder, or goes on with it. Throws UserError if it is something else."""
        try:
            if self.path.exists() and not self.path.is_dir():
                raise UserError(f"{self.path}: is a file, expected a folder or a new name")
            if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / "measure.lock").exists():
                raise UserError(f"{self.path}: is a folder of something else, expected a new name or a folder of scripts/measure")
            self.rows.mkdir(parents=True, exist_ok=True)
            self.lock = open(self.path / "measure.lock", "w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{self.path}: another scripts/measure writes to it") from None
        return (self.path / "state.json").exists()

    def discard(self):
        """Removes what `open` created, if nothing was begun."""
        if (self.path / "state.json").exists():
            return
        try:
            (self.path / "measure.lock").unlink(missing_ok=True)
            self.rows.rmdir()
            self.path.rmdir()
        except OSError:
            pass

    def load(self):
        try:
            plan = json.loads((self.path / "state.json").read_text(encoding="utf-8"))
            if plan["schema"] != SCHEMA:
                raise UserError(f"{self.path}: is of schema {plan['schema']}, expected {SCHEMA}; take a new name")
            self.pieces = [Piece(**piece) for piece in plan.pop("pieces")]
            self.state = plan
            for file in {piece.file for piece in self.pieces}:
                self.lines[file] = self.list_of(file).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path}/state.json: cannot be read ({error}); take a new name") from None

    def list_of(self, file):
        return self.path / "cases" / ("plans.jsonl" if file == "replays" else f"{file}.cases")

    def create(self, lines, pieces, state):
        self.lines, self.pieces, self.state = lines, pieces, {"schema": SCHEMA, **state}
        (self.path / "cases").mkdir(exist_ok=True)
        for file, cases in lines.items():
            write(self.list_of(file), "\n".join(cases) + "\n")
        self.save()

    def save(self):
        write(self.path / "state.json",
              json.dumps({**self.state, "pieces": [dataclasses.asdict(piece) for piece in self.pieces]}, indent=1) + "\n")

    def rows_of(self, piece):
        return self.rows / f"{piece.file}.{piece.stage}.jsonl"

    def running(self):
        """The results of the run in progress; the program writes them to RUN.part until its end."""
        return self.rows / "run"

    def done(self, piece):
        """Positions in the list that are measured."""
        found = set()
        for row in whole_lines(self.rows_of(piece)):
            number = (PLAN if piece.file == "replays" else NUMBERS).search(row)
            found.add(int(number[1]) - 1)
        return found

    def lacks(self, piece):
        return sorted(set(range(piece.begin, piece.end)) - self.done(piece))

    def add(self, piece, rows):
        with open(self.rows_of(piece), "a", encoding="utf-8") as out:
            out.writelines(row + "\n" for row in rows)
            out.flush()
            os.fsync(out.fileno())
