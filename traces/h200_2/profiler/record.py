"""Records what ../notes.md describes: three times all-gather, then GEMM, a process a GPU. Usage: record.py FOLDER"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile


def work(rank, world, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    m, n, k = 8192, 2560, 8192
    shard = torch.randn(m // world, k, device="cuda", dtype=torch.bfloat16)
    whole = torch.empty(m, k, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        dist.all_gather_into_tensor(whole, shard)
        whole @ weights
    torch.cuda.synchronize()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        for _ in range(3):
            dist.all_gather_into_tensor(whole, shard)
            whole @ weights
        torch.cuda.synchronize()
    recorded.export_chrome_trace(f"{folder}/rank{rank}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    mp.spawn(work, args=(gpus, sys.argv[1]), nprocs=gpus)
