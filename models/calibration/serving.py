"""How far the time per output token (TPOT) that `sim model --phase serve` predicts is from servers' that were published
(traces/published/serving), to which nothing was fitted.

python3 models/calibration/serving.py [--every N] [--only TEXT] [--json]     --every: each N-th row of a group
Needs a built sim (SIM, or build/release/sim). Left out: rows with experts or attention spread over GPUs, on more than 8 GPUs, of GB200,
and those that draft tokens, of which the table does not say how many are accepted."""
import argparse
import collections
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = os.environ.get("SIM", str(ROOT / "build" / "release" / "sim"))
TABLE = ROOT / "traces/published/serving/aggregated.csv"
SERVERS = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt_llm"}
MODELS = {"DeepSeek-R1": "deepseek_v3", "gpt-oss-120b": "gpt_oss_120b", "Llama-3.1-70B": "llama3_70b"}


def drafts(row):
    """InferenceX ran DeepSeek by TensorRT-LLM with multi-token prediction in this image, without in post2 (its issue 135, pull request 412)."""
    return row["model"] == "DeepSeek-R1" and (row["engine"], row["version"]) == ("trtllm", "1.2.0rc6.post3")


def is_alike(row):
    """Whether a row is one copy of the model, in tensor parallelism on a node."""
    return not drafts(row) and row["gpu"] in ("h100", "h200", "b200") and row["moe_ep"] in ("", "1") and row["attention_dp"] in ("", "1") \
        and row["pp"] == "1" and int(row["tp"]) <= 8


def arguments(row):
    """Of sim model. Weights of gpt-oss are as its config has them."""
    formats = [] if row["model"] == "gpt-oss-120b" else ["--dtype", row["gemm"]]
    return ["model", MODELS[row["model"]], "--topology", row["gpu"] + "_8", "--what-if", "topology.gpus_per_node=" + row["tp"],
            "--tp", row["tp"], "--phase", "serve", "--server", SERVERS[row["engine"]], "--isl", row["isl"], "--osl", row["osl"],
            "--concurrency", row["concurrency"], *formats]


def with_prediction(row):
    done = subprocess.run([SIM, *arguments(row), "--format", "json", "--quiet"], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    predicted = json.loads(done.stdout)["tpot_serial_us"] / 1e3
    return {**row, "predicted_ms": predicted, "error": predicted / float(row["tpot_ms"]) - 1}


def groups(every=1, only=""):
    """Rows by GPU, engine, model and precision."""
    found = collections.defaultdict(list)
    with open(TABLE, encoding="utf-8") as file:
        for row in filter(is_alike, csv.DictReader(file)):
            found["/".join(row[key] for key in ("gpu", "engine", "model", "precision"))].append(row)
    return {name: rows[::every] for name, rows in sorted(found.items()) if only in name}


def summary(rows):
    """In percent."""
    errors = sorted(100 * row["error"] for row in rows)
    sizes = sorted(map(abs, errors))
    return {"rows": len(rows), "mean": statistics.mean(sizes), "bias": statistics.mean(errors), "p90": sizes[len(sizes) * 9 // 10]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    result = {name: summary([with_prediction(row) for row in rows]) for name, rows in groups(flags.every, flags.only).items()}
    if flags.json:
        return print(json.dumps(result))
    print("| GPU, engine, model, weights | rows | mean | p90 | bias |\n|---|---|---|---|---|")
    for name, of in result.items():
        print(f"| {name.replace('/', ', ')} | {of['rows']} | {of['mean']:.1f} % | {of['p90']:.1f} | {of['bias']:+.1f} |")


if __name__ == "__main__":
    main()
