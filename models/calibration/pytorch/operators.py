"""Operators of several GPUs, a process each: a collective and a GEMM by NCCL, and async tensor parallelism."""
import statistics
import time

import torch
import torch.distributed as dist

from .calls import elapsed_us, graph_of
from .counters import Counters, Watch

# Shapes of the whole operator: m, n, k of the gathered or scattered GEMM; k is that of one GPU for GEMM first.
SHAPES = [(8192, 2560, 8192), (8192, 14336, 8192), (4096, 4096, 4096), (16384, 3584, 7168), (2048, 8192, 8192),
          (65536, 2048, 2048), (1024, 5120, 5120), (4096, 8192, 28672), (8192, 4608, 16384), (4096, 5120, 13824)]
# Shapes that no mechanism was decided on: only for reports.
OTHER_SHAPES = [(8192, 7168, 8192), (4096, 14336, 4096), (16384, 8192, 4096), (2048, 5120, 5120), (6144, 6144, 6144),
                (8192, 3072, 3072), (12288, 4096, 14336), (4096, 10240, 8192), (32768, 2560, 5120), (3072, 8192, 4096)]
OTHER_S, EAGER_TURNS = 0.4, 5
SMALL_ROWS = (1, 16, 128, 512)
COLLECTIVE_KIB = (4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)
EAGER_SAMPLES, STEADY_S, SLICES = 15, 0.7, 25


