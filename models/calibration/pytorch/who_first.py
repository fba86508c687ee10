"""Which of two kernels gets the compute units of one GPU: a GEMM and a copy by few thread blocks, in two streams.

    python3 who_first.py OUT.jsonl      # one GPU, five minutes

Both streams wait for one event, so that both kernels are ready together; `delay_us` holds the second one back by a kernel that
sleeps. A line: the GEMM, MiB and thread blocks of the copy, which was enqueued first, whose stream has the higher priority,
`delay_us`; `alone_us` of both; `both_us`, medians over repeats of events from the common start to the end of the GEMM, of the
copy and of both; `recorded`, begin and end of both kernels by the profiler in three repeats, in us from the first begin.
"""
import itertools
import json
import statistics
import sys
import tempfile

import torch
import triton
import triton.language as tl
from torch.profiler import ProfilerActivity, profile

GEMMS = [(8192, 8192, 8192), (8192, 2560, 8192), (2048, 7168, 8192), (4096, 4096, 4096)]
COPIES = [(64, 16), (256, 16), (256, 4), (256, 32)]  # MiB, thread blocks
REPEATS = 15
CLOCK_MHZ = 1980  # of _sleep's cycles; a GPU below its peak clock sleeps longer


@triton.jit
def copy_kernel(source, target, count, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)


class Work:
    def __init__(self, shape, size, blocks):
        m, n, k = shape
        self.a, self.b = ((torch.rand(rows, k, device="cuda") * 2 - 1).bfloat16() for rows in (m, n))
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.source, self.target = (torch.zeros(size << 18, device="cuda") for _ in range(2))
        self.count, self.blocks = size << 18, blocks

    def launch(self, which):
        if which == "gemm":
            torch.mm(self.a, self.b.t(), out=self.c)
        else:
            copy_kernel[(self.blocks,)](self.source, self.target, self.count, BLOCK=4096, num_warps=16)


def streams_of(priority):
    return {name: torch.cuda.Stream(priority=-1 if priority == name else 0) for name in ("gemm", "copy")}


def run(work, streams, order, delay_us):
    """Enqueues the kernels of `order` behind a closed gate; returns the events of the start and of each end."""
    torch.cuda.synchronize()
    gate, started = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(gate):
        torch.cuda._sleep(400 * CLOCK_MHZ)
        started.record()
    ends = {}
    for place, name in enumerate(order):
        streams[name].wait_event(started)
        with torch.cuda.stream(streams[name]):
            if place and delay_us:
                torch.cuda._sleep(delay_us * CLOCK_MHZ)
            work.launch(name)
            ends[name] = torch.cuda.Event(enable_timing=True)
            ends[name].record()
    torch.cuda.synchronize()
    return {name: 1000 * started.elapsed_time(end) for name, end in ends.items()}


def medians(runs):
    found = {name: round(statistics.median(one[name] for one in runs), 2) for name in runs[0]}
    return found | {"all": round(statistics.median(max(one.values()) for one in runs), 2)}


def recorded(work, streams, order, delay_us):
    with profile(activities=[ProfilerActivity.CUDA]) as done:
        run(work, streams, order, delay_us)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done.export_chrome_trace(file.name)
        events = [e for e in json.load(open(file.name))["traceEvents"] if e.get("cat") == "kernel" and "spin" not in e["name"]]
    first = min(e["ts"] for e in events)
    return {"copy" if "copy_kernel" in e["name"] else "gemm": [round(e["ts"] - first, 2), round(e["ts"] - first + e["dur"], 2)]
            for e in events}


def cases():
    for order, priority in itertools.product((("gemm", "copy"), ("copy", "gemm")), ("none", "gemm", "copy")):
        yield order, priority, 0
    for order, delay_us in itertools.product((("gemm", "copy"), ("copy", "gemm")), (5, 20, 100)):
        yield order, "none", delay_us
    for delay_us in (20, 100):
        yield ("gemm", "copy"), "copy", delay_us
        yield ("copy", "gemm"), "gemm", delay_us


def main(out):
    with open(out, "w", encoding="utf-8") as file:
        print(json.dumps({"schema": 1, "kind": "machine", "device": torch.cuda.get_device_name(), "gpus": 1,
                          "pytorch": torch.__version__, "triton": triton.__version__, "runtime": torch.version.cuda,
                          "command": "python3 models/calibration/pytorch/who_first.py OUT.jsonl"}), file=file)
        for shape, (size, blocks) in itertools.product(GEMMS, COPIES):
            work, streams = Work(shape, size, blocks), streams_of("none")
            for _ in range(3):
                run(work, streams, ("gemm", "copy"), 0)
            alone = {name: medians([run(work, streams, (name,), 0) for _ in range(REPEATS)])[name] for name in ("gemm", "copy")}
            for order, priority, delay_us in cases():
                streams = streams_of(priority)
                run(work, streams, order, delay_us)
                both = medians([run(work, streams, order, delay_us) for _ in range(REPEATS)])
                print(json.dumps({"gemm": shape, "MiB": size, "blocks": blocks, "first": order[0], "priority": priority,
                                  "delay_us": delay_us, "alone_us": alone, "both_us": both,
                                  "recorded": [recorded(work, streams, order, delay_us) for _ in range(3)]}), file=file, flush=True)


main(sys.argv[1])
