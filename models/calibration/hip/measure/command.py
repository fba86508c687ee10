"""scripts/measure: arguments, then build, facts, pieces, archive."""
import argparse
import datetime
import math
import os
import pathlib
import shlex
import shutil
import signal
import sys
import time

from . import archive, facts, held_out, pieces, plans, platforms, programs, watch
from .fault import OurFault, UserError
from .folder import Folder
from .progress import Progress, clock
from .runner import Rates, Run

ABOUT = """Measures the GPUs of this machine (1 to 16, NVIDIA or AMD) and writes OUT.tar.gz, from which the simulator is
calibrated on any machine. Needs a compiler for the GPUs and Python; neither root nor the network. A first useful set takes
3 minutes, all of it 15. Run it again with the same OUT to go on after an interruption or to measure what a limit left out.
Exit code: 0 done, or cut by the limit (the last lines say what lacks); 1 fault of the programs; 2 no GPU, no compiler, bad
argument; 130 interrupted. models/calibration/hip/README.md describes stages and results."""
SEED = 20261124
MOST_ARENA_GIB = 24


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UserError(f"{message}; usage: scripts/measure OUT [--minutes N], see --help")


def minutes(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 24 * 60:
        raise UserError(f"--minutes {text}: allowed: a number above 0, up to 1440")
    return value


def whole(text):
    if not text.isdigit():
        raise UserError(f"--seed {text}: allowed: a whole number from 0")
    return int(text)


def read_arguments(given):
    parser = Parser(prog="scripts/measure", description=ABOUT, allow_abbrev=False)
    parser.add_argument("out", metavar="OUT", help="folder of the results; OUT.tar.gz is the archive (OUT may end in .tar.gz)")
    parser.add_argument("--minutes", type=minutes, default=15.0, metavar="N", help="limit of the measurement, without the build (15)")
    parser.add_argument("--seed", type=whole, default=None, metavar="N", help="of what is held out, drawn and shuffled")
    parser.add_argument("--sim", metavar="PROGRAM", help="simulator that makes the plans to replay anew (default: the plans "
                        "shipped with this script)")
    parser.add_argument("--arch", metavar="LIST", help="architectures to build for, such as sm_90 or gfx90a,gfx942 (default: ask the GPUs)")
    parser.add_argument("--build-only", action="store_true", help="build the two programs and end, for a host without GPUs")
    parser.add_argument("--microbench", metavar="PROGRAM", help="use this microbench instead of building one")
    parser.add_argument("--replay", metavar="PROGRAM", help="use this replay instead of building one")
    arguments = parser.parse_args(given)
    if bool(arguments.microbench) != bool(arguments.replay):
        raise UserError("--microbench and --replay: give both or neither")
    return arguments


def paths_of(text):
    """(folder, archive)"""
    folder = text[:-len(".tar.gz")] if text.endswith(".tar.gz") else text.rstrip("/")
    if not pathlib.Path(folder).name:
        raise UserError(f"OUT '{text}': expected the name of a folder or of an archive")
    path = pathlib.Path(folder).absolute()
    return path, path.with_name(path.name + ".tar.gz")


def the_programs(arguments, out, progress):
    """({name: program}, platform or None)"""
    if arguments.microbench:
        given = {"microbench": arguments.microbench, "replay": arguments.replay}
        for option, path in given.items():
            if shutil.which(path) is None:
                raise UserError(f"--{option} {path}: is no program")
        return {name: shutil.which(path) for name, path in given.items()}, None
    platform = platforms.find(arguments.arch.split(",") if arguments.arch else None)
    return programs.build(platform, programs.build_folder(platform, out), progress.say), platform


def arena_GiB(found):
    return max(1, min(MOST_ARENA_GIB, int(0.75 * found["memory_GiB"])))


def same_machine(old, new):
    for key in ("device", "gpus", "compute_units", "uuids", "gemm_library"):
        if old.get(key) != new.get(key):
            raise UserError(f"OUT holds measurements of another machine: {key} is {new.get(key)}, there {old.get(key)}; take a new name")


def begin(folder, arguments, found, platform):
    seed = SEED if arguments.seed is None else arguments.seed
    lines, made, skips = pieces.make(found, arena_GiB(found), seed, plans.for_machine(found["gpus"], arguments.sim))
    folder.create(lines, made, {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "seed": seed,
        "command": "scripts/measure " + shlex.join(sys.argv[1:]), "project": facts.project(), "facts": found,
        "host": facts.of_host(found), "versions": facts.versions(found, platform),
        "held_out": held_out.drawn(found["gpus"], seed), "machine_skips": skips, "skipped": {}, "cut": False,
        "minutes_given": 0, "seconds_used": 0, "rates": {}, "references": [], "warnings": []})


def go_on(folder, arguments, found):
    folder.load()
    same_machine(folder.state["facts"], found)
    if arguments.seed not in (None, folder.state["seed"]):
        raise UserError(f"--seed {arguments.seed}: OUT has the seed {folder.state['seed']}; take a new name")
    folder.state["skipped"], folder.state["cut"] = {}, False


def measure(folder, run, rates, limit_s, progress):
    """Runs all pieces that lack something. Stops at the limit."""
    state, begun = folder.state, time.monotonic()
    before = state["seconds_used"]
    platform = state["facts"]["platform"]
    readings, noticed = watch.look(platform)
    state["warnings"] += list(watch.is_idle(readings)) + noticed
    for number, piece in enumerate(folder.pieces, 1):
        if not folder.lacks(piece):
            continue
        left = limit_s - (time.monotonic() - begun)
        estimate = rates.left(folder)

        def show(_, done, of, always=False, number=number, piece=piece, estimate=estimate, start=time.monotonic()):
            used = time.monotonic() - begun
            remaining = max(0, min(limit_s - used, estimate - (time.monotonic() - start)))
            progress.say(f"[{number}/{len(folder.pieces)}] {pieces.SAID[piece.file]}, stage {piece.stage}: {done} of {of} cases, "
                         f"{clock(before + used)} used, about {clock(remaining)} left", always)
        reason = None
        try:
            reason = run(show).piece(piece, left)
        finally:
            state["seconds_used"] = before + time.monotonic() - begun
            state["rates"] = rates.known
            if reason:
                state["skipped"][piece.name] = reason
            folder.save()
        for warning in watch.look(platform)[1]:
            if not any(known.startswith(warning) for known in state["warnings"]):
                state["warnings"].append(f"{warning} (first seen after {piece.name})")
        folder.save()
        if time.monotonic() - begun >= limit_s or folder.lacks(piece) and not reason:
            state["cut"] = True
            break
    folder.save()


def report(folder, target, warnings):
    """What the archive holds and lacks."""
    cut, lines = [], []
    for piece in folder.pieces:
        count = archive.counts(folder, piece)
        state = archive.state_of(folder, piece, count)
        if state.startswith("skipped"):
            lines.append(f"{piece.name}: {state}")
        elif state != "done":
            cut.append(f"{piece.name} ({count['cases'] - sum(count[key] for key in ('measured', 'skipped', 'failed'))} of "
                       f"{count['cases']} cases)")
        if count["failed"]:
            lines.append(f"{piece.name}: {count['failed']} of {count['cases']} cases failed; their rows say why")
    lines += [f"{file}: skipped: {reason}" for file, reason in folder.state["machine_skips"].items()]
    lines += [f"noticed: {warning}" for warning in warnings]
    if cut:
        lines.append(f"cut by the time limit: {', '.join(cut)}; run the same command again to go on")
    print("\n".join(lines + [f"{target}: {target.stat().st_size / 1e6:.1f} MB, "
                             f"{clock(folder.state['seconds_used'])} minutes of measurements"]))


def run_all(arguments, progress):
    path, target = paths_of(arguments.out)
    if not os.access(next(parent for parent in [path, *path.parents] if parent.exists()), os.W_OK):
        raise UserError(f"{path}: cannot be written")
    if arguments.microbench is None:
        platforms.find(arguments.arch.split(",") if arguments.arch else None)  # before anything is written
    folder = Folder(path)
    is_old = folder.open()
    try:
        built, platform = the_programs(arguments, path, progress)
        progress.end()
        if arguments.build_only:
            print("\n".join(str(program) for program in built.values()))
            return 0
        found = facts.of_gpus(built["microbench"])
        if is_old:
            go_on(folder, arguments, found)
        else:
            begin(folder, arguments, found, platform)
    finally:
        folder.discard()
    folder.state["minutes_given"] = arguments.minutes
    rates = Rates(folder.state["rates"])
    arena = arena_GiB(found)
    Run(folder, built, arena, rates, None).recover()
    measure(folder, lambda show: Run(folder, built, arena, rates, show), rates, arguments.minutes * 60, progress)
    progress.end()
    warnings = list(dict.fromkeys(folder.state["warnings"])) + list(watch.slowed(folder.state["references"]))
    archive.finish(folder, target, warnings)
    report(folder, target, warnings)
    measured = sum(archive.counts(folder, piece)["measured"] for piece in folder.pieces)
    if not measured and not folder.state["cut"]:
        raise OurFault(f"no case could be measured: {warnings[-1] if warnings else 'all are skipped'}")
    return 0


def interrupted(*_):
    raise KeyboardInterrupt


def main(given):
    progress = Progress()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        return run_all(read_arguments(given), progress)
    except UserError as error:
        progress.end()
        print(error, file=sys.stderr)
        return 2
    except OurFault as error:
        progress.end()
        print(f"scripts/measure: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        print("interrupted; what is measured is kept: run the same command again to go on", file=sys.stderr)
        return 130
