"""Begin and end of each kernel, by kineto, where four GEMMs of one stream stand beside copies by a Triton kernel.

    python3 copies_beside.py OUT.jsonl      # two or more GPUs that reach each other; half a minute

A copy waits for the GEMM before it (`after` 1), as in GEMM -> reduce-scatter, or begins with the first (0). `who`:
  alone   no copies
  local   GPU 0 copies within its memory, from its second stream
  push    GPU 0 to GPU 1; in: GPU 1 to GPU 0; both: push and in
  all     every GPU has GEMMs, and pushes behind each but the last to the next GPU, the one after that, ...
A line: the GEMM, `who`, MiB of a copy, thread blocks, `after`; `ends_us` of five repeats, and of the middle one the kernels of
GPU 0 (and GPU 1's copies): name, begin and end in us, device.
"""
import json
import sys
import tempfile
import time

import torch
import triton
import triton.language as tl
from torch.profiler import ProfilerActivity, profile

SHAPES = [(2048, 7168, 8192), (1248, 4608, 12288), (2048, 6144, 12288), (8192, 8192, 4096)]
CASES = [("alone", 1, 16, 0)] + [(who, size, 16, 0) for who, size in (("local", 200), ("push", 100), ("in", 100), ("both", 100))] \
    + [(who, size, 4, 0) for who, size in (("local", 200), ("push", 100), ("in", 100))] \
    + [(who, 29, blocks, 1) for who, blocks in (("local", 16), ("push", 16), ("in", 16), ("both", 16), ("all", 16), ("all", 8))]
GEMMS = 4


@triton.jit
def copy_kernel(source, target, count, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)


class Gpu:
    def __init__(self, number, shape):
        torch.cuda.set_device(number)
        m, n, k = shape
        self.number, self.compute, self.copies = number, torch.cuda.Stream(), torch.cuda.Stream()
        self.a, self.b = ((torch.rand(rows, k, device="cuda") * 2 - 1).bfloat16() for rows in (m, n))
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.source, self.target = (torch.rand(200 << 18, device="cuda") for _ in range(2))

    def copy(self, to, size, blocks):
        torch.cuda.set_device(self.number)
        with torch.cuda.stream(self.copies):
            copy_kernel[(blocks,)](self.source, to.target, size << 18, BLOCK=4096, num_warps=16)


def run(gpus, who, size, blocks, after):
    for gpu in gpus:
        torch.cuda.synchronize(gpu.number)
    at_work = gpus if who == "all" else gpus[:1]
    copying = {"alone": [], "local": [(0, 0)], "push": [(0, 1)], "in": [(1, 0)], "both": [(0, 1), (1, 0)]}.get(who)
    for gpu in at_work:
        torch.cuda.set_device(gpu.number)
        with torch.cuda.stream(gpu.compute):
            torch.cuda._sleep(6_000_000)
    for gpu in at_work:
        torch.cuda.set_device(gpu.number)
        begun = gpu.compute.record_event()
        for other in gpus:
            if other is gpu or who != "all":
                other.copies.wait_event(begun)
        for i in range(GEMMS):
            if i == after and copying:
                for source, target in copying:
                    gpus[source].copy(gpus[target], size, blocks)
            torch.cuda.set_device(gpu.number)
            with torch.cuda.stream(gpu.compute):
                torch.mm(gpu.a, gpu.b.t(), out=gpu.c)
            ended = gpu.compute.record_event()
            if who == "all" and i + 1 < GEMMS:
                gpu.copies.wait_event(ended)
                to = gpus[(gpu.number + 1 + i % (len(gpus) - 1)) % len(gpus)]
                gpu.copy(to, size, blocks)
            elif after and i == 0:
                for other in gpus[:2]:
                    other.copies.wait_event(ended)
    for gpu in gpus:
        torch.cuda.synchronize(gpu.number)


def kernels(gpus, *case):
    time.sleep(0.03)
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        run(gpus, *case)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recorded.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    events = sorted((e for e in events if e.get("cat") == "kernel" and "spin" not in e["name"]), key=lambda e: e["ts"])
    first = next(e["ts"] for e in events if e["args"]["device"] == 0)
    return [[e["name"][:48], round(e["ts"] - first, 1), round(e["ts"] - first + e["dur"], 1), e["args"]["device"]]
            for e in events if e["args"]["device"] == 0 or (case[0] != "all" and "copy" in e["name"])]


def main(out):
    count = torch.cuda.device_count()
    for i in range(count):
        for j in range(count):  # the first copy opens the way between two GPUs
            torch.zeros(8, device=f"cuda:{i}").to(f"cuda:{j}")
    with open(out, "w") as file:
        for shape in SHAPES:
            gpus = [Gpu(number, shape) for number in range(count)]
            for case in CASES:
                for _ in range(2):
                    run(gpus, *case)
                repeats = sorted((kernels(gpus, *case) for _ in range(5)), key=lambda r: max(k[2] for k in r if k[3] == 0))
                line = {"gemm": shape, "who": case[0], "MiB": case[1], "blocks": case[2], "after": case[3],
                        "ends_us": [max(k[2] for k in r if k[3] == 0) for r in repeats], "kernels": repeats[2]}
                print(json.dumps(line), file=file, flush=True)


main(sys.argv[1])
