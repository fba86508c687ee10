"""What the simulator says of beside_nccl.py, copy_engines.cu, experts.py and traced.py before they run, and how far off it was.

    python3 -m pytorch.predicted list CONFIGS.jsonl                  # run configs with a line's key beside: sim batch predicts them
    python3 -m pytorch.predicted join CONFIGS.jsonl RESULTS OUT      # OUT.jsonl: key and predicted_us
    python3 -m pytorch.predicted errors OUT.jsonl FOLDER             # predicted against measured, by kind: mean, p90, bias in %

The simulator's copies are those between GPUs, so they are compared with measured ones of both kinds: with the rank's own part and
without it (`copy_push` and `remote_push`, `copies` and `bare`).
"""
import gzip
import itertools
import json
import pathlib
import statistics
import sys

from . import drawn
from .cases import scenario

SYSTEM, RANKS = "h200_2", 2
GEMMS = ((8192, 8192, 8192), (8192, 2560, 8192), (4096, 4096, 4096), (6144, 6144, 6144))
MIBS = (16, 64, 128, 256, 1024)
HOSTS = {"held": "threads", "idle": "pytorch_eager"}
BYTES = [65536 * 4**power for power in range(8)] + [2**31]
METHODS = {"nccl": {"algorithm": "library"}, "copy_push": {"algorithm": "direct", "agent": "dma", "transfer": "push"},
           "copy_pull": {"algorithm": "direct", "agent": "dma", "transfer": "pull"}}
TRACED_SEED = 20261130


def collective(kind, size, **more):
    return {"name": "comm", "type": "collective", "collective": kind, "bytes": size, "dtype": "bf16", **more}


def gemm(m, n, k, **more):
    return {"name": "gemm", "type": "gemm", "m": m, "n": n, "k": k, "dtype": "bf16", **more}


def config(operators, params, schedule="concurrent", host="threads"):
    workload = {"schema": 1, "name": "one", "description": "Operators that do not need each other.", "operators": operators, "order": "program"}
    return {"topology": SYSTEM, "schedule": schedule, "host": host, "params": params, "workload": workload}


def of_pairs():
    for shape, mib, first, priority, mode in itertools.product(GEMMS, MIBS, ("comm", "gemm"), ("equal", "comm"), HOSTS):
        both = [collective("all_gather", mib << 20, **({"priority": "high"} if priority == "comm" else {})), gemm(*shape)]
        yield ({"kind": "pair", "gemm": shape, "MiB": mib, "first": first, "priority": priority, "mode": mode},
               config(both if first == "comm" else both[::-1], METHODS["nccl"], host=HOSTS[mode]))


def of_copies():
    for kind, size, method in itertools.product(("all_gather", "all_to_all"), BYTES, METHODS):
        yield {"kind": "alone", "collective": kind, "bytes": size, "method": method}, config([collective(kind, size)], METHODS[method], "serial")
    for shape, kind, mib, method, first in itertools.product(GEMMS[:3], ("all_gather", "all_to_all"), (16, 128, 512, 1024), METHODS,
                                                             ("collective", "gemm")):
        both = [collective(kind, mib << 20), gemm(*shape)]
        yield ({"kind": "beside", "gemm": shape, "collective": kind, "bytes": mib << 20, "method": method, "first": first, "priority": "equal"},
               config(both if first == "collective" else both[::-1], METHODS[method]))