def zeros(*shape):
    return torch.zeros(*shape, device="cuda", dtype=torch.bfloat16)


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def all_gather_gemm(m, n, k, ranks):
    shard, weights, whole, c = normal(m // ranks, k), normal(k, n), normal(m, k), zeros(m, n)

    def by_nccl():
        dist.all_gather_into_tensor(whole, shard)
        torch.mm(whole, weights, out=c)

    def async_tp():
        torch.ops.symm_mem.fused_all_gather_matmul(shard, [weights], 0, dist.group.WORLD.group_name)

    return {"gemm": lambda: torch.mm(whole, weights, out=c), "all_gather_gemm_nccl": by_nccl,
            "all_gather_gemm_async_tp": async_tp}


def gemm_reduce_scatter(m, n, k, ranks):
    a, weights, c, mine = normal(m, k), normal(k, n), zeros(m, n), zeros(m // ranks, n)

    def by_nccl():
        torch.mm(a, weights, out=c)
        dist.reduce_scatter_tensor(mine, c)

    def async_tp():
        torch.ops.symm_mem.fused_matmul_reduce_scatter(a, weights, "sum", 0, dist.group.WORLD.group_name)

    return {"gemm": lambda: torch.mm(a, weights, out=c), "gemm_reduce_scatter_nccl": by_nccl,
            "gemm_reduce_scatter_async_tp": async_tp}


def gemm_all_reduce(m, n, k, ranks):
    del ranks
    a, weights, c = normal(m, k), normal(k, n), zeros(m, n)

    def by_nccl():
        torch.mm(a, weights, out=c)
        dist.all_reduce(c)

    return {"gemm": lambda: torch.mm(a, weights, out=c), "gemm_all_reduce_nccl": by_nccl}


def collectives(kib, ranks):
    """Collectives alone by KiB of a rank."""
    mine, all_of = zeros(kib * 512), zeros(kib * 512 * ranks)
    swapped = torch.empty_like(mine)
    return {"all_gather": lambda: dist.all_gather_into_tensor(all_of, mine),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(mine, all_of),
            "all_reduce": lambda: dist.all_reduce(mine),
            "all_to_all": lambda: dist.all_to_all_single(swapped, mine)}


def refusal(error):
    """The first line of an error that a library raised, for a row."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def longest_of(values):
    """The largest of all ranks, element by element."""
    shared = torch.tensor(values, device="cuda", dtype=torch.float64)
    dist.all_reduce(shared, op=dist.ReduceOp.MAX)
    return shared.tolist()


def longest(value):
    return longest_of([value])[0]


def once_us(call):
    """Device time of one call behind a barrier, of the rank that takes longest."""
    dist.barrier()
    torch.cuda.synchronize()
    return longest(elapsed_us(call))


def single(call):
    call()
    samples = [once_us(call) for _ in range(EAGER_SAMPLES)]
    return {"median_us": round(statistics.median(samples), 2), "samples_us": [round(sample, 2) for sample in samples]}


def slices_us(call, count):
    """Mean device time of a call in each of up to SLICES equal slices of `count` calls, in µs; nothing waits between them."""
    each = max(count // SLICES, 1)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count // each + 1)]
    events[0].record()
    for event in events[1:]:
        for _ in range(each):
            call()
        event.record()
    events[-1].synchronize()
    return [begin.elapsed_time(end) * 1e3 / each for begin, end in zip(events, events[1:])]


def steady(call, each_us, counters, seconds=STEADY_S, together=1):
    """Median µs of one of the `together` operators of a call over the slices of a loop of `seconds` after as long a one, in which the
    clock settles; all ranks run as many calls. While others use the host's cores, for milliseconds or for seconds, a slice takes up to
    twice the time. `each_us`: about how long a call takes; 0 is found out by ten calls."""
    count = max(int(seconds * 1e6 / longest(each_us or elapsed_us(call, 10))), 5)
    for _ in range(2):  # the first until the clock has settled
        dist.barrier()
        torch.cuda.synchronize()
        with Watch(counters) as watch:
            slices = slices_us(call, count)
    samples = [sample / together for sample in longest_of(slices)]
    return {"median_us": round(statistics.median(samples), 3), "samples_us": [round(sample, 2) for sample in samples],
            "iterations": count, "power_W": watch.power_W, "clock_MHz": watch.clock_MHz}


def rows_of(operator, shape, call, counters, graphs=True):
    """Rows of one operator: eager and in a graph, single runs from cool and steady loops, alternately."""
    row = {"kind": "operator", "operator": operator, **shape, "ranks": dist.get_world_size()}
    modes = {"eager": call}
    if graphs:
        try:
            modes["graph"] = graph_of(call).replay
        except RuntimeError as error:
            yield row | {"mode": "graph", "refused": refusal(error)}
    for mode, run in modes.items():
        time.sleep(0.3)
        first = single(run)
        yield row | {"mode": mode, "state": "cool", **first}
        yield row | {"mode": mode, "state": "steady", **steady(run, first["median_us"], counters)}


def rows(rank, budget_s):
    """All rows, on every rank alike; rank 0's clock decides when the budget is spent."""
    begin, ranks, counters = time.perf_counter(), dist.get_world_size(), Counters(rank)

    def over():
        return longest(time.perf_counter() - begin) > budget_s

    for m, n, k in SHAPES:
        for make, of_k in ((all_gather_gemm, k), (gemm_reduce_scatter, k // ranks)):
            for operator, call in make(m, n, of_k, ranks).items():
                if over():
                    return
                yield from rows_of(operator, {"m": m, "n": n, "k": of_k}, call, counters)
    for m in SMALL_ROWS:
        for n, k in ((8192, 28672 // ranks), (8192, 8192 // ranks)):
            for operator, call in gemm_all_reduce(m, n, k, ranks).items():
                if over():
                    return
                yield from rows_of(operator, {"m": m, "n": n, "k": k}, call, counters)
    for kib in COLLECTIVE_KIB:
        for operator, call in collectives(kib, ranks).items():
            if over():
                return
            yield from rows_of(operator, {"bytes": kib * 1024}, call, counters)


def other_rows(rank, budget_s, shapes=OTHER_SHAPES):
    """Both collectives with their GEMM by NCCL and by async TP, steady: in graphs once, eager in turns, since a host that others
    share is slower for seconds."""
    begin, ranks, counters = time.perf_counter(), dist.get_world_size(), Counters(rank)
    for turn in range(EAGER_TURNS):
        for m, n, k in shapes:
            for make, of_k in ((all_gather_gemm, k), (gemm_reduce_scatter, k // ranks)):
                for operator, call in make(m, n, of_k, ranks).items():
                    if longest(time.perf_counter() - begin) > budget_s:
                        return
                    if operator == "gemm":
                        continue
                    row = {"kind": "operator", "operator": operator, "m": m, "n": n, "k": of_k, "ranks": ranks}
                    yield row | {"mode": "eager", "state": "steady", **steady(call, 0, counters, OTHER_S)}
                    if turn == 0:
                        try:
                            yield row | {"mode": "graph", "state": "steady", **steady(graph_of(call).replay, 0, counters, OTHER_S)}
                        except RuntimeError as error:
                            yield row | {"mode": "graph", "refused": refusal(error)}
