"""Runs a piece: microbench or replay on the cases that it lacks, until the end, a limit or a fault."""
import ctypes
import functools
import json
import os
import signal
import subprocess
import time

from . import pieces  # also finds the modules of ../cases
from .folder import NUMBERS, PLAN, compact, whole_lines

import as_plans  # noqa: E402
import single  # noqa: E402

# Seconds of a case before any is measured, on the host (traces/h200_4); long ones say how long they are.
GUESS_S = {"gemm": 0.03, "interference": 0.15, "late_copy": 0.05, "first_served": 0.05, "residency": 0.1, "overlap": 0.8}
START_S = 4  # of a program: context, memory, kernels
HANGS_S = float(os.environ.get("MEASURE_HANGS_S", 100))  # microbench ends itself after 60 s in a case
ENVIRONMENT = {"CUDA_MODULE_LOADING": "EAGER"}  # a kernel that is loaded behind a closed gate would wait for ever
MOST_FAULTS = 3  # of runs of a piece without one result between


def kind_of(piece, line):
    return "overlap" if piece.file == "replays" else line.split()[0]


@functools.lru_cache(maxsize=None)
def case_of(line):
    return next(single.singles([line]))


def is_planned(piece, line):
    """Whether replay measures the case, by plans."""
    return piece.file != "replays" and case_of(line)[0] in as_plans.PARTS


def own_seconds(line):
    """Time that a case names."""
    words = dict(word.split("=") for word in line.split()[1:]) if "=" in line and not line.startswith("{") else {}
    if line.startswith("energy"):
        return (int(words.get("warm_ms", 1000)) + int(words.get("duration_ms", 3000))) / 1e3 + 0.3
    if line.startswith("sustained"):
        return int(words.get("duration_ms", 2000)) / 1e3 * 1.2 + 0.5
    return 0


class Rates:
    """Seconds of a case of each kind, from those that are done."""
    def __init__(self, known):
        self.known = known  # kind: [seconds, cases]

    def of(self, piece, line):
        kind = kind_of(piece, line)
        seconds, count = self.known.get(kind, (0, 0))
        if own := own_seconds(line):
            return own
        runs = len(as_plans.PARTS[kind]) if is_planned(piece, line) else 1
        return (seconds + GUESS_S.get(kind, 0.03) * 5) / (count + 5) * runs

    def add(self, kinds, seconds):
        for kind in kinds:
            entry = self.known.setdefault(kind, [0, 0])
            entry[0] += seconds / len(kinds)
            entry[1] += 1

    def left(self, folder):
        """Estimated seconds of all that lacks."""
        total = 0
        for piece in folder.pieces:
            lacks = folder.lacks(piece) if piece.name not in folder.state["skipped"] else []
            total += sum(self.of(piece, folder.lines[piece.file][i]) for i in lacks) + (START_S if lacks else 0)
        return total


