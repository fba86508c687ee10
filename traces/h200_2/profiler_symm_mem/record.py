"""Records what ../notes.md describes: PyTorch's async tensor parallelism, a process a GPU. Usage: record.py FOLDER"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed._symmetric_memory import enable_symm_mem_for_group
from torch.profiler import ProfilerActivity, profile, schedule


def work(rank, world, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    group = dist.group.WORLD.group_name
    enable_symm_mem_for_group(group)
    m, n, k = 8192, 2560, 8192
    shard = torch.randn(m // world, k, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        torch.ops.symm_mem.fused_all_gather_matmul(shard, [weights], 0, group)
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=1, warmup=1, active=4)) as recorded:
        for _ in range(6):
            torch.ops.symm_mem.fused_all_gather_matmul(shard, [weights], 0, group)
            recorded.step()
        torch.cuda.synchronize()
    recorded.export_chrome_trace(f"{folder}/rank{rank}.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    mp.spawn(work, args=(gpus, sys.argv[1]), nprocs=gpus)
