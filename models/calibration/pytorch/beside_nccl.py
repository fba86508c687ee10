"""A GEMM beside an all-gather by NCCL that doesn't need it, a process a GPU: who is first, and how long each takes then.

    cd models/calibration && python3 -m pytorch.beside_nccl OUT.jsonl [SECONDS]      # two or more GPUs

kind `pair`: GEMM in one stream, collective in another, once. `mode`: `held`, both enqueued while a kernel holds the GPU, so that
they are ready together, the second one `delay_us` later (`launched`: which stream was used first, see Streams); `idle`, both launched onto idle GPUs, so the second is ready as much
later as its call is. `ctas`: thread blocks of NCCL's kernel, 0: NCCL's choice. `priority`: `comm` if the collective's stream has a
higher one. `alone_us` of both; `both_us`: medians of events from the start to the end of the GEMM, of the collective, of both, on
the rank where each is latest; `recorded`: begin and end of both kernels on rank 0 by the profiler in three runs.

kind `loop`: iterations: `sequential` on one stream, or two streams of which each begins when the last iteration has ended (`joined`),
that never wait for each other (`free`), or that wait only at the end of an iteration, for which the host waits, too, as in PyTorch's
pull request 172714 (`program`). The others are back to back in a steady state. `library`: `zero_cta`, NCCL's copy engines, also where
each rank's shard is in the gathered operand already (`zero_cta_in_place`).
"""
import functools
import itertools
import json
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric
from torch.profiler import ProfilerActivity, profile

from .counters import Counters
from .operators import longest, longest_of, normal, refusal, steady, zeros
from .ranks import in_ranks, machine, write

GEMMS = ((8192, 8192, 8192), (8192, 2560, 8192), (4096, 4096, 4096), (6144, 6144, 6144))
MIBS = (16, 64, 128, 256, 1024)  # of the gathered operand
CTAS = (1, 4, 8, 16, 32)
CTA_CASES = (((8192, 8192, 8192), 128), ((4096, 4096, 4096), 128), ((8192, 8192, 8192), 1024), ((8192, 2560, 8192), 256))
LOOPS = tuple((dtype, shape, mib) for dtype, shape in (("float16", (8192, 8192, 8192)), ("bfloat16", (8192, 8192, 8192)),
                                                     ("bfloat16", (4096, 4096, 4096))) for mib in (128, 512, 896))
OF_WAVES = (("float32", (4096, 4096, 4096), 128), ("float32", (4096, 4096, 2048), 16))  # GEMMs of several waves of blocks
REPEATS, RECORDED, HELD_US, CLOCK_MHZ = 11, 3, 400, 1980
LOOP_S, ITERATIONS = 0.25, 30


def group_of(ctas):
    if not ctas:
        return dist.group.WORLD
    options = dist.ProcessGroupNCCL.Options()
    options.config.min_ctas = options.config.max_ctas = ctas
    return dist.new_group(pg_options=options)


@functools.cache
def zero_cta_group():
    """A group whose all-gathers of symmetric memory are copies by engines."""
    symmetric.set_backend("NCCL")
    options = dist.ProcessGroupNCCL.Options()
    options.config.cta_policy = dist.ProcessGroupNCCL.NCCL_CTA_POLICY_ZERO
    group = dist.new_group(pg_options=options)
    dist.all_reduce(zeros(8), group=group)
    return group


def shared(count, group):
    tensor = symmetric.empty(count, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device()))
    symmetric.rendezvous(tensor, group=group.group_name)
    return tensor.normal_()


class Work:
    def __init__(self, shape, mib, group, dtype="bfloat16", library="nccl"):
        m, n, k = shape
        self.a, self.b, self.c = (made.to(getattr(torch, dtype)) for made in (normal(m, k), normal(k, n), zeros(m, n)))
        make, count = normal if library == "nccl" else lambda size: shared(size, group), (mib << 19) // dist.get_world_size()
        self.whole = make(mib << 19)
        self.shard = self.whole[dist.get_rank() * count:][:count] if library.endswith("in_place") else make(count)
        self.group, self.token = group, zeros(8)

    def launch(self, which):
        if which == "gemm":
            torch.mm(self.a, self.b, out=self.c)
        else:
            dist.all_gather_into_tensor(self.whole, self.shard, group=self.group)


def of_library(shape, mib, dtype, library):
    return Work(shape, mib, dist.group.WORLD if library == "nccl" else zero_cta_group(), dtype, library)


