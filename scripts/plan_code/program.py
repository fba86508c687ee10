# {{title}}
# Written by scripts/plan_to_code.
#   torchrun --nproc-per-node {{gpus}} program.py [--check] [--graph] [--repeats N]
# Prints the median time of N runs (21) and that of the operation in one piece; --graph: as a CUDA graph, without the host's time;
# --check: compare the results.
import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

GPUS = {{gpus}}
M, N, K = {{m}}, {{n}}, {{k}}  # the whole GEMM of a GPU: C[M, N] = A[M, K] B[K, N]
shard = M // GPUS  # rows of a rank's shard
dtype = torch.{{dtype}}

rank = int(os.environ["RANK"])
if int(os.environ["WORLD_SIZE"]) != GPUS:
    raise SystemExit(f"needs torchrun --nproc-per-node {GPUS}")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
if torch.cuda.get_device_properties(device).multi_processor_count > {{limit}}:
    raise SystemExit("a GEMM is planned for {{limit}} compute units: PyTorch sets no mask")
dist.init_process_group("nccl", device_id=device)
handles = []


def shared(rows, columns):
    """A matrix of every rank: mine, and views of my peers' by their ranks."""
    mine = symm_mem.empty(rows, columns, dtype=dtype, device=device)
    handles.append(symm_mem.rendezvous(mine, dist.group.WORLD))
    return [mine if one == rank else handles[-1].get_buffer(one, (rows, columns), dtype) for one in range(GPUS)]


def private(rows, columns):
    """A matrix that no peer touches."""
    return {rank: torch.empty(rows, columns, dtype=dtype, device=device)}


def slot(of, peer):
    """The place of a peer among the ranks other than `of`."""
    return peer - (peer > of)


def other(of, place):
    """The rank of a place among the ranks other than `of`."""
    return place + (place >= of)


{{buffers}}
signals = handles[0]  # channel 0: barriers; each other one: a wait for a peer's task
{{streams}}
{{events}}torch.cuda.set_stream(compute)


def schedule():
{{steps}}

def run(begin=None, end=None):
    """Once. All ranks begin together; `compute` ends behind all streams."""
    signals.barrier(channel=0)
    if begin is not None:
        begin.record()
    for stream in streams:
        stream.wait_stream(compute)
    schedule()
    for stream in streams:
        compute.wait_stream(stream)
    if end is not None:
        end.record()


def random(seed, rows, columns):
    """Numbers from -1 to 1."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.rand(rows, columns, device=device, generator=generator).mul_(2).sub_(1).to(dtype)


GATHERS, SCATTERS = {{gathers}}, {{scatters}}
whole_a, whole_b = random(1 if GATHERS else 100 + rank, M, K), random(200 + rank, K, N)
for whole, mine, row, rows in {{inputs}}[rank]:
    mine[rank][row:row + rows].copy_((whole_a if whole == "a" else whole_b)[row:row + rows])
own_a = whole_a[rank * shard:(rank + 1) * shard].clone()
own_c = torch.empty(shard, N, dtype=dtype, device=device)


def unsplit():
    """The operation in one piece; returns the rows of C that this rank needs."""
    if GATHERS:
        dist.all_gather_into_tensor(whole_a, own_a)
        return torch.mm(whole_a, whole_b)
    sums = torch.mm(whole_a, whole_b)
    if SCATTERS:
        dist.reduce_scatter_tensor(own_c, sums)
        return own_c
    dist.all_reduce(sums)
    return sums


def median_us(function, repeats):
    """Of the slowest rank."""
    times = []
    for _ in range(repeats + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        function(begin, end)
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    slowest = torch.tensor(times[3:], device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.median().item()


def timed_unsplit(begin, end):
    signals.barrier(channel=0)
    begin.record()
    unsplit()
    end.record()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--repeats", type=int, default=21)
    given = parser.parse_args()
    run()
    torch.cuda.synchronize()
    function = run
    if given.graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=compute):
            run()

        def function(begin, end):
            signals.barrier(channel=0)
            begin.record()
            graph.replay()
            end.record()
    ours, whole = median_us(function, given.repeats), median_us(timed_unsplit, given.repeats)
    if rank == 0:
        print(f"{ours:.1f} us (median of {given.repeats}); in one piece {whole:.1f} us", flush=True)
    wrong = torch.zeros(1, device=device)
    if given.check:
        wanted = unsplit()
        for mine, row, rows in {{results}}[rank]:
            found = mine[rank][row:row + rows].float()
            want = wanted[row - rank * shard:][:rows].float() if SCATTERS else wanted[row:row + rows].float()
            allowed = {{roundings}} * {{epsilon}} * (want.abs() + (K if GATHERS else K * GPUS) ** 0.5)
            wrong += ((found - want).abs() <= allowed).logical_not().sum()
        dist.all_reduce(wrong)
        if rank == 0:
            print(f"WRONG: {int(wrong)} entries" if wrong.item() else "results are right", flush=True)
    failed = bool(wrong.item())
    dist.destroy_process_group()
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
