"""Dispatch of tokens to experts over GPUs, a process a GPU, alone and beside grouped GEMMs that don't need it.

    cd models/calibration && python3 -m pytorch.experts OUT.jsonl [SECONDS]      # two or more GPUs

Each rank has `tokens` of `hidden` bf16; a token goes to `top_k` of `experts`, drawn evenly, which are divided among the ranks.
`rows`: how often a token is sent: `choice`, once for each of its experts; `gpu`, once to each GPU that has one of them.
`agent`: `nccl`, all_to_all_single with uneven splits; `copies`, pushes by copy engines between two barriers of symmetric memory;
`bare`, the pushes alone. `mode`: `held`, both are enqueued while a kernel holds the GPU; `idle`, one after the other.
`sent_bytes` to peers and `rows_in` of rank 0. A line: `us` alone, or beside the grouped GEMM (`gemm`: rows, n, k, experts of a GPU;
of another micro-batch) with `gemm_alone_us`, `collective_alone_us`, and both ends; medians of events, of the latest rank.
"""
import itertools
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric

from .beside_nccl import CLOCK_MHZ, HELD_US, medians
from .operators import longest, refusal
from .ranks import in_ranks, machine, write

HIDDEN_AND_INNER = ((7168, 2048), (4096, 1536))
ROUTES = ((8, 256), (8, 128), (4, 128), (2, 64))
TOKENS = (512, 2048, 8192, 16384)
REPEATS = 9


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


class Routed:
    """Counts of rows by rank, sent and received, and the grouped GEMM's rows by local expert."""

    def __init__(self, tokens, hidden, top_k, experts, seed):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        draw = torch.Generator(device="cuda").manual_seed(1000 * seed + rank)
        chosen = torch.rand(tokens, experts, device="cuda", generator=draw).topk(top_k, dim=1).indices
        owner, local = chosen // (experts // ranks), experts // ranks
        self.sent = {"choice": torch.bincount(owner.flatten(), minlength=ranks),
                     "gpu": torch.stack([(owner == peer).any(dim=1).sum() for peer in range(ranks)])}
        self.received = {}
        for rows, counts in self.sent.items():
            other = torch.empty_like(counts)
            dist.all_to_all_single(other, counts)
            self.received[rows] = other
        by_expert, from_all = torch.bincount(chosen.flatten(), minlength=experts), torch.empty(ranks, local, dtype=torch.long, device="cuda")
        dist.all_to_all_single(from_all, by_expert.view(ranks, local).contiguous())
        self.of_expert = from_all.sum(dim=0)
        self.sent = {rows: counts.tolist() for rows, counts in self.sent.items()}
        self.received = {rows: counts.tolist() for rows, counts in self.received.items()}
        self.hidden, self.rank, self.ranks = hidden, rank, ranks


class Dispatch:
    """Both agents' calls for rows of `routed`; a shared buffer holds what arrives by copies, at places of its sender."""

    def __init__(self, routed, rows, buffer, handle, source):
        self.sent, self.received, hidden = routed.sent[rows], routed.received[rows], routed.hidden
        self.handle, self.rank = handle, routed.rank
        self.source, self.target = source[:sum(self.sent)], buffer.flatten()[:sum(self.received) * hidden].view(-1, hidden)
        place = buffer.numel() // routed.ranks  # each sender has a part of the buffer
        self.copies, first = [], 0
        for peer, count in enumerate(self.sent):
            to = handle.get_buffer(peer, (count, hidden), torch.bfloat16, storage_offset=place * routed.rank)
            self.copies.append((to, self.source[first:first + count]))
            first += count
        self.copies = self.copies[routed.rank:] + self.copies[:routed.rank]

    def nccl(self):
        dist.all_to_all_single(self.target, self.source, self.received, self.sent)

    def bare(self):
        for target, source in self.copies:
            target.copy_(source)

    def by_copies(self):
        self.handle.barrier(channel=0)
        self.bare()
        self.handle.barrier(channel=1)


def grouped(routed, hidden, inner):
    """The first grouped GEMM of the experts of this rank, on rows that are there already; None where PyTorch has none."""
    if not hasattr(torch, "_grouped_mm"):
        return None, 0
    rows = int(routed.of_expert.sum())
    a, weights = normal(rows, hidden), normal(len(routed.of_expert), hidden, 2 * inner)
    ends = routed.of_expert.cumsum(0).int()
    return (lambda: torch._grouped_mm(a, weights, offs=ends)), rows


