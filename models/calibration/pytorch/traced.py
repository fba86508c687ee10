"""Pairs of runs, without and with a profiler: tensor-parallel layers, FSDP2, and Hugging Face models, a process a GPU.

    cd models/calibration && python3 -m pytorch.traced FOLDER [SECONDS]      # two or more GPUs

A line of FOLDER/measured.jsonl: what ran; of an iteration `median_us` and `samples_us` in a steady state, events, nothing waits
between iterations; `wall_us` of 15 iterations, each between two synchronisations; `profiled_us`, the same of the two that were
recorded; `trace`, rank 0's Kineto file of these two, with shapes. Layers and iterations are drawn by SEED as in drawn.py.
"""
import gc
import json
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

from . import drawn, fsdp
from .calls import graph_of
from .counters import Counters
from .layers import LINKS, layer_of
from .operators import longest, normal, refusal, steady
from .ranks import in_ranks, machine, write
from .sizes import Sizes

SEED = 20261130
STEADY_S, WALLS = 0.35, 15
HUGGING_FACE = {
    "llama": ("llama", dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
                            num_hidden_layers=4, vocab_size=32000)),
    "qwen3": ("qwen3", dict(hidden_size=2560, intermediate_size=9728, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                            num_hidden_layers=4, vocab_size=32000)),
}
HUGGING_FACE_RUNS = (("tp_plan", "prefill", 1, 4096), ("tp_plan", "training", 1, 2048), ("fsdp2", "training", 1, 2048),
                     ("fsdp2", "training", 2, 4096))


def wall_us(call):
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return longest((time.perf_counter() - begin) * 1e6)


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 1), "quartiles": [round(low, 1), round(high, 1)]}


def record(call, path):
    """Writes a trace of two iterations to `path` on rank 0; returns their wall times."""
    def write_trace(profiler):
        if dist.get_rank() == 0:
            profiler.export_chrome_trace(str(path))
            text = json.loads(path.read_text())
            text.pop("traceName", None)
            path.write_text(json.dumps(text, separators=(",", ":")))
    times = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, with_stack=False,
                 on_trace_ready=write_trace, schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as profiler:
        for _ in range(3):
            times.append(wall_us_alone(call))
            profiler.step()
    return [round(longest(one), 1) for one in times[1:]]


def wall_us_alone(call):
    """As wall_us, but the ranks' times are not compared in between, which would be in the trace."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6


def measured(row, call, folder, name, counters):
    """`row` with the times of `call`."""
    for _ in range(3):
        call()
    row = row | {"name": name, **steady(call, 0, counters, STEADY_S)}
    row["wall_us"] = quartiles([wall_us(call) for _ in range(WALLS)])
    dist.barrier()
    return row | {"profiled_us": record(call, folder / f"{name}.json"), "trace": f"{name}.json"}


def layer_cases():
    for model, tokens in drawn.layers(SEED, 12):
        for links in ("nccl", "async_tp"):
            for mode in ("eager", "graph"):
                def make():
                    sizes = Sizes(model, dist.get_world_size())
                    layer, x = layer_of(sizes, LINKS[links], tokens), normal(tokens // dist.get_world_size(), sizes.hidden)

                    def call():
                        with torch.no_grad():
                            return layer(x)
                    return call if mode == "eager" else graph_of(call).replay
                row = {"kind": "block", "block": "layer", "model": model, "tokens": tokens, "links": links, "mode": mode, "state": "steady",
                       "ranks": dist.get_world_size()}
                yield row, f"tp_{model}_{tokens}_{links}_{mode}", make


def fsdp_cases():
    for number, (name, layers, sequences, tokens, reduced, _) in enumerate(drawn.iterations(SEED, 6)):
        for how in ("implicit", "none"):
            def make():
                model, sizes = fsdp.model_of(name, layers, tokens, reduced, how)
                x = normal(sequences, tokens, sizes.hidden).requires_grad_()
                iteration = fsdp.iteration_of(model, x, normal(sequences, tokens, sizes.hidden))
                iteration()
                if how == "none":
                    fsdp.on_stream_of_computation(model)
                return iteration
            row = {"kind": "fsdp", "model": name, "layers": layers, "sequences": sequences, "tokens": tokens, "reduced": reduced,
                   "prefetch": how, "mode": "eager", "state": "steady", "ranks": dist.get_world_size()}
            yield row, f"fsdp_{number}_{name}_{how}", make


def hugging_face_model(family, sizes, how):
    """By tp_plan as people load it, so random weights are saved first; or sharded by FSDP2, layer by layer."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from transformers import AutoConfig, AutoModelForCausalLM
    config = AutoConfig.for_model(family, **sizes)
    if how == "fsdp2":
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).cuda()
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, mp_policy=policy)
        return fully_shard(model, mp_policy=policy)
    place = pathlib.Path(tempfile.gettempdir()) / f"weights_{family}"
    if dist.get_rank() == 0 and not place.exists():
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(place)
    dist.barrier()
    return AutoModelForCausalLM.from_pretrained(place, dtype=torch.bfloat16, tp_plan="auto")


def hugging_face_cases():
    for name, (family, sizes) in HUGGING_FACE.items():
        for how, phase, batch, tokens in HUGGING_FACE_RUNS:
            def make():
                model = hugging_face_model(family, sizes, how)
                torch.manual_seed(0)
                words = torch.randint(0, sizes["vocab_size"], (batch, tokens), device="cuda")
                # AdamW refuses parameters of which some are DTensors, as by tp_plan
                optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True) if how == "fsdp2" else None

                def prefill():
                    with torch.no_grad():
                        model(input_ids=words, use_cache=False)

                def training():
                    model.zero_grad(set_to_none=True)
                    model(input_ids=words, labels=words, use_cache=False).loss.backward()
                    if optimizer:
                        optimizer.step()
                return prefill if phase == "prefill" else training
            row = {"kind": "hugging_face", "model": name, "config": sizes, "how": how, "phase": phase, "batch": batch, "tokens": tokens,
                   "optimizer": "AdamW" if (how, phase) == ("fsdp2", "training") else None,
                   "mode": "eager", "state": "steady", "ranks": dist.get_world_size()}
            yield row, f"hf_{name}_{how}_{phase}_{batch}x{tokens}", make


def rows(rank, seconds, folder, small):
    """All cases, or those whose names have `small`."""
    begin, counters = time.perf_counter(), Counters(rank)
    shares = ((layer_cases, 0.5), (fsdp_cases, 0.75), (hugging_face_cases, 1.0))
    for part, share in shares:
        for number, (row, name, make) in enumerate(part()):
            if small and small not in name:
                continue
            if longest(time.perf_counter() - begin) > seconds * share:
                break
            call = None
            try:
                call = make()
                yield measured(row, call, folder, name, counters)
            except Exception as error:  # too little memory, or a library refuses: the others go on
                yield row | {"name": name, "refused": refusal(error)}
            del call
            gc.collect()
            torch.cuda.empty_cache()


def main(folder, seconds=600, small=""):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "measured.jsonl", machine("python3 -m pytorch.traced FOLDER"))
    in_ranks(rows, folder / "measured.jsonl", float(seconds), folder, small)


if __name__ == "__main__":
    main(*sys.argv[1:])