class Streams:
    """Streams by what runs there and which priority the collective has; they launch their first kernels in the order of `launched`,
    g the GEMM's, c the collective's, _ another."""

    def __init__(self, launched):
        self.launched, self.gate, self.of, self.others = launched, torch.cuda.Stream(), {}, []
        small = zeros(8)
        for priority, letter in itertools.product(("equal", "comm"), launched):
            stream = torch.cuda.Stream(priority=-1 if (priority, letter) == ("comm", "c") else 0)
            with torch.cuda.stream(stream):
                small.add_(1)
            if letter == "_":
                self.others.append(stream)
            else:
                self.of[{"g": "gemm", "c": "comm"}[letter], priority] = stream


def run(work, streams, order, priority, mode, delay_us):
    """Enqueues what `order` names; returns µs from the common start to the end of each on this rank."""
    torch.cuda.synchronize()
    started = torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(streams.gate):
        dist.all_reduce(work.token)  # the ranks begin together
        if mode == "held":
            torch.cuda._sleep(HELD_US * CLOCK_MHZ)
        else:
            torch.cuda.synchronize()
        started.record()
    ends = {}
    for place, name in enumerate(order):
        stream = streams.of[name, priority]
        stream.wait_event(started)
        with torch.cuda.stream(stream):
            if place and delay_us:
                torch.cuda._sleep(delay_us * CLOCK_MHZ)
            work.launch(name)
            ends[name] = torch.cuda.Event(enable_timing=True)
            ends[name].record()
    torch.cuda.synchronize()
    return {name: 1000 * started.elapsed_time(end) for name, end in ends.items()}


def medians(runs):
    """Of each repeat the latest rank's times; their medians."""
    names = tuple(runs[0])
    flat = longest_of([one[name] for one in runs for name in names])
    rows = [flat[i:i + len(names)] for i in range(0, len(flat), len(names))]
    found = {name: round(statistics.median(row[i] for row in rows), 1) for i, name in enumerate(names)}
    return found | {"all": round(statistics.median(max(row) for row in rows), 1)}


def recorded(work, streams, *how):
    with profile(activities=[ProfilerActivity.CUDA]) as done:
        for _ in range(RECORDED):
            run(work, streams, *how)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done.export_chrome_trace(file.name)
        events = [e for e in json.load(open(file.name))["traceEvents"] if e.get("cat") == "kernel"]
    events = sorted((e for e in events if "spin" not in e["name"] and "AllReduce" not in e["name"]), key=lambda e: e["ts"])
    both = {"comm": [e for e in events if "nccl" in e["name"]], "gemm": [e for e in events if "nccl" not in e["name"]]}
    found = []
    for comm, gemm in zip(both["comm"], both["gemm"]):
        first = min(comm["ts"], gemm["ts"])
        found.append({name: [round(e["ts"] - first, 1), round(e["ts"] - first + e["dur"], 1)] for name, e in (("gemm", gemm), ("comm", comm))})
    return found, both["comm"][0]["args"].get("grid"), both["gemm"][0]["args"].get("grid")


def cases():
    for order, priority in itertools.product((("comm", "gemm"), ("gemm", "comm")), ("equal", "comm")):
        for mode, delay_us in (("held", 0), ("held", 20), ("held", 100), ("idle", 0)):
            yield order, priority, mode, delay_us


def pairs(shape, mib, ctas, group, sets, dtype="bfloat16"):
    work, streams = Work(shape, mib, group, dtype), sets[0]
    for _ in range(3):
        run(work, streams, ("gemm", "comm"), "equal", "held", 0)
    alone = {name: medians([run(work, streams, (name,), "equal", "held", 0) for _ in range(REPEATS)])[name] for name in ("gemm", "comm")}
    for streams, how in ((one, how) for one in sets for how in cases() if one is sets[0] or how[2:] == ("held", 0)):
        run(work, streams, *how)
        both = medians([run(work, streams, *how) for _ in range(REPEATS)])
        times, blocks, gemm_blocks = recorded(work, streams, *how)
        yield {"kind": "pair", "gemm": shape, "dtype": dtype, "MiB": mib, "ctas": ctas, "blocks": blocks, "gemm_blocks": gemm_blocks, "first": how[0][0],
               "priority": how[1], "mode": how[2], "delay_us": how[3],
               "launched": streams.launched, "alone_us": alone, "both_us": both, "recorded": times}