def run(calls, order, streams, token, mode):
    torch.cuda.synchronize()
    started, ends = torch.cuda.Event(enable_timing=True), {}
    with torch.cuda.stream(streams["gate"]):
        dist.all_reduce(token)
        if mode == "held":
            torch.cuda._sleep(HELD_US * CLOCK_MHZ)
        else:
            torch.cuda.synchronize()
        started.record()
    for name in order:
        streams[name].wait_event(started)
        with torch.cuda.stream(streams[name]):
            calls[name]()
            ends[name] = torch.cuda.Event(enable_timing=True)
            ends[name].record()
    torch.cuda.synchronize()
    return {name: 1000 * started.elapsed_time(end) for name, end in ends.items()}


def timed(calls, order, streams, token, mode="held"):
    for _ in range(2):
        run(calls, order, streams, token, mode)
    return medians([run(calls, order, streams, token, mode) for _ in range(REPEATS)])


def right(dispatch, call, routed, buffer, by_copies):
    """Whether rows arrive: each rank sends its number plus one."""
    dispatch.source.fill_(routed.rank + 1)
    buffer.zero_()
    torch.cuda.synchronize()
    dist.barrier()
    call()
    torch.cuda.synchronize()
    dist.barrier()
    first, good, place = 0, True, buffer.numel() // routed.ranks
    for peer, count in enumerate(dispatch.received):
        start = place * peer if by_copies else first * routed.hidden
        good = good and bool((buffer.flatten()[start:start + count * routed.hidden] == peer + 1).all())
        first += count
    return longest(0 if good else 1) == 0


def of_case(tokens, hidden, inner, top_k, experts, buffer, handle, streams):
    routed, token = Routed(tokens, hidden, top_k, experts, seed=tokens + top_k), normal(8)
    source = normal(tokens * top_k, hidden)
    gemm, rows_of_gemm = grouped(routed, hidden, inner)
    base = {"tokens": tokens, "hidden": hidden, "top_k": top_k, "experts": experts, "ranks": routed.ranks}
    gemm_us = None
    if gemm:
        gemm_us = timed({"gemm": gemm}, ("gemm",), streams, token)["gemm"]
        yield base | {"kind": "grouped_gemm", "gemm": [rows_of_gemm, 2 * inner, hidden, experts // routed.ranks], "us": gemm_us}
    for rows in ("choice", "gpu"):
        dispatch = Dispatch(routed, rows, buffer, handle, source)
        sent = sum(count for peer, count in enumerate(dispatch.sent) if peer != routed.rank) * hidden * 2
        for agent, call in (("nccl", dispatch.nccl), ("copies", dispatch.by_copies), ("bare", dispatch.bare)):
            good = right(dispatch, call, routed, buffer, agent != "nccl")
            alone = timed({"comm": call}, ("comm",), streams, token)["comm"]
            line = base | {"rows": rows, "agent": agent, "sent_rows": dispatch.sent, "rows_in": dispatch.received, "sent_bytes": sent}
            yield line | {"kind": "dispatch", "us": alone, "right": good}
            for order, mode in itertools.product((("comm", "gemm"), ("gemm", "comm")), ("held", "idle")) if gemm else ():
                both = timed({"comm": call, "gemm": gemm}, order, streams, token, mode)
                yield line | {"kind": "beside", "gemm": [rows_of_gemm, 2 * inner, hidden, experts // routed.ranks], "first": order[0],
                              "mode": mode, "gemm_alone_us": gemm_us, "collective_alone_us": alone, "us": both["all"], "gemm_us": both["gemm"],
                              "collective_us": both["comm"]}


def rows(rank, seconds, small):
    del rank
    begin, ranks = time.perf_counter(), dist.get_world_size()
    streams = {name: torch.cuda.Stream() for name in ("gate", "comm", "gemm")}
    largest = TOKENS[-1] * max(k for k, _ in ROUTES) * HIDDEN_AND_INNER[0][0]
    buffer = symmetric.empty(largest * ranks, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device()))
    handle = symmetric.rendezvous(buffer, dist.group.WORLD.group_name)
    cases = [(tokens, hidden, inner, top_k, experts) for top_k, experts in ROUTES for hidden, inner in HIDDEN_AND_INNER for tokens in TOKENS]
    for case in cases[::13] if small else cases:
        if longest(time.perf_counter() - begin) > seconds:
            return
        try:
            yield from of_case(*case, buffer, handle, streams)
        except Exception as error:
            yield {"kind": "error", "case": case, "error": refusal(error)}
        torch.cuda.empty_cache()


def main(out, seconds=600, small=False):
    write(out, machine("python3 -m pytorch.experts OUT.jsonl"))
    in_ranks(rows, out, float(seconds), bool(small))


if __name__ == "__main__":
    main(*sys.argv[1:])
