#!/usr/bin/env python3
"""Writes the plans that replay measures: every schedule that replay can run, on operators of models.

Usage: overlap.py SIM FOLDER
SIM is the simulator; FOLDER gets four_gpus.jsonl and two_gpus.jsonl, one plan a line, and their run
configs, four_gpus.configs.jsonl and two_gpus.configs.jsonl (sim batch takes them). parts.cases lists the GEMMs of all
plans for microbench, each shape once.
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

# Rows after the gather (in all, before the scatter), and N and K of a GPU; TP = tensor parallel.
GATHERED = [
    ("Llama 3 70B TP 4 QKV", 8192, 2560, 8192),
    ("Llama 3 70B TP 4 gate and up", 8192, 14336, 8192),
    ("Llama 3 70B TP 4 gate and up, short", 2048, 14336, 8192),
    ("Llama 3 405B TP 8 QKV", 8192, 2304, 16384),
    ("Llama 3 405B TP 8 gate and up", 4096, 13312, 16384),
    ("GPT-3 175B TP 8 QKV", 8192, 4608, 12288),
    ("GPT-3 175B TP 8 first FFN, long", 16384, 6144, 12288),
    ("DeepSeek-V3 expert gate and up", 16384, 4096, 7168),
    ("Qwen3-235B expert gate and up", 8192, 3072, 4096),
    ("small", 1024, 2560, 8192),
    ("smaller", 2048, 1536, 4096),
    ("tall", 65536, 1024, 4096),
    ("wide", 1024, 16384, 8192),
    ("random: rows uneven, odd widths", 9000, 3328, 5120),
    ("random: few rows, wide, thin K", 5000, 9984, 3072),
]
SCATTERED = [
    ("Llama 3 70B TP 4 out", 8192, 8192, 2048),
    ("Llama 3 70B TP 4 down", 8192, 8192, 7168),
    ("Llama 3 405B TP 8 down", 4096, 16384, 6656),
    ("GPT-3 175B TP 8 second FFN", 8192, 12288, 6144),
    ("DeepSeek-V3 expert down", 16384, 7168, 2048),
    ("Qwen3-235B expert down", 8192, 4096, 1536),
    ("small", 1024, 8192, 2048),
    ("tall", 32768, 2048, 4096),
    ("wide, deep", 2048, 5120, 16384),
    ("random: rows uneven, odd widths", 9000, 5120, 3328),
]
WHOLE = ["serial", "shard_p2p", "shard_direct"]
SPACE = [f"{uniformity}_{granularity}_{shape}" for shape in ("1d", "2d") for uniformity in ("uniform", "hetero")
         for granularity in ("fused", "unfused")]
BY_KERNELS = ["hetero_fused_1d", "uniform_fused_1d", "hetero_unfused_1d", "hetero_fused_2d"]
MORE_CHUNKS = ["hetero_fused_1d", "hetero_unfused_1d", "uniform_fused_1d", "uniform_fused_2d"]
WITH_SPANS = {("Llama 3 70B TP 4 QKV", "all_gather"), ("Llama 3 70B TP 4 down", "reduce_scatter")}


def variants(gpus, gathers, more):
    """(schedule, parameters) for one operator; `more`: the chunk count beside that of the GPUs."""
    yield from ((name, {}) for name in WHOLE)
    yield from ((name, {"chunks": gpus}) for name in ["ring_chunked"] + SPACE)
    yield "ring_chunked", {"chunks": gpus, "gemm": "chunk"}
    yield from ((name, {"chunks": more}) for name in MORE_CHUNKS)
    other = {"transfer": "push" if gathers else "pull"}
    if gpus > 2:
        yield "shard_direct", {"order": "ascending"}
        yield "hetero_fused_1d", {"chunks": gpus, "order": "ascending"}
        yield from ((name, other) for name in WHOLE)
        yield "hetero_fused_1d", {"chunks": gpus, **other}
        yield "hierarchical_chunked", {"chunks": more}  # on one node it is hetero_fused_1d
    cu = {"agent": "cu"}
    yield from ((name, cu) for name in WHOLE)
    yield "ring_chunked", {"chunks": gpus, **cu}
    yield from ((name, {"chunks": gpus, **cu}) for name in BY_KERNELS)
    yield "hetero_fused_1d", {"chunks": more, **cu}
    yield "hetero_fused_1d", {"chunks": gpus, **cu, "transfer": "pull", "copy_cus": 8}
    yield "shard_direct", {**cu, "copy_cus": 8}
    yield "shard_direct", {**cu, "copy_priority": "high"}


def configs(gpus, every):
    """One operator in `every` of the list, and those whose plans ask for spans."""
    for collective, operators in [("all_gather", GATHERED), ("reduce_scatter", SCATTERED)]:
        for index, (name, m, n, k) in enumerate(operators):
            spans = (name, collective) in WITH_SPANS
            if index % every and not spans:
                continue
            more = gpus * 2 if index % 2 else gpus // 2
            for schedule, params in variants(gpus, collective == "all_gather", more):
                gemm = {"m": m, "n": n, "k": k, "dtype": "bf16"}
                yield spans, {"topology": f"h200_{gpus}.json", "schedule": schedule, "params": params,
                              "workload": {"name": name, "collective": collective, "gemm": gemm}}


def plan(sim, config, spans):
    with tempfile.TemporaryDirectory() as folder:
        given, written = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "plan.json")
        given.write_text(json.dumps(config))
        subprocess.run([sim, "--config", given, "--graph", written, "--dry-run"], check=True,
                       stdout=subprocess.DEVNULL)
        text = written.read_text()
    return '{"spans":true,' + text[1:] if spans else text


def tasks_of(plan):
    """Every task with its own values; those of `each_rank` once for each rank."""
    for entry in plan["tasks"]:
        for line in entry.get("each_rank", [entry]):
            for rank in range(plan["gpus"]) if "each_rank" in entry else [line["gpu"]]:
                yield {key: value["ranks"][rank] if isinstance(value, dict) and "ranks" in value else value for key, value in line.items()}


def parts(plans):
    """The shapes of all GEMMs, a line for each N, K and accumulation."""
    rows = collections.defaultdict(set)
    for task in (task for text in plans for task in tasks_of(json.loads(text)) if task["kind"] == "gemm"):
        rows[task["n"], task["k"], task.get("accumulate", False)].add(task["m"])
    yield "# GEMMs of the plans that overlap.py writes: every shape of theirs, once."
    for (n, k, accumulate), ms in sorted(rows.items()):
        yield f"gemm n={n} k={k} m={','.join(map(str, sorted(ms)))}" + (" beta=1" if accumulate else "")


def main(sim, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    plans = []
    for name, gpus, every in [("four_gpus", 4, 1), ("two_gpus", 2, 2)]:
        chosen = list(configs(gpus, every))
        with open(pathlib.Path(folder, f"{name}.configs.jsonl"), "w", encoding="utf-8") as out:
            out.writelines(json.dumps(config) + "\n" for _, config in chosen)
        written = [plan(sim, config, spans) for spans, config in chosen]
        pathlib.Path(folder, f"{name}.jsonl").write_text("".join(written), encoding="utf-8")
        print(f"{name}: {len(chosen)} plans")
        plans += written
    pathlib.Path(folder, "parts.cases").write_text("\n".join(parts(plans)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