def loop_bodies(work, streams):
    gemm, comm = streams.of["gemm", "equal"], {p: streams.of["comm", p] for p in ("equal", "comm")}

    def sequential():
        work.launch("gemm")
        work.launch("comm")

    def joined(order, priority):
        def body():
            main, other = torch.cuda.current_stream(), comm[priority]
            other.wait_stream(main)
            for name in order:
                with torch.cuda.stream(other if name == "comm" else main):
                    work.launch(name)
            main.wait_stream(other)
        return body

    def free():
        for name, stream in (("comm", comm["equal"]), ("gemm", gemm)):
            with torch.cuda.stream(stream):
                work.launch(name)
        torch.cuda.current_stream().wait_stream(gemm)
        torch.cuda.current_stream().wait_stream(comm["equal"])

    yield "sequential", None, None, sequential
    yield "gemm", None, None, lambda: work.launch("gemm")
    yield "comm", None, None, lambda: work.launch("comm")
    for order, priority in itertools.product((("comm", "gemm"), ("gemm", "comm")), ("equal", "comm")):
        yield "joined", order[0], priority, joined(order, priority)
    yield "free", "comm", "equal", free


def program(work, streams, order, priority):
    """Median µs of an iteration, and on rank 0 the kernels and copies of one: name, begin and end from the first begin."""
    def body():
        main, comm = torch.cuda.current_stream(), streams.of["comm", priority]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for name in order:
            with torch.cuda.stream(comm if name == "comm" and len(set(order)) == 2 else main):
                work.launch(name)
        main.wait_stream(comm)
        end.record()
        end.synchronize()
        return 1000 * begin.elapsed_time(end)
    for _ in range(5):
        body()
    times = longest_of([body() for _ in range(ITERATIONS)])
    with profile(activities=[ProfilerActivity.CUDA]) as done:
        body()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done.export_chrome_trace(file.name)
        events = [e for e in json.load(open(file.name))["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy")]
    first = min(e["ts"] for e in events)
    return {"median_us": round(statistics.median(times), 1), "samples_us": [round(one, 1) for one in times],
            "recorded": [[e["name"][:40], round(e["ts"] - first, 1), round(e["ts"] - first + e["dur"], 1)] for e in events]}


def programs(shape, mib, dtype, library, streams):
    work = of_library(shape, mib, dtype, library)
    base = {"kind": "loop", "library": library, "gemm": shape, "MiB": mib, "dtype": dtype, "ctas": 0}
    for order, priority in itertools.product((("comm", "gemm"), ("gemm", "comm")), ("equal", "comm")):
        yield base | {"how": "program", "first": order[0], "priority": priority, **program(work, streams, order, priority)}
    for alone in ("gemm", "comm"):
        yield base | {"how": f"program_{alone}", **program(work, streams, (alone,), "equal")}


def loops(shape, mib, dtype, library, streams, counters):
    work = of_library(shape, mib, dtype, library)
    for name, first, priority, body in loop_bodies(work, streams):
        yield {"kind": "loop", "library": library, "gemm": shape, "MiB": mib, "dtype": dtype, "ctas": 0,
               "how": name, "first": first, "priority": priority, **steady(body, 0, counters, LOOP_S)}


def rows(rank, seconds, small):
    begin, sets, counters = time.perf_counter(), [Streams(launched) for launched in ("gc", "g_c", "cg")], Counters(rank)
    groups = {ctas: group_of(ctas) for ctas in (0,) + CTAS}
    parts = [(pairs, (shape, mib, 0, groups[0], sets)) for shape, mib in itertools.product(GEMMS, MIBS)]
    parts += [(pairs, (shape, mib, ctas, groups[ctas], sets[:1])) for shape, mib in CTA_CASES for ctas in CTAS]
    parts += [(pairs, (shape, mib, 0, groups[0], sets[:1], dtype)) for dtype, shape, mib in OF_WAVES]
    for library in ("nccl", "zero_cta", "zero_cta_in_place"):
        parts += [(programs, (shape, mib, dtype, library, sets[0])) for dtype, shape, mib in LOOPS]
        parts += [(loops, (shape, mib, dtype, library, sets[0], counters)) for dtype, shape, mib in LOOPS[3:]]
    torch.cuda.set_stream(torch.cuda.Stream())  # NCCL's copy engines refuse the default stream
    for part, arguments in parts[::9] if small else parts:
        if longest(time.perf_counter() - begin) > seconds:
            return
        try:
            yield from part(*arguments)
        except Exception as error:  # NCCL refuses a number of thread blocks, say: the others go on
            yield {"kind": "error", "part": part.__name__, "case": str(arguments[:3]), "error": refusal(error)}
        torch.cuda.synchronize()  # symmetric memory is freed at once
        torch.cuda.empty_cache()


def main(out, seconds=600, small=False):
    write(out, machine("python3 -m pytorch.beside_nccl OUT.jsonl"))
    in_ranks(rows, out, float(seconds), bool(small))


if __name__ == "__main__":
    main(*sys.argv[1:])
