"""All-reduces of inference on several GPUs, a process each: PyTorch's symmetric memory and NCCL, alone and behind GEMMs, in graphs."""
import time

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric

from .calls import graph_of
from .counters import Counters
from .operators import longest, normal, refusal, steady, zeros

# n, k of one GPU: outputs and down projections of Llama 70B on 2 GPUs, of Llama 8B on 2, of Qwen3 32B on 2, of Llama 70B on 8.
SHAPES = ((8192, 4096), (4096, 7168), (8192, 14336), (4096, 2048), (5120, 12800), (8192, 1024))
ROWS = (1, 32, 256, 128, 16, 512, 4, 64)
ALONE_KIB = tuple(2**power for power in range(17))  # 1 KiB to 64 MiB
MANY = 16  # operators in one graph: with so many its launch hardly counts
ALONE_S, STEADY_S = 0.1, 0.2


def symmetric_zeros(*shape):
    """A tensor that all ranks of the group can reach."""
    tensor = symmetric.empty(*shape, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device()))
    symmetric.rendezvous(tensor, dist.group.WORLD.group_name)
    return tensor.zero_()


def alone(kib):
    """All-reduces of `kib` KiB by name. One-shot: each rank reads and adds all; two-shot: each adds its part, and all gather."""
    group, count = dist.group.WORLD.group_name, kib * 512
    shared, result, plain = symmetric_zeros(count), zeros(count), zeros(count)
    return {
        "all_reduce_one_shot": lambda: torch.ops.symm_mem.one_shot_all_reduce_out(shared, "sum", group, result),
        "all_reduce_two_shot": lambda: torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group),
        "all_reduce": lambda: dist.all_reduce(plain),
    }


def behind_gemm(m, n, k):
    """A GEMM of m rows and its all-reduce, by name, and the GEMM alone."""
    group = dist.group.WORLD.group_name
    a, weights, shared, result, plain = normal(m, k), normal(k, n), symmetric_zeros(m, n), zeros(m, n), zeros(m, n)

    def one_shot():
        torch.mm(a, weights, out=shared)
        torch.ops.symm_mem.one_shot_all_reduce_out(shared, "sum", group, result)

    def two_shot():
        torch.mm(a, weights, out=shared)
        torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)

    def by_nccl():
        torch.mm(a, weights, out=plain)
        dist.all_reduce(plain)

    return {"gemm_all_reduce_nccl": by_nccl, "gemm_all_reduce_one_shot": one_shot,
            "gemm": lambda: torch.mm(a, weights, out=plain), "gemm_all_reduce_two_shot": two_shot}


def row_of(row, call, together, counters, seconds):
    """`row` with the time of one of `together` calls of a graph in a steady state, or with why the library refused."""
    row = row | {"ranks": dist.get_world_size(), "mode": "graph", "in_graph": together}
    try:
        replay = graph_of(lambda: [call() for _ in range(together)]).replay
        replay()
        return row | {"state": "steady", **steady(replay, 0, counters, seconds, together)}
    except Exception as error:  # the other cases go on
        return row | {"refused": refusal(error)}


def rows(rank, budget_s):
    """All rows, on every rank alike; all-reduces alone of the even powers of two first, so that little is lost if time is short."""
    begin, counters = time.perf_counter(), Counters(rank)

    def over():
        return longest(time.perf_counter() - begin) > budget_s

    def of_sizes(sizes):
        for kib in sizes:
            for operator, call in alone(kib).items():
                yield row_of({"kind": "operator", "operator": operator, "bytes": kib * 1024}, call, MANY, counters, ALONE_S)

    yield from of_sizes(ALONE_KIB[::2])
    for m in ROWS:
        for n, k in SHAPES:
            for operator, call in behind_gemm(m, n, k).items():
                if over():
                    return
                for together in (MANY, 1) if operator.endswith(("nccl", "one_shot")) else (MANY,):
                    row = {"kind": "operator", "operator": operator, "m": m, "n": n, "k": k}
                    yield row_of(row, call, together, counters, STEADY_S)
        if m == ROWS[0]:
            yield from of_sizes(ALONE_KIB[1::2])


def generation_rows(rank, budget_s, shapes):
    """GEMMs of few rows and their all-reduces as a model has them: MANY in a graph, each with weights of its own."""
    begin, counters, group = time.perf_counter(), Counters(rank), dist.group.WORLD.group_name
    for m, n, k in shapes:
        a, weights = normal(m, k), [normal(k, n) for _ in range(MANY)]
        shared, result, plain = symmetric_zeros(m, n), zeros(m, n), zeros(m, n)

        def by_nccl():
            for one in weights:
                torch.mm(a, one, out=plain)
                dist.all_reduce(plain)

        def one_shot():
            for one in weights:
                torch.mm(a, one, out=shared)
                torch.ops.symm_mem.one_shot_all_reduce_out(shared, "sum", group, result)

        for links, call in (("nccl", by_nccl), ("one_shot", one_shot)):
            if longest(time.perf_counter() - begin) > budget_s:
                return
            row = {"kind": "generation", "links": links, "m": m, "n": n, "k": k, "layers": MANY, "ranks": dist.get_world_size(),
                   "mode": "graph"}
            try:
                yield row | {"state": "steady", **steady(graph_of(call).replay, 0, counters, STEADY_S)}
            except Exception as error:  # the other cases go on
                yield row | {"refused": refusal(error)}