def of_experts():
    for (top_k, experts), (hidden, inner), tokens in itertools.product(((8, 256), (8, 128), (4, 128), (2, 64)), ((7168, 2048), (4096, 1536)),
                                                             (512, 2048, 8192, 16384)):
        key = {"tokens": tokens, "hidden": hidden, "top_k": top_k, "experts": experts}
        grouped = gemm(tokens * top_k, 2 * inner, hidden, groups=experts // RANKS)
        yield key | {"kind": "grouped_gemm"}, config([grouped], METHODS["nccl"], "serial")
        of_one = 1.0  # chance that none of a token's experts is on one of two GPUs
        for place in range(top_k):
            of_one *= (experts / 2 - place) / (experts - place)
        for rows, count in (("choice", tokens * top_k), ("gpu", round(RANKS * tokens * (1 - of_one)))):
            for agent, method in (("nccl", "nccl"), ("copies", "copy_push")):
                comm = collective("all_to_all", count * hidden * 2)
                yield key | {"kind": "dispatch", "rows": rows, "agent": agent}, config([comm], METHODS[method], "serial")
                for first in ("comm", "gemm"):
                    both = [comm, grouped] if first == "comm" else [grouped, comm]
                    yield key | {"kind": "beside", "rows": rows, "agent": agent, "first": first}, config(both, METHODS[method])


def of_traces():
    of_all = {"ranks": RANKS, "state": "steady"}
    for (model, tokens), links in itertools.product(drawn.layers(TRACED_SEED, 12), ("nccl", "async_tp")):
        row = {"kind": "block", "block": "layer", "model": model, "tokens": tokens, "links": links, "mode": "graph"}
        yield row, scenario(row | of_all, SYSTEM)
    for model, layers, sequences, tokens, reduced, _ in drawn.iterations(TRACED_SEED, 6):
        for how in ("implicit", "none"):
            row = {"kind": "fsdp", "model": model, "layers": layers, "sequences": sequences, "tokens": tokens, "reduced": reduced,
                   "prefetch": how, "mode": "eager"}
            yield row, scenario(row | of_all, SYSTEM)


PARTS = {"beside_nccl": of_pairs, "copy_engines": of_copies, "experts": of_experts, "../traces_2026_11/measured": of_traces}


def lines():
    for part, of_part in PARTS.items():
        for key, run in of_part():
            yield part, key, run


def matches(key, row):
    return all(tuple(row.get(name) or ()) == tuple(value) if name == "gemm" else row.get(name) == value for name, value in key.items())


def measured_us(row):
    return row["both_us"]["all"] if row["kind"] == "pair" else row.get("us", row.get("median_us"))


def wanted(row):
    """Rows that a prediction is for: nothing delayed, NCCL's own choice of blocks, streams as a program makes them."""
    return (row.get("delay_us", 0) == 0 and row.get("ctas", 0) == 0 and row.get("launched", "gc") == "gc" and
            (row.get("dtype", "bfloat16") == "bfloat16" if row["kind"] == "pair" else row.get("mode") not in ("idle", "live", "late")))


def read(path):
    packed = path.with_name(path.name + ".gz")
    with gzip.open(packed, "rt") if packed.exists() else open(path, encoding="utf-8") as lines_of:
        return [row for row in map(json.loads, lines_of) if wanted(row)]


def like(key):
    """`key`, and the same of copies without the rank's own part."""
    yield key
    for name, others in (("method", {"copy_push": "remote_push", "copy_pull": "remote_pull"}), ("agent", {"copies": "bare"})):
        if key.get(name) in others:
            yield key | {name: others[key[name]]}


def errors(predicted, folder):
    found = {}
    for part in PARTS:
        rows = read(folder / f"{part}.jsonl")
        for one in predicted:
            if one["part"] == part:
                for key in like(one["key"]):
                    of_key = [us for row in rows if matches(key, row) and (us := measured_us(row))]
                    if of_key and one["predicted_us"]:
                        names = ("kind", "agent", "method", "rows", "links", "mode", "first", "prefetch")
                        group = " ".join(str(key[name]) for name in names if key.get(name))
                        found.setdefault((part, group), []).append(one["predicted_us"] / statistics.median(of_key) - 1)
    for (part, group), values in found.items():
        off = sorted(map(abs, values))
        print(f"| {part} | {group} | {len(values)} | {100 * statistics.mean(off):.1f} | {100 * off[max(int(0.9 * len(off)) - 1, 0)]:.1f} | "
              f"{100 * statistics.mean(values):+.1f} |")


def main(words):
    if words[0] == "list":
        with open(words[1], "w", encoding="utf-8") as file:
            file.writelines(json.dumps(run, separators=(",", ":")) + "\n" for _, _, run in lines())
    elif words[0] == "join":
        results = [json.loads(line) for line in open(words[2], encoding="utf-8")]
        with open(words[3], "w", encoding="utf-8") as file:
            for (part, key, _), result in zip(lines(), results, strict=True):
                file.write(json.dumps({"part": part, "key": key, "predicted_us": result.get("makespan_us")}) + "\n")
    else:
        errors([json.loads(line) for line in open(words[1], encoding="utf-8")], pathlib.Path(words[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
