"""NCCL's collectives between other kernels, a process a GPU, in graphs: the time that each adds behind a small kernel.

Two collectives in a row are no measure of one between other kernels: NCCL's second kernel begins 3.5 to 4.5 us after the first has
ended (two H100), a kernel of another kind, or NCCL's behind one, 0.5 to 2.
"""
import time

import torch.distributed as dist

from .allreduce import ALONE_S, MANY, row_of
from .counters import Counters
from .operators import longest, normal, zeros

SIZES_KIB = tuple(2**power for power in range(22))  # 1 KiB to 2 GiB, of the whole operand


def collectives(kib):
    """Calls by name on operands of `kib` KiB: what each rank has before or after, whichever is more."""
    count, ranks = kib * 512, dist.get_world_size()
    whole, other, part = normal(count), zeros(count), normal(count // ranks)
    return {"all_reduce": lambda: dist.all_reduce(whole), "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "all_to_all": lambda: dist.all_to_all_single(other, whole)}


def rows(rank, budget_s):
    """All rows, on every rank alike: the small kernel alone, then it and a collective; even powers of two first."""
    begin, counters, small = time.perf_counter(), Counters(rank), zeros(256)

    def kernel():
        small.add_(1)

    def behind(call):
        kernel()
        call()
    yield row_of({"kind": "operator", "operator": "kernel"}, kernel, MANY, counters, ALONE_S)
    for sizes in (SIZES_KIB[::2], SIZES_KIB[1::2]):
        for kib in sizes:
            for operator, call in collectives(kib).items():
                if longest(time.perf_counter() - begin) > budget_s:
                    return
                row = {"kind": "operator", "operator": operator, "bytes": kib * 1024, "behind": "kernel"}
                yield row_of(row, lambda: behind(call), MANY, counters, ALONE_S)  # pylint: disable=cell-var-from-loop
