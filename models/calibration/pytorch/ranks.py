"""A program of one process a GPU: starts them, ends them after a limit, and writes what rank 0 yields as JSON lines."""
import datetime
import importlib.metadata
import json
import os
import sys
import time

from .command import free_port

GRACE_S = 30


def machine(command):
    import torch
    import torch.distributed as dist  # noqa: F401  its NCCL's version
    versions = {}
    for name in ("triton", "transformers"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return {"schema": 1, "kind": "machine", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ"), "command": command,
            "device": torch.cuda.get_device_name(), "gpus": torch.cuda.device_count(), "host_cores": os.cpu_count(),
            "pytorch": torch.__version__, "runtime": torch.version.cuda, "nccl": ".".join(map(str, torch.cuda.nccl.version())), **versions}


def write(out, row):
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def one_rank(rank, ranks, port, work, out, seconds, arguments):
    import torch
    import torch.distributed as dist
    from torch.distributed._symmetric_memory import enable_symm_mem_for_group
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    enable_symm_mem_for_group(dist.group.WORLD.group_name)
    for row in work(rank, seconds, *arguments):
        if rank == 0:
            write(out, row)
    torch.cuda.synchronize()
    os._exit(0)  # ending groups one after another can take as long as measuring


def in_ranks(work, out, seconds, *arguments):
    """Runs the generator `work(rank, seconds, *arguments)` on every GPU; an error becomes a row."""
    import torch
    import torch.multiprocessing as mp
    ranks, until = torch.cuda.device_count(), time.monotonic() + seconds + GRACE_S
    for attempt in range(3):
        started = mp.spawn(one_rank, args=(ranks, free_port(), work, out, seconds, arguments), nprocs=ranks, join=False)
        error = None
        try:
            while not started.join(timeout=max(until - time.monotonic(), 0.1)):
                if time.monotonic() > until:
                    raise TimeoutError(f"stopped {GRACE_S} s after its limit")
        except Exception as raised:
            error = str(raised)
        for process in started.processes:
            if process.is_alive():
                process.kill()
                process.join()
        if error is None or "EADDRINUSE" not in error or attempt == 2:  # another program may take the port in between
            break
    if error is not None:
        print(error, file=sys.stderr)
        write(out, {"kind": "error", "error": error.strip().splitlines()[-1][:300]})