def end_with_parent():
    """The program must not go on to use the GPUs when this one was killed: prctl(PR_SET_PDEATHSIG, SIGKILL)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Run:
    def __init__(self, folder, programs, arena_GiB, rates, progress):
        self.folder, self.programs, self.arena_GiB = folder, programs, arena_GiB
        self.rates, self.progress = rates, progress
        facts = folder.state["facts"]
        self.units = int(min(facts.get("units_by_gpu") or [facts["compute_units"]]))

    def recover(self):
        """Keeps what a killed run had measured: its name says of which piece."""
        for piece in self.folder.pieces:
            self.collect(piece, self.path_of(piece))

    def path_of(self, piece):
        return self.folder.rows / f"{piece.file}.{piece.stage}.run"

    def piece(self, piece, seconds):
        """Returns None, or why the piece is given up. `seconds`: what is left of the limit."""
        end = time.monotonic() + seconds
        faults = 0
        while lacks := self.folder.lacks(piece):
            limit = int(end - time.monotonic() - START_S)
            if limit < 1:
                return None
            lines = self.folder.lines[piece.file]
            lacks = [i for i in lacks if is_planned(piece, lines[i]) == is_planned(piece, lines[lacks[0]])]
            got, began, fault = self.once(piece, lacks, limit)
            if fault is None and time.monotonic() + START_S + 1 >= end:
                return None
            if fault is None and not got:
                fault = "the program ended without results"
            if fault is None:
                continue
            faults = 0 if got else faults + 1
            self.folder.state["warnings"].append(f"{piece.name}: {fault}")
            lacks = [i for i in self.folder.lacks(piece) if i in lacks]
            if lacks and began:  # the first that lacks is the one that the program ended in
                self.folder.add(piece, [self.failed(piece, lacks[0], fault)])
            if faults == MOST_FAULTS:
                return fault

    def failed(self, piece, position, fault):
        if piece.file == "replays":
            return compact({"schema": 1, "kind": "overlap", "plan": position + 1, "error": fault})
        kind, *words = self.folder.lines[piece.file][position].split()
        keys = dict(word.split("=") for word in words)
        return compact({"kind": kind, "pass": piece.number, "case_line": position + 1, **keys, "error": fault})

    def once(self, piece, lacks, limit):
        """(number of new results, whether the program came to its first case, fault or None)."""
        path, cases = self.path_of(piece), self.folder.rows / f"{piece.file}.{piece.stage}.list"
        lines = self.folder.lines[piece.file]
        schedules, planned = piece.file == "replays", is_planned(piece, lines[lacks[0]])
        chosen, places = [lines[i] for i in lacks], lacks
        if planned:
            places = [i for i in lacks for _ in as_plans.PARTS[case_of(lines[i])[0]]]  # of every result
            chosen = [compact(as_plans.plans_of(*case_of(line), self.units)) for line in chosen]
        by_plans = schedules or planned
        cases.write_text("\n".join(chosen if by_plans else [pieces.REFERENCE] + chosen) + "\n", encoding="utf-8")
        self.map_path(piece).write_text(json.dumps({"places": lacks, "plans": by_plans}), encoding="utf-8")
        command = [self.programs["replay" if by_plans else "microbench"], cases, "--out", path, "--seconds", limit,
                   "--arena-GiB", self.arena_GiB] + (["--spans"] if schedules else [])
        fault = self.watch(piece, [str(word) for word in command], path, places, limit, 1 if by_plans else 2)
        began = self.count(path) >= (1 if by_plans else 2)
        return self.collect(piece, path), began, fault

    def map_path(self, piece):
        return self.folder.rows / f"{piece.file}.{piece.stage}.map"

    def watch(self, piece, command, path, lacks, limit, first):
        """Waits for the program's end; ends it if it hangs. Returns what went wrong, or None."""
        errors = path.with_suffix(".errors")
        kinds = [kind_of(piece, self.folder.lines[piece.file][i]) for i in lacks]
        with open(errors, "w", encoding="utf-8") as log:
            program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                       env={**os.environ, **ENVIRONMENT}, preexec_fn=end_with_parent)
        try:
            seen, size, grew = 0, -1, time.monotonic()
            begun = grew
            while not self.ended(program):
                now, length = time.monotonic(), self.size(path)
                if length != size:
                    count = max(0, self.count(path) - first)
                    if count > seen:
                        if seen:
                            self.rates.add(kinds[seen:count], now - grew)
                        grew, seen = now, count
                    elif size < 0:
                        grew = now
                    size = length
                self.progress(piece, seen, len(lacks))
                if now - grew > HANGS_S or now - begun > limit + HANGS_S:
                    return f"no result for {now - grew:.0f} s: {self.last(piece, lacks, seen)}"
        finally:
            if program.poll() is None:
                program.send_signal(signal.SIGKILL)
            program.wait()
        if program.returncode == 0 or program.returncode == 1 and path.exists():
            return None  # 1: some cases failed, and their rows say so
        said = [line for line in errors.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        reason = f"signal {-program.returncode}" if program.returncode < 0 else f"exit {program.returncode}"
        return f"{reason}: {said[-1].strip() if said else 'no message'}"

    @staticmethod
    def ended(program):
        """Waits a little."""
        try:
            program.wait(0.1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last(self, piece, lacks, seen):
        line = self.folder.lines[piece.file][lacks[min(seen, len(lacks) - 1)]]
        return f"plan {lacks[min(seen, len(lacks) - 1)] + 1}" if piece.file == "replays" else line

    @staticmethod
    def written(path, read, nothing):
        """What `read` says of the program's results: under their name, or under the one that they have until they are whole.
        The program may rename them at any time."""
        for name in (path, path.with_name(path.name + ".part"), path):
            try:
                return read(name)
            except FileNotFoundError:
                continue
        return nothing

    @classmethod
    def size(cls, path):
        return cls.written(path, lambda name: name.stat().st_size, 0)

    @classmethod
    def count(cls, path):
        return cls.written(path, lambda name: name.read_bytes().count(b"\n"), 0)

    def collect(self, piece, path):
        """Moves the results of a run to those of its piece, with the pass and the lines of the piece's list."""
        mapping = self.map_path(piece)
        rows, references = [], []
        if mapping.exists():
            run = json.loads(mapping.read_text(encoding="utf-8"))
            lacks, replays = run["places"], piece.file == "replays"
            by_cases = run["plans"] and not replays
            if by_cases:
                rows = self.rows_of_plans(piece, self.results(path), lacks)
            for row in [] if by_cases else self.results(path):
                if replays and (found := PLAN.search(row)):
                    rows.append(PLAN.sub(f'"plan":{lacks[int(found[1]) - 1] + 1}', row, count=1))
                elif found := NUMBERS.search(row):
                    line = int(found[1])
                    if line == 1:
                        references.append(row)
                    else:
                        rows.append(NUMBERS.sub(f'"pass":{piece.number},"case_line":{lacks[line - 2] + 1}', row, count=1))
            done = self.folder.done(piece)
            rows = [row for row in rows if int((PLAN if replays else NUMBERS).search(row)[1]) - 1 not in done]
            self.folder.add(piece, rows)
            self.add_references(piece, references)
            mapping.unlink()
        for name in (path, path.with_name(path.name + ".part")):
            name.unlink(missing_ok=True)
        return len(rows)

    def rows_of_plans(self, piece, results, places):
        """Rows of the cases whose plans have run."""
        found = {}
        for row in results:
            number = int(PLAN.search(row)[1])
            found.setdefault(places[number - 1], []).append(json.loads(row))
        rows = []
        for place, measured in found.items():
            kind, keys = case_of(self.folder.lines[piece.file][place])
            if len(measured) == len(as_plans.PARTS[kind]) or "error" in measured[0] or "skipped" in measured[0]:
                row = as_plans.row_of(kind, keys, dict(zip(as_plans.PARTS[kind], measured)))
                rows.append(compact({"kind": row.pop("kind"), "pass": piece.number, "case_line": place + 1, **row}))
        return rows

    @staticmethod
    def results(path):
        for name in (path, path.with_name(path.name + ".part")):
            for row in whole_lines(name):
                if not row.startswith('{"schema":1,"kind":"machine"'):
                    yield row

    def add_references(self, piece, rows):
        known = self.folder.state["references"]
        with open(self.folder.rows / "reference.jsonl", "a", encoding="utf-8") as out:
            for row in rows:
                value = json.loads(row)
                known.append({"piece": piece.name, "chain_us": value.get("chain_us") or value.get("median")})
                out.write(NUMBERS.sub(f'"pass":{len(known)},"case_line":1', row, count=1) + "\n")
