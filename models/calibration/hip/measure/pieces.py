"""What is measured, in which order: pieces, of which a time limit cuts the last."""
import dataclasses
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))

import first  # noqa: E402
import lists  # noqa: E402
import single  # noqa: E402

REFERENCE = "gemm m=8192 n=7168 k=8192"  # the first case of every run: has the machine become slower?
SAID = {"gemm": "GEMMs", "local": "local copies, memory, latencies", "two_gpus": "copies between two GPUs",
        "four_gpus": "copies among all GPUs", "parts_1": "GEMMs on every GPU", "beside": "kernels beside GEMMs",
        "drawn": "copies beside drawn GEMMs", "energy": "energy", "at_once": "chains of copies at once",
        "residency": "which units kernels get", "replays": "whole schedules"}
# Stage A, the first calibration; B, the whole lists; C, the second pass; D, what explains more than it fits.
ORDER = [("A", 1, ["gemm", "local", "two_gpus", "four_gpus", "beside", "replays", "energy"]),
         ("B", 1, ["gemm", "local", "two_gpus", "four_gpus", "parts_1", "beside", "replays", "drawn", "energy", "at_once"]),
         ("C", 2, ["gemm", "local", "two_gpus", "four_gpus"]),
         ("D", 1, ["residency"])]
FIRST_PLANS = 12


@dataclasses.dataclass(frozen=True)
class Piece:
    file: str   # of results, without .jsonl
    stage: str
    number: int  # of the pass
    begin: int  # lines of the file's list, from 0
    end: int

    @property
    def name(self):
        return f"{self.file} {self.stage}"


def drawn(machine, seed):
    """Every kind of copy beside a GEMM of each family that is drawn. No fit sees them. Sizes are spread: a chain of
    equal copies can lock into a rhythm with its GEMMs, which no copy of a schedule does."""
    shapes = lists.draw(seed, lists.BESIDE + lists.MORE + lists.UNSEEN)
    own = (f"interference m={shape} beside=local_dma" for shape in shapes)
    for line in itertools.chain(lists.every_kind(machine, shapes), own):
        yield f"{line} sizes=spread"


def why_not(file, facts):
    """Why the machine can't do any of a file's cases, or None."""
    gpus, reach = facts["gpus"], all_reach_all(facts)
    need = {"two_gpus": 2, "four_gpus": 3, "at_once": 3, "parts_1": 2, "replays": 2}.get(file, 1)
    if gpus < need:
        return f"needs {need} GPUs, the machine has {gpus}"
    if file in ("two_gpus", "four_gpus", "at_once", "replays") and not reach:
        return "needs GPUs that reach each other's memory"
    if file == "energy" and not facts.get("energy_counter", 1):
        return "the driver gives no energy counter"
    return None


def all_reach_all(facts):
    return all(value or i == j for i, row in enumerate(facts["peer_access"]) for j, value in enumerate(row))


def cases_of(file, machine, arena_GiB, seed, reach):
    """(lines of stage A, lines of stage B): single cases in their order; B's are shuffled, so that a part is a spread."""
    whole = drawn(machine, seed) if file == "drawn" else getattr(lists, file)(machine)
    can = [case for case in single.singles(whole) if single.runs_on(machine, arena_GiB, *case)]
    begin = getattr(first, file)(machine) if hasattr(first, file) else []
    early = [case for case in single.singles(begin) if single.runs_on(machine, arena_GiB, *case)]
    if not reach:
        can, early = ([case for case in cases if single.gpus(*case) < 2 or case[0] == "gemm"] for cases in (can, early))
    early = [single.text(*case) for case in early]
    rest = [line for case in can if (line := single.text(*case)) not in early]
    random.Random(f"{seed} {file}").shuffle(rest)
    return early, rest


def make(facts, arena_GiB, seed, plans):
    """({file: lines}, [Piece], {file: why it is skipped}) of the machine; `plans` for replay, a line each."""
    machine = lists.Machine(facts["gpus"], int(min(facts.get("units_by_gpu") or [facts["compute_units"]])))
    lines, sizes, skipped = {}, {}, {}
    for file in dict.fromkeys(file for _, _, files in ORDER for file in files):
        if reason := why_not(file, facts):
            skipped[file] = reason
            continue
        if file == "replays":
            if isinstance(plans, str):
                skipped[file] = plans
                continue
            early, rest = plans[:FIRST_PLANS], plans[FIRST_PLANS:]
        else:
            early, rest = cases_of(file, machine, arena_GiB, seed, all_reach_all(facts))
        lines[file], sizes[file] = early + rest, len(early)
    pieces = []
    for stage, number, files in ORDER:
        for file in files:
            if file in lines:
                begin, end = (0, sizes[file]) if stage == "A" else (sizes[file], len(lines[file]))
                piece = Piece(file, stage, number, 0 if stage == "C" else begin, end)
                if piece.end > piece.begin:
                    pieces.append(piece)
    return lines, pieces, skipped
