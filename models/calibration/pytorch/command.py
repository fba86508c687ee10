"""The command scripts/measure_pytorch."""
import argparse
import datetime
import importlib
import json
import os
import pathlib
import re
import socket
import sys
import time

from . import drawn
from .cases import scenario, write_cases
from .host import write_host

PARTS = ("calls", "memory", "enqueued", "operands", "loops", "operators", "others", "allreduce", "lines", "power", "kernels",
         "steps", "attention", "layers", "fsdp")
OF_SEVERAL_GPUS = ("operators", "others", "allreduce", "lines", "layers", "fsdp")
OF_DRAWN_SHAPES = ("others", "allreduce", "steps", "layers", "fsdp")
GRACE_S = 60  # for starting and ending the processes of a part


def arguments(words):
    parser = argparse.ArgumentParser(
        prog="scripts/measure_pytorch",
        description="Measures what PyTorch adds around kernels on this machine, and operators as it runs them. "
                    f"Needs PyTorch with a GPU; {', '.join(OF_SEVERAL_GPUS)} need two or more.",
        epilog="calls: host time of each call, graphs; memory: local copies and sums; enqueued: what async TP enqueues "
               "(on one GPU: by processes that share it, host time only); operands: GEMMs of operands that are normally or evenly "
               "distributed, or zeros; loops: GEMMs from cool and in steady state with clock and power; operators: collective "
               "and GEMM by NCCL and async TP, eager and in graphs; others: the same of other shapes, steady only; allreduce: "
               "all-reduces by symmetric memory and NCCL, alone and behind GEMMs of few rows; lines: NCCL's collectives behind a "
               "small kernel, in graphs; power: power of GEMMs at full clock and of transfers, the end of a graph; kernels: clocks "
               "of kernels that alternate, kernels of operators in graphs by kineto; steps: layers of models as sim model lists "
               "them, on one GPU; attention: its kernels, prefill, backward and decode, as tables OUT.*.csv, too; layers: MLP "
               "blocks and transformer layers, tensor parallel, in graphs and compiled; "
               "fsdp: iterations by fully_shard, and traces OUT.fsdp_*.json.gz. OUT.cases.jsonl has what sim compare reads, "
               "OUT.host.json the host's calls (of calls, enqueued) for its --host.")
    parser.add_argument("out", help="file of JSON lines to write; an existing file is replaced")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated (default: all)")
    parser.add_argument("--minutes", type=float, default=8, help="limit of each of the long parts (default 8)")
    parser.add_argument("--drawn", metavar="SEED", type=int,
                        help="others, allreduce, steps, layers and fsdp of shapes drawn by this seed, so that no model was decided on them")
    parser.add_argument("--list", metavar="TOPOLOGY",
                        help="needs no GPU: writes the run configs of --drawn, of h200_2, say, to OUT; sim batch OUT predicts them")
    chosen = parser.parse_args(words)
    if chosen.list and chosen.drawn is None:
        parser.error("--list: needs --drawn")
    if chosen.list and not re.fullmatch(r"[a-z0-9_]+_[1-9][0-9]*", chosen.list):
        parser.error(f"--list: is '{chosen.list}' (expected the name of a topology that ends with its GPUs, such as h200_2)")
    chosen.parts = chosen.parts.split(",")
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"--parts: is '{part}' (allowed: {', '.join(PARTS)})")
    return chosen


def machine(words):
    import torch
    from .counters import Counters
    return {"schema": 1, "kind": "machine", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ"),
            "command": "scripts/measure_pytorch " + " ".join(words), "device": torch.cuda.get_device_name(),
            "gpus": torch.cuda.device_count(), "host_cores": os.cpu_count(), "pytorch": torch.__version__,
            "runtime": torch.version.cuda or torch.version.hip,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "power_limit_W": Counters().power_limit_W()}


def join_group(rank, ranks, port, shared_gpu):
    import torch
    import torch.distributed as dist
    from torch.distributed._symmetric_memory import enable_symm_mem_for_group
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(0 if shared_gpu else rank)
    dist.init_process_group("gloo" if shared_gpu else "nccl", rank=rank, world_size=ranks)
    enable_symm_mem_for_group(dist.group.WORLD.group_name)


def drawn_rows(part, rank, out, seconds, seed):
    """Rows of a part that has drawn shapes."""
    if part == "others":
        from . import operators
        return operators.other_rows(rank, seconds, drawn.operators(seed))
    if part == "allreduce":
        from . import allreduce
        return allreduce.generation_rows(rank, seconds, drawn.generation(seed))
    if part == "steps":
        from . import steps
        return steps.rows(rank, seconds, drawn.steps(seed))
    if part == "layers":
        from . import layers
        return layers.rows(rank, seconds, drawn.layers(seed))
    from . import fsdp
    return fsdp.rows(rank, seconds, pathlib.Path(out), drawn.iterations(seed))


