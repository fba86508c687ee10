"""Kernels of operators while they run back to back in graphs, by kineto, and how clocks follow what runs, a process a GPU."""
import statistics
import time

import torch
import torch.distributed as dist

from .calls import elapsed_us, graph_of
from .counters import Counters, Watch
from .operators import all_gather_gemm, gemm_reduce_scatter, longest, normal, refusal, zeros
from .power import in_turn, kernels, nothing

# Shapes as operators.OTHER_SHAPES, of no list of cases.
SHAPES = [(2048, 5632, 3072), (4096, 9216, 4096), (8192, 2560, 5120), (8192, 10240, 3072), (1536, 7168, 7168),
          (4096, 2560, 8192), (16384, 2816, 8192), (16384, 8192, 2048), (32768, 4096, 3072), (3072, 3072, 3072),
          (1024, 4096, 8192), (12288, 6144, 6144)]
LOOP_S, KEPT = 0.25, 12  # seconds of replays before and while kernels are recorded; replays that are kept
PROBE = """extern "C" __global__ void probe(long long* out) {
    unsigned long long time; unsigned unit;
    long long clock = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    asm volatile("mov.u32 %0, %smid;" : "=r"(unit));
    out[2 * unit] = clock; out[2 * unit + 1] = (long long)time;
}"""
UNITS, READINGS = 256, 12


def of_all(value):
    """`value` of every rank, in a list."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def loop(replay, seconds, counters):
    """µs of a replay of the slowest rank, and power and clock of all, in a loop of `seconds` after as long a one."""
    count = max(int(seconds * 1e6 / longest(elapsed_us(replay, 10))), 20)
    for _ in range(2):
        dist.barrier()
        torch.cuda.synchronize()
        with Watch(counters) as watch:
            each = elapsed_us(replay, count)
    return count, {"median_us": round(longest(each), 3), "power_W": of_all(watch.power_W), "clock_MHz": of_all(watch.clock_MHz)}


def spans(replay, count):
    """[name, stream, start, µs] of a replay's kernels, medians of the last ones of `count`, and µs from one replay to the next."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        dist.barrier()
        for _ in range(count):
            replay()
        torch.cuda.synchronize()
    events = [(one.start_ns(), one.duration_ns(), one.name(), one.device_resource_id())
              for one in profile.profiler.kineto_results.events()
              if one.device_type() == torch.autograd.DeviceType.CUDA and "Sync" not in one.name()]
    events.sort()
    each = len(events) // count
    kept = [events[len(events) - (one + 1) * each:len(events) - one * each] for one in range(KEPT)]
    replays = []
    for replayed in reversed(kept):
        begin = replayed[0][0]
        replays.append(sorted(((name[:60], stream, start - begin, took) for start, took, name, stream in replayed),
                              key=lambda one: (one[1], one[2])))
    begins = [replayed[0][0] for replayed in reversed(kept)]
    period = statistics.median(after - before for before, after in zip(begins, begins[1:])) / 1e3
    middle = [[one[0], one[1], round(statistics.median(r[at][2] for r in replays) / 1e3, 2),
               round(statistics.median(r[at][3] for r in replays) / 1e3, 2)] for at, one in enumerate(replays[-1])]
    return {"recorded_us": round(period, 2), "kernels": sorted(middle, key=lambda one: one[2])}


def probe(compiled, out):
    return lambda: compiled(grid=(2 * UNITS, 1, 1), block=(1, 1, 1), args=(out,))


def clocks(phases, seconds, counters):
    """µs and MHz of each of `phases`, which follow each other in a graph, in a loop."""
    compiled = torch.cuda._compile_kernel(PROBE, "probe")  # pylint: disable=protected-access
    out = torch.zeros(len(phases) + 1, UNITS, 2, device="cuda", dtype=torch.int64)
    steps = [probe(compiled, out[0])]
    for at, phase in enumerate(phases):
        steps += [phase, probe(compiled, out[at + 1])]
    replay = graph_of(in_turn(*steps)).replay
    count, row = loop(replay, seconds, counters)
    took, rate = [], []
    for _ in range(READINGS):
        for _ in range(max(count // 20, 3)):
            replay()
        torch.cuda.synchronize()
        delta = (out[1:] - out[:-1]).double().cpu()
        known = (out > 0).all(-1).all(0).cpu()
        took.append((delta[:, known, 1].median(1).values / 1e3).tolist())
        rate.append((delta[:, known, 0] / delta[:, known, 1] * 1e3).median(1).values.tolist())

    def middle(readings):
        return [round(statistics.median(one), 2) for one in zip(*readings)]
    return row | {"phases_us": of_all(middle(took)), "phases_MHz": of_all(middle(rate))}


def phased():
    """(row, phases) whose clocks are read."""
    large = normal(2**27)
    moves = kernels(zeros(2**27), large)
    if dist.get_world_size() > 1:
        whole, part = zeros(2**27), normal(2**27 // dist.get_world_size())
        moves["all_gather"] = lambda: dist.all_gather_into_tensor(whole, part)
    for m, n, k in ((8192, 8192, 8192), (16384, 8192, 1024), (2048, 4096, 4096), (4096, 4096, 4096)):
        a, weights, c = normal(m, k), normal(k, n), zeros(m, n)

        def gemm():
            torch.mm(a, weights, out=c)  # pylint: disable=cell-var-from-loop
        shape = {"m": m, "n": n, "k": k}
        yield {"phases": ["gemm"]} | shape, [gemm]
        yield {"phases": ["gemm", "nothing"]} | shape, [gemm, nothing(200_000)]
        yield {"phases": ["gemm", "nothing"]} | shape, [gemm, nothing(1_000_000)]
        for other in ("sum", "all_gather"):
            if other in moves:
                yield {"phases": ["gemm", other]} | shape, [gemm, moves[other]]


def rows(rank, budget_s):
    """All rows, on every rank alike."""
    begin, ranks, counters = time.perf_counter(), dist.get_world_size(), Counters(rank)

    def over():
        return longest(time.perf_counter() - begin) > budget_s
    for row, phases in phased():
        if over():
            return
        row = {"kind": "clocks"} | row | {"ranks": ranks, "mode": "graph", "state": "steady"}
        try:
            yield row | clocks(phases, 3 * LOOP_S, counters)
        except Exception as error:  # the other rows go on
            yield row | {"refused": refusal(error)}
    for m, n, k in SHAPES if ranks > 1 else ():
        for make, of_k in ((all_gather_gemm, k), (gemm_reduce_scatter, k // ranks)):
            for operator, call in make(m, n, of_k, ranks).items():
                if over():
                    return
                replay = graph_of(call).replay
                count, timed = loop(replay, LOOP_S, counters)
                row = {"kind": "spans", "operator": operator, "m": m, "n": n, "k": of_k, "ranks": ranks, "mode": "graph", "state": "steady"}
                yield row | timed | {"recorded": of_all(spans(replay, count))}
