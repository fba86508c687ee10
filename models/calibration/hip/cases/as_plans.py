#!/usr/bin/env python3
"""Cases of copies, alone and beside GEMMs, as plans, which `replay` measures and `sim --plan` simulates; and back to rows of a table.

as_plans.py LIST… [--gpus N] [--units N] [--topology NAME]   prints the plans of these lists, of lists.py or files, for a machine
as_plans.py --rows RESULTS                                   prints what replay measured of them as rows that `sim calibrate` reads

Kinds and their keys, in lists as in ../README.md:
peer_copy     copies between GPUs. pattern: pair, both_ways (0 with 1, and back), one_with_all, all_with_one (0 and its peers), ring (r with
              r+1), all_at_once (each with each, a stream a peer), rotation (the same, one after another on one stream). Each peer's stream
              has `chunks` copies of `size`, in pieces of `row`; enqueue=steps: a copy of each stream in turn. gemms: so many beside them.
interference  GEMM after GEMM (or local copies of 256 MiB) beside copy after copy. beside=dma_in, cu_in: GPU 0 pulls from its peers; _out:
              they pull from it; _push: it pushes; local_. everywhere=1: so does each GPU. first: which of the two starts 100 us before.
late_copy     a copy that becomes ready wait_us after the first of six GEMMs began, or half a GEMM later.
first_served  a GEMM and a copy by a kernel that become ready at once: at=start, or at=middle, after another GEMM.
"""
import json
import pathlib
import statistics
import sys

import lists
import single

PARTS = {"peer_copy": ["all"], "interference": ["work", "copies", "both"], "late_copy": ["work", "copies", "late", "later"],
         "first_served": ["work", "copies", "both"]}  # of each kind, the plans of a case
GEMM = {"m": "", "n": "", "k": "", "units": "0"}
# Keys of a kind with what they are where a list leaves them out; "" has to be given.
KEYS = {"peer_copy": {"agent": "dma", "transfer": "pull", "pattern": "pair", "gpus": "2", "blocks": "0", "chunks": "1", "row": "0",
                      "pitch": "0", "size": "", "enqueue": "lanes", "gemms": "0", "detail": "0", "n_samples": "12"},
        "interference": {"work": "gemm", **GEMM, "beside": "", "peers": "1", "blocks": "0", "size": "64MiB", "priority": "normal",
                         "first": "both", "sizes": "equal", "everywhere": "0", "n_samples": "9"},
        "late_copy": {**GEMM, "beside": "", "blocks": "0", "size": "1MiB", "priority": "normal", "wait_us": "100", "n_samples": "20"},
        "first_served": {**GEMM, "beside": "", "blocks": "8", "size": "4MiB", "at": "", "n_samples": "30"}}
ALSO = {"peer_copy": {"to": "packed", "call": "peer"}, "first_served": {"streams": "gemm_first"}}  # what tables of microbench told apart
WINDOW_US, LEAST, MOST = 5000, 3, 150  # how long both sides run; tasks of a stream
HEAD_START_US, LATE_GEMMS, LOCAL_WORK = 100, 6, 256 << 20
GEMMS_BESIDE = {"m": 4096, "n": 2560, "k": 8192}
# Roughly, to choose how many tasks fill the window.
FLOP_PER_US, LINK, LINK_OF_A_BLOCK, LOCAL, LOCAL_OF_A_BLOCK = 700e6, 380e3, 46e3, 1900e3, 43e3  # bytes per us
STILL = {"at_peak_clock": False, "cold_caches": False}


def gemm(keys):
    shape = {key: single.number(keys, key) for key in "mnk"}
    units = single.number(keys, "units")
    return {"kind": "gemm", **shape, "dtype": "bf16", **({"gemm_cus": units} if units else {})}


def wait(us):
    return {"kind": "memory_bound", "read_bytes": 0, "write_bytes": 0, "time_us": int(us), "waits": True}


def copy(own, peer, leaves, pushes, keys, size):
    """A copy by `own` or, where the peer pulls what leaves, by `peer`."""
    agent = {"agent": "cu", "copy_cus": single.number(keys, "blocks")} if keys.get("agent") == "cu" else {}
    row = single.number(keys, "row")
    pieces = {"run_bytes": row} if row and row < size else {}
    if own == peer:
        return {"kind": "local_copy", "bytes": size, **pieces, **(agent or {"agent": "dma"})}
    src, dst = (own, peer) if leaves else (peer, own)
    return {"kind": "copy", "src": src, "dst": dst, "bytes": size, **pieces, **agent, **({"transfer": "push"} if pushes else {})}


