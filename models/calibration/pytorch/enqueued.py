"""What the host of a symmetric-memory operator enqueues, call by call: runs with several processes on one GPU, too."""
import collections
import statistics
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from .calls import host_us
from .counters import Counters
from .operators import steady

SMALL = (512, 256, 256)
COUNT = 12  # so few that no call waits for the GPU
TURNS, LOOP_S = 5, 0.3


def operators(ranks):
    group = dist.group.WORLD.group_name
    m, n, k = SMALL
    m *= ranks
    shard = torch.randn(m // ranks, k, device="cuda", dtype=torch.bfloat16)
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    return {
        "all_gather_gemm_async_tp": lambda: torch.ops.symm_mem.fused_all_gather_matmul(shard, [weights], 0, group),
        "gemm_reduce_scatter_async_tp":
            lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(a, weights, "sum", 0, group),
    }


def host_alone_us(call):
    """Median over calls of which each begins with the GPU idle and all ranks together, as a timed single run does."""
    times = []
    for _ in range(2 * COUNT):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def loops_us(calls):
    """By name, times of a call in loops of many, in which the rank whose host is slower decides; the GPU's work is short."""
    counters = Counters()
    turns = [{name: steady(call, 0, counters, LOOP_S)["median_us"] for name, call in calls.items()} for _ in range(TURNS)]
    return {name: [turn[name] for turn in turns] for name in calls}


def runtime_calls(call):
    """Calls of the CUDA runtime and driver in one operator: name → count and mean µs under the profiler."""
    torch.cuda.synchronize()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        for _ in range(COUNT):
            call()
        torch.cuda.synchronize()
    found = collections.defaultdict(list)
    for event in recorded.events():
        if event.name.startswith(("cuda", "cu")) and event.device_type == torch.autograd.DeviceType.CPU:
            found[event.name].append(event.time_range.elapsed_us())
    return {name: {"count": round(len(times) / COUNT, 2), "mean_us": round(statistics.mean(times), 2)}
            for name, times in sorted(found.items())}


def rows():
    calls = operators(dist.get_world_size())
    for call in calls.values():
        for _ in range(3):
            call()
    # Processes that share a GPU wait for each other's turns.
    loops = loops_us(calls) if torch.cuda.device_count() >= dist.get_world_size() else {}
    for name, call in calls.items():
        row = {"kind": "host_operator", "operator": name, "ranks": dist.get_world_size(),
               "host_us": round(host_us(call, COUNT, dist.barrier), 1), "host_alone_us": round(host_alone_us(call), 1)}
        if name in loops:
            row["loops_us"] = loops[name]
        yield row | {"runtime_calls": runtime_calls(call)}
