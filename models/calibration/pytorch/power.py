"""Power of GEMMs at full clock and of transfers, and what the end of a graph costs, a process a GPU, in graphs. One GPU has no transfers.

The energy counter of a GPU averages over some 25 ms of each 100, so that bursts and pauses as long are seen by chance. Here GEMMs
alternate with kernels that do nothing within a millisecond, and each row is a loop of seconds behind another.
"""
import time

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric

from .allreduce import MANY, row_of, symmetric_zeros
from .counters import Counters
from .lines import collectives
from .operators import longest, normal, zeros

WATCHED_S, ENDS_S = 1.5, 0.2
SMALL_KIB, LARGE_KIB = 256, 256 * 1024
FILLER_KIB = 64 * 1024  # some 50 us of reading and writing: the launch of a graph is hidden behind it
# m, n, k, and cycles of the kernels that do nothing: about as long as half and all of the GEMM
SHAPES = ((8192, 8192, 8192, (1_400_000, 2_800_000)), (16384, 8192, 1024, (400_000, 800_000)),
          (4096, 4096, 4096, (180_000, 360_000)), (8192, 2560, 8192, (440_000, 880_000)))
WITH_TRANSFERS = SHAPES[:2]


def in_turn(*calls):
    def all_of_them():
        for call in calls:
            call()
    return all_of_them


def beside(first, second):
    """Both at once, on two streams that join."""
    other = torch.cuda.Stream()

    def both():
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            second()
        first()
        torch.cuda.current_stream().wait_stream(other)
    return both


def nothing(cycles):
    return lambda: torch.cuda._sleep(cycles)


def pull(shared):
    """A copy of the next GPU's `shared`, by a copy engine."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    handle = symmetric.rendezvous(shared, dist.group.WORLD.group_name)
    remote, here = handle.get_buffer((rank + 1) % ranks, shared.shape, shared.dtype), torch.empty_like(shared)
    return lambda: here.copy_(remote)


def kernels(target, source):
    """Kernels of a GPU alone by name, on operands of `source`'s bytes: of the sum that is what it reads."""
    rows = source.view(-1, 8192)
    q = source[:source.numel() // 4].view(1, -1, 4096, 128)
    parts = source.view(2, -1, 8192)
    result = target[:parts[0].numel()].view(-1, 8192)
    return {"local_copy": lambda: target.copy_(source), "sum": lambda: torch.sum(parts, 0, out=result),
            "add": lambda: torch.add(source, source, out=target),
            "silu": lambda: torch.nn.functional.silu(source),
            "norm": lambda: torch.nn.functional.rms_norm(rows, (8192,)),
            "attention": lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)}


def powers():
    """(row, call) of the loops of seconds; a call is good until the next is asked for."""
    here, local, moves = zeros(LARGE_KIB * 512), normal(LARGE_KIB * 512), {}
    if dist.get_world_size() > 1:
        shared = symmetric_zeros(LARGE_KIB * 256).normal_()
        moves = collectives(LARGE_KIB) | {"dma_pull": pull(shared)}
    yield {"operator": "nothing"}, nothing(1_000_000)
    for operator, call in (kernels(here, local) | moves).items():
        yield {"operator": operator, "bytes": LARGE_KIB * 1024}, call
    for m, n, k, cycles in SHAPES:
        a, weights, c = normal(m, k), normal(k, n), zeros(m, n)

        def gemm():
            torch.mm(a, weights, out=c)  # pylint: disable=cell-var-from-loop
        shape = {"m": m, "n": n, "k": k}
        yield {"operator": "gemm"} | shape, gemm
        for each in cycles:
            yield {"operator": "gemm, nothing", "cycles": each} | shape, in_turn(gemm, nothing(each))
        if (m, n, k, cycles) not in WITH_TRANSFERS:
            continue
        partners = moves | kernels(here, local)
        for operator in ("all_gather", "reduce_scatter", "dma_pull", "sum"):
            if operator in partners:
                yield {"operator": f"gemm, {operator}", "bytes": LARGE_KIB * 1024} | shape, in_turn(gemm, partners[operator])
        if moves:
            yield {"operator": "gemm beside dma_pull", "bytes": LARGE_KIB * 1024} | shape, beside(gemm, moves["dma_pull"])


def ends():
    """(row, call) of kernels in graphs of several lengths, with a kernel of some 50 us or a small one."""
    moves = {}
    if dist.get_world_size() > 1:
        group, shared, result = dist.group.WORLD.group_name, symmetric_zeros(SMALL_KIB * 512), zeros(SMALL_KIB * 512)
        moves = collectives(SMALL_KIB) | {
            "all_reduce_one_shot": lambda: torch.ops.symm_mem.one_shot_all_reduce_out(shared, "sum", group, result)}
    for tensor in (zeros(FILLER_KIB * 512), zeros(256)):
        def kernel():
            tensor.add_(1)  # pylint: disable=cell-var-from-loop
        small = {"kernel_bytes": tensor.numel() * 2}
        yield {"operator": "kernel"} | small, kernel
        for operator, call in moves.items():
            row = {"operator": operator, "bytes": SMALL_KIB * 1024} | small
            yield row | {"behind": "kernel"}, in_turn(kernel, call)
            yield row | {"before": "kernel"}, in_turn(call, kernel)


def rows(rank, budget_s):
    """All rows, on every rank alike."""
    begin, counters = time.perf_counter(), Counters(rank)

    def over():
        return longest(time.perf_counter() - begin) > budget_s
    for of, in_graph, seconds in ((powers, (1,), WATCHED_S), (ends, (1, 4, MANY), ENDS_S)):
        for row, call in of():
            for together in in_graph:
                if over():
                    return
                yield row_of({"kind": "operator"} | row, call, together, counters, seconds)