def rows_of(part, rank, out, seconds, seed):
    """Rows of a part in a process of several; imports no more than it needs, because older versions of PyTorch have less."""
    if seed is not None and part in OF_DRAWN_SHAPES:
        return drawn_rows(part, rank, out, seconds, seed)
    module = importlib.import_module("." + {"collectives": "calls", "others": "operators"}.get(part, part), __package__)
    if part == "collectives":
        return module.collective_rows()
    if part == "enqueued":
        return module.rows()
    if part == "others":
        return module.other_rows(rank, seconds)
    if part == "fsdp":
        return module.rows(rank, seconds, pathlib.Path(out))
    return module.rows(rank, seconds)


def one_rank(rank, ranks, port, part, out, seconds, seed, shared_gpu):
    import torch.distributed as dist
    join_group(rank, ranks, port, shared_gpu)
    for row in rows_of(part, rank, out, seconds, seed):
        if rank == 0:
            write(out, row | ({"shared_gpu": True} if shared_gpu else {}))
    dist.destroy_process_group()


def write(out, row):
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps({key: value for key, value in row.items() if key not in ("samples_us", "kernels")}), file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_processes(part, ranks, out, seconds, seed=None, shared_gpu=False):
    """Runs a part in a process a GPU. Where a rank fails or the ranks wait for each other for ever, the other parts go on."""
    import torch.multiprocessing as mp
    started = mp.spawn(one_rank, args=(ranks, free_port(), part, out, seconds, seed, shared_gpu), nprocs=ranks, join=False)
    try:
        until = time.monotonic() + seconds + GRACE_S
        while not started.join(timeout=max(until - time.monotonic(), 0.1)):
            if time.monotonic() > until:
                raise TimeoutError(f"stopped {GRACE_S} s after its limit")
    except Exception as error:
        write(out, {"kind": "error", "part": part, "ranks": ranks, "error": str(error).strip().splitlines()[-1][:300]})
    for process in started.processes:
        if process.is_alive():
            process.kill()
            process.join()


def measure(part, out, seconds, seed):
    import torch
    from . import calls, loops, operands
    from .counters import Counters
    gpus = torch.cuda.device_count()
    if part == "calls":
        for row in calls.rows():
            write(out, row)
        in_processes("collectives", 1, out, seconds)
    elif part == "memory":
        for row in calls.memory_rows():
            write(out, row)
    elif part == "operands":
        for row in operands.rows():
            write(out, row)
    elif part == "loops":
        for row in loops.rows(Counters(), seconds):
            write(out, row)
    elif part == "enqueued":
        # The same calls may take half as long again in one process as in the next.
        for ranks in (gpus,) * 3 if gpus > 1 else (2, 4):
            in_processes(part, ranks, out, seconds, shared_gpu=gpus == 1)
    elif part in ("power", "kernels"):
        in_processes(part, gpus, out, seconds)
    elif part in ("steps", "attention"):
        in_processes(part, 1, out, seconds, seed)
        if part == "attention":
            from . import attention
            attention.write_tables(out)
    elif gpus > 1:
        in_processes(part, gpus, out, seconds, seed)
        write_cases(out, pathlib.Path(out).with_suffix(".cases.jsonl"))
    else:
        print(f"{part}: skipped, because this machine has one GPU", file=sys.stderr)


def write_list(out, seed, topology):
    with open(out, "w", encoding="utf-8") as file:
        for row in drawn.rows(seed, int(topology.rpartition("_")[2])):
            file.write(json.dumps(scenario(row, topology), separators=(",", ":")) + "\n")
    return 0


def main(words):
    chosen = arguments(words)
    if chosen.list:
        return write_list(chosen.out, chosen.drawn, chosen.list)
    try:
        import torch
    except ImportError:
        print("scripts/measure_pytorch: PyTorch is not installed", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("scripts/measure_pytorch: PyTorch sees no GPU", file=sys.stderr)
        return 2
    os.environ.setdefault("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")
    pathlib.Path(chosen.out).unlink(missing_ok=True)
    write(chosen.out, machine(words))
    for part in chosen.parts:
        measure(part, chosen.out, chosen.minutes * 60, chosen.drawn)
    write_host(chosen.out, pathlib.Path(chosen.out).with_suffix(".host.json"))
    return 0