def spread_size(size, number):
    """As size_of in sim/calibrate/problems/beside_chains.cpp."""
    steps = number * 0.6180339887498949
    return -int(-(size // 4096) * (1 - steps % 1 / 2) // 1) * 4096


def lanes_of(pattern, gpus):
    """(own rank, peers that its stream serves in order) of each stream."""
    turns = range(1, gpus)
    return {"pair": [(0, [1])], "both_ways": [(0, [1]), (1, [0])], "one_with_all": [(0, [peer]) for peer in turns],
            "all_with_one": [(own, [0]) for own in turns], "ring": [(own, [(own + 1) % gpus]) for own in range(gpus)],
            "all_at_once": [(own, [(own + step) % gpus]) for own in range(gpus) for step in turns],
            "rotation": [(own, [(own + step) % gpus for step in turns]) for own in range(gpus)]}[pattern]


def stream(gpu, name, tasks, **more):
    return [{**task, "gpu": gpu, "stream": name, **more} for task in tasks]


def plan(gpus, streams, measure, by_turns=False):
    if by_turns:
        longest = max(map(len, streams))
        tasks = [tasks[i] for i in range(longest) for tasks in streams if i < len(tasks)]
    else:
        tasks = [task for tasks in streams for task in tasks]
    return {"schema": 2, "gpus": gpus, "measure": measure, "tasks": tasks}


def peer_copy(keys, repeats):
    gpus, size, chunks = (single.number(keys, key, other) for key, other in (("gpus", 2), ("size", 0), ("chunks", 1)))
    pushes, gemms = keys.get("transfer") == "push", single.number(keys, "gemms")
    streams = [stream(own, f"transfer {peers[0]}", [copy(own, peer, pushes, pushes, keys, size) for peer in peers for _ in range(chunks)])
               for own, peers in lanes_of(keys.get("pattern", "pair"), gpus)]
    if gemms:
        streams += [stream(gpu, "compute", [{"kind": "gemm", **GEMMS_BESIDE, "dtype": "bf16"}] * gemms) for gpu in range(gpus)]
    marks = bool(gemms) or keys.get("detail") == "1"
    return {"all": plan(gpus, streams, {"repeats": repeats, **STILL, "marks": marks}, keys.get("enqueue") == "steps")}


class Beside:
    """Both sides of a case, on the GPUs that do the work."""
    def __init__(self, keys, units):
        self.keys, self.kind = keys, keys["beside"]
        self.local = self.kind.startswith("local")
        self.peers = single.number(keys, "peers", 1)
        self.size = single.number(keys, "size")
        everywhere = keys.get("everywhere") == "1"
        self.own = range(self.peers + 1 if everywhere else 1)
        self.gpus = 1 if self.local and not everywhere else self.peers + 1
        self.copy_keys = {**keys, "agent": "dma" if "dma" in self.kind else "cu", **({"row": "4KiB"} if self.kind.endswith("rows") else {})}
        self.work_task = ({"kind": "local_copy", "bytes": LOCAL_WORK, "agent": "cu", "copy_cus": units} if keys.get("work") == "local_copy"
                          else gemm(keys))

    def work_us(self):
        task = self.work_task
        return LOCAL_WORK / LOCAL if "m" not in task else 2 * task["m"] * task["n"] * task["k"] / FLOP_PER_US + 3

    def copy_us(self):
        blocks = single.number(self.keys, "blocks") or 1 << 20
        rate = min(LOCAL, LOCAL_OF_A_BLOCK * blocks) if self.local else min(LINK / self.peers, LINK_OF_A_BLOCK * blocks)
        return self.size / rate + 4

    def counts(self):
        """Tasks of a stream that fill the window: of work, of copies."""
        window = max(WINDOW_US, 8 * self.work_us())
        return [min(MOST, max(LEAST, -int(-window // us))) for us in (self.work_us(), self.copy_us())]

    def work(self, count, delay=0):
        return [stream(gpu, "compute", [wait(delay)] * (delay > 0) + [self.work_task] * count) for gpu in self.own]

    def copies(self, sizes, delay=0):
        out, push = self.kind.endswith("out"), self.kind.endswith("push")
        priority = {"priority": 1} if self.keys.get("priority") == "high" else {}
        streams = []
        for own in self.own:
            for peer in [own] if self.local else [(own + step) % (self.peers + 1) for step in range(1, self.peers + 1)]:
                tasks = [copy(own, peer, out or push, push, self.copy_keys, size) for size in sizes]
                by, other = (peer, own) if out else (own, peer)
                streams.append(stream(by, "local" if self.local else f"transfer {other}", [wait(delay)] * (delay > 0) + tasks, **priority))
        return streams


def interference(keys, repeats, units):
    both = Beside(keys, units)
    works, copies = both.counts()
    spread, first = keys.get("sizes") == "spread", keys.get("first")
    sizes = [spread_size(both.size, i) if spread else both.size for i in range(copies)]
    measure = {"repeats": repeats, "warm_ups": 1, "cold_caches": False, "marks": True}
    return {"work": plan(both.gpus, both.work(works), measure), "copies": plan(both.gpus, both.copies(sizes), measure),
            "both": plan(both.gpus, both.work(works, HEAD_START_US * (first == "copy"))
                         + both.copies(sizes, HEAD_START_US * (first == "gemm")), measure)}


def late_copy(keys, repeats, units):
    both = Beside(keys, units)
    measure = {"repeats": -(-repeats // 2), "warm_ups": 1, **STILL, "marks": True}
    ready = single.number(keys, "wait_us", 100)
    waits = {"late": ready, "later": ready + both.work_us() / 2}
    return {"work": plan(both.gpus, both.work(LATE_GEMMS), measure), "copies": plan(both.gpus, both.copies([both.size]), measure),
            **{name: plan(both.gpus, both.work(LATE_GEMMS) + both.copies([both.size], us), measure) for name, us in waits.items()}}


def first_served(keys, repeats, units):
    both = Beside(keys, units)
    measure = {"repeats": repeats, "warm_ups": 1, "cold_caches": False}
    middle = keys["at"] == "middle"
    copies = both.copies([both.size])
    race = plan(both.gpus, both.work(2 if middle else 1) + copies, measure)
    if middle:
        race["tasks"][2] = {**race["tasks"][2], "after": [0]}
    return {"work": plan(both.gpus, both.work(1), measure), "copies": plan(both.gpus, copies, measure), "both": race}


def plans_of(kind, keys, units, topology=None):
    """Plans of a case, which are executed in turn: a line for replay. The description says which case and which of its plans."""
    given = {**KEYS[kind], **keys}
    unknown, lacks = [key for key in keys if key not in KEYS[kind]], [key for key in given if given[key] == ""]
    if unknown or lacks:
        raise ValueError(f"{single.text(kind, keys)}: {'has no key ' + unknown[0] if unknown else 'needs ' + lacks[0]}")
    repeats = single.number(given, "n_samples")
    plans = peer_copy(given, repeats) if kind == "peer_copy" else globals()[kind](given, repeats, units)
    config = {"config": {"topology": topology}} if topology else {}
    return [{"schema": 2, "description": f"{single.text(kind, keys)}: {name}", **config, **one} for name, one in plans.items()]


class Marked:
    """What replay measured of a plan with marks: ends of all tasks, in every repeat."""
    def __init__(self, row):
        self.row, self.tasks = row, row["scenario"]["plan"]["tasks"]
        self.lanes = {}
        for i, task in enumerate(self.tasks):
            if "time_us" not in task:
                self.lanes.setdefault((task["gpu"], task["stream"]), []).append(i)

    def of_work(self):
        """Streams of work, of one on each GPU that does it."""
        return [lane for (_, name), lane in self.lanes.items() if name == "compute"]

    def of_copies(self, count):
        """The first streams of copies: those of rank 0."""
        return [lane for (_, name), lane in self.lanes.items() if name != "compute"][:count]

    def spans(self, lanes, ends, begin=0, end=float("inf")):
        """(us, bytes) of the tasks that lie within, without the first of a stream."""
        return [(ends[task] - ends[before], self.tasks[task].get("bytes", 1)) for lane in lanes for before, task in zip(lane, lane[1:])
                if ends[before] >= begin and ends[task] <= end]


def mean_for(spans, size=None):
    return sum(us for us, _ in spans) / (sum(b for _, b in spans) / size if size else len(spans)) if spans else None


def interference_row(measured):
    work, copies, both = (Marked(measured[name]) for name in ("work", "copies", "both"))
    size = max(task["bytes"] for task in copies.tasks)
    head = HEAD_START_US if any("time_us" in task for task in both.tasks) else 0
    count = len(copies.lanes) // len(both.of_work())
    lane, streams = both.of_work()[:1], both.of_copies(count)
    beside, copied = [], []
    for ends in both.row["ends_us"]:
        until = min(ends[tasks[-1]] for tasks in lane + streams)
        beside.append(mean_for(both.spans(lane, ends, head, until)))
        copied += both.spans(streams, ends, head, until)
    alone = [us for ends in work.row["ends_us"] for us, _ in work.spans(work.of_work()[:1], ends)]
    copied_alone = [span for ends in copies.row["ends_us"] for span in copies.spans(copies.of_copies(count), ends)]
    return {"samples": [us for us in beside if us is not None], "alone_us": statistics.median(alone),
            "copy_us": mean_for(copied, size), "copy_alone_us": mean_for(copied_alone, size)}


def late_copy_row(measured):
    alone = statistics.median(ends[-1] for ends in measured["copies"]["ends_us"])
    late = [[ends[-1] - ends[-2] for ends in measured[name]["ends_us"]] for name in ("late", "later")]
    gemms = [ends[3] - ends[2] for ends in measured["work"]["ends_us"]]
    return {"samples": [us for pair in zip(*late) for us in pair], "alone_us": alone, "gemm_alone_us": statistics.median(gemms)}


def first_served_row(measured):
    copy_us, gemm_us = (statistics.median(measured[name]["samples_us"]) for name in ("copies", "work"))
    middle = gemm_us if len(Marked(measured["both"]).tasks) == 3 else 0
    samples = [copied - copy_us - middle for _, copied in measured["both"]["stream_ends_us"]]
    return {"samples": samples, "alone_us": copy_us, "gemm_alone_us": gemm_us,
            "gemm_first": sum(extra > gemm_us / 2 for extra in samples) / len(samples)}


def peer_copy_row(measured):
    row = measured["all"]
    if "ends_us" not in row:
        return {"samples": row["samples_us"]}
    marked = Marked(row)
    lanes = [lane for (_, name), lane in marked.lanes.items() if name != "compute"]
    return {"samples": [max(ends[lane[-1]] for lane in lanes) for ends in row["ends_us"]],
            "ends_us": [[ends[task] for lane in lanes for task in lane] for ends in row["ends_us"]]}


def row_of(kind, keys, measured):
    """A case as a table has it. `measured`: replay's results of its plans, by what they are for."""
    given = {**KEYS[kind], **keys, **ALSO.get(kind, {})}
    fields = {key: value if not value[0].isdigit() or key == "detail" else single.number(given, key) for key, value in given.items()}
    for key in ("everywhere", "detail"):
        if key in fields:
            fields[key] = str(fields[key])
    bad = [row.get("error") or row.get("skipped") for row in measured.values() if "error" in row or "skipped" in row]
    if bad:
        return {"kind": kind, **fields, "error": bad[0]}
    more = globals()[f"{kind}_row"](measured)
    samples = more.pop("samples")
    times = sorted(samples) or [None]
    return {"kind": kind, **fields, "unit": "us", "median": statistics.median(times), "min": times[0],
            "p90": times[(len(times) - 1) * 9 // 10], "runs": len(samples), **more, "samples": samples}


def rows_of(lines):
    """Rows of a table from replay's results, case by case in their order."""
    cases = {}
    for row in lines:
        if row["kind"] == "overlap":
            case, _, part = row["scenario"]["plan"]["description"].rpartition(": ")
            cases.setdefault(case, {})[part] = row
    for case, measured in cases.items():
        for kind, keys in single.singles([case]):
            yield row_of(kind, keys, measured)


def main(arguments):
    flags = {"--topology": None, "--gpus": "4", "--units": "132", "--rows": None}
    names = []
    while arguments:
        word = arguments.pop(0)
        if word in flags and arguments:
            flags[word] = arguments.pop(0)
        elif word.startswith("-"):
            sys.exit(__doc__)
        else:
            names.append(word)
    if flags["--rows"]:
        with open(flags["--rows"], encoding="utf-8") as file:
            for row in rows_of(map(json.loads, file)):
                print(json.dumps(row, separators=(",", ":")))
        return
    if not names:
        sys.exit(__doc__)
    machine = lists.Machine(int(flags["--gpus"]), int(flags["--units"]))
    for name in names:
        lines = getattr(lists, name)(machine) if hasattr(lists, name) else pathlib.Path(name).read_text(encoding="utf-8").splitlines()
        for kind, keys in single.singles(lines):
            if kind in PARTS:
                print(json.dumps(plans_of(kind, keys, machine.units, flags["--topology"]), separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1:])
