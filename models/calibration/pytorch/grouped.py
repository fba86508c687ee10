"""Times of torch's grouped GEMM (experts with equal rows), on one GPU, back to back until the clock has settled.

    cd models/calibration && python3 -m pytorch.grouped OUT.csv      # sim cost --device DEVICE --from OUT.csv prices its rows

Columns: dtype, groups, M_per_group, N, K; `us`, mean time of a call in a CUDA graph of 20 that is replayed for 150 ms, each call with
weights of its own as far as memory allows (at least 1 GB are read in turn); the second half counts.
"""
import csv
import sys

import torch

SHAPES = ((4096, 7168), (7168, 2048), (3072, 4096), (4096, 1536), (28672, 4096), (4096, 14336), (5760, 2880), (2880, 2880))  # N, K
GROUPS = (8, 16, 32, 64, 128)
ROWS = (1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048)
CALLS, MILLISECONDS = 20, 150


def call_us(groups, rows, n, k):
    """Mean microseconds of a call; None if operands don't fit."""
    weight_bytes = 2 * groups * n * k
    if weight_bytes > 20e9 or groups * rows > 1 << 17:
        return None
    copies = max(1, min(CALLS, int(1e9 // weight_bytes) + 1))
    weights = [torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in range(copies)]
    tokens = torch.randn(groups * rows, k, device="cuda", dtype=torch.bfloat16)
    ends = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * rows
    for weight in weights:
        torch._grouped_mm(tokens, weight, offs=ends)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in range(CALLS):
            torch._grouped_mm(tokens, weights[call % copies], offs=ends)

    def replayed_ms(times):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(times):
            graph.replay()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / times

    once = replayed_ms(2)
    half = max(1, int(MILLISECONDS / 2 / once))
    replayed_ms(half)
    return 1000 * replayed_ms(half) / CALLS


def main():
    with open(sys.argv[1], "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("dtype", "groups", "M_per_group", "N", "K", "us"))
        for n, k in SHAPES:
            for groups in GROUPS:
                for rows in ROWS:
                    us = call_us(groups, rows, n, k)
                    if us is not None:
                        table.writerow(("bf16", groups, rows, n, k, f"{us:.3f}"))
                torch.cuda.empty_cache()
    print(torch.__version__, torch.cuda.get_device_name())


if __name__ == "__main__":
    main()
