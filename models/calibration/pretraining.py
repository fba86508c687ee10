"""How far iterations as `sim model` predicts them are from pre-training speeds that were published (traces/published/training), to
which nothing was fitted.

python3 models/calibration/pretraining.py [--all] [--json]      --all: with rows that take from 20 seconds to many minutes
Needs a built sim (SIM, or build/release/sim). Rows of machines and formats that configs don't have are left out."""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = os.environ.get("SIM", str(ROOT / "build" / "release" / "sim"))
TABLE = ROOT / "traces/published/training/megatron.csv"
MODELS = {"LLAMA3_8B": "llama3_8b", "LLAMA3_70B": "llama3_70b", "LLAMA3.1_405B": "llama3_1_405b", "DeepSeekV3": "deepseek_v3"}
FORMATS = {"BF16": "bf16", "FP8": "fp8", "MXFP8": "fp8", "NVFP4": "fp4"}

# Of all recipes of DeepSeek V3 (NVIDIA-NeMo/Megatron-Bridge 0426418, scripts/performance/configs/deepseek, and 05d003f,
# src/megatron/bridge/recipes/deepseek/deepseek_v3.py): tokens are sent once to each GPU (HybridEP, as DeepEP here), a layer for further tokens,
# a distributed optimiser; B200's and H100's compute latent attention's projections again, and have one and no layer beside that one on the last stage.
DEEPSEEK = ["--all-to-all", "deepep", "--mtp", "1", "--zero", "1", "--recompute", "mla_up_proj"]
LAST_LAYERS = {"B200": "1", "H100": "0"}


def machine(gpu, gpus):
    """Flags of a machine; None without one. GB200's GPUs are of one NVLink domain."""
    if gpu == "GB200" and gpus <= 72:
        return ["gb200_72", "--what-if", f"topology.gpus_per_node={gpus}"]
    if gpu in ("H100", "B200") and gpus <= 8:
        return [f"{gpu.lower()}_{gpus}"]
    if gpu in ("H100", "B200") and gpus % 8 == 0:
        return [f"{gpu.lower()}_{gpus}_rail"]
    return None


def arguments(row):
    """Of sim model; the table's parallelism as it is."""
    degrees = {flag: row[key] for flag, key in (("--tp", "tp"), ("--pp", "pp"), ("--cp", "cp"), ("--ep", "ep")) if row[key]}
    given = ["model", MODELS[row["model"]], "--topology", *machine(row["gpu"], int(row["gpus"])), "--phase", "training",
             "--sequence", row["sequence"], "--global-batch", row["gbs"], "--micro-batch", row["mbs"],
             "--dtype", FORMATS[row["precision"]], *(text for pair in degrees.items() for text in pair)]
    if row["pp"] != "1" and row["vp"] not in ("", "1"):
        given += ["--vp", row["vp"]]
    if row["tp"] != "1":
        given += ["--sequence-parallel"]
    if row["precision"] == "FP8":  # "fp8_cs" in its scripts/performance/utils/precision.py
        given += ["--fp8-recipe", "tensorwise"]
    if row["model"] == "DeepSeekV3":
        given += [*DEEPSEEK, "--last-stage-layers", LAST_LAYERS[row["gpu"]]]
    return given + (["--fsdp"] if row["fsdp"] != "0" else [])


def is_fast(row):
    """Pipelines are simulated stage by stage. FSDP over 64 GPUs takes 20 seconds, 1,024 GPUs 30, with 64 of experts far longer."""
    return row["fsdp"] != "64" and int(row["gpus"]) <= 256


def rows(every=False):
    with open(TABLE, encoding="utf-8") as file:
        return [row for row in csv.DictReader(file)
                if row["model"] in MODELS and machine(row["gpu"], int(row["gpus"])) and (every or is_fast(row))]


def with_prediction(row):
    done = subprocess.run([SIM, *arguments(row), "--format", "json", "--quiet"], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    step = json.loads(done.stdout)["steps"][0]
    measured, predicted = float(row["tokens_per_s_gpu"]), step["tokens_per_s_overlapped"] / int(row["gpus"])
    return {**row, "tokens": step["tokens"], "measured": measured, "predicted": predicted, "error": predicted / measured - 1}


def summary(predicted):
    """Of the dense models, in percent."""
    errors = sorted(abs(row["error"]) * 100 for row in predicted if not row["ep"])
    return {"rows": len(errors), "mean": statistics.mean(errors), "largest": errors[-1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    predicted = [with_prediction(row) for row in rows(flags.all)]
    if flags.json:
        return print(json.dumps({"dense": summary(predicted), "rows": predicted}))
    print("| model | GPUs | format | release, batch | tp/pp/cp/vp/ep | measured | predicted | error |\n|---|---|---|---|---|---|---|---|")
    for row in predicted:
        spread = "/".join(row[key] or "1" for key in ("tp", "pp", "cp", "vp", "ep"))
        print(f"| {MODELS[row['model']]} | {row['gpus']} {row['gpu']}{', FSDP' if row['fsdp'] != '0' else ''} | {row['precision'].lower()} | "
              f"{row['release']}, {row['gbs']} | {spread} | {row['measured']:.0f} | {row['predicted']:.0f} | {100 * row['error']:+.1f} % |")
    dense = summary(predicted)
    print(f"\n{dense['rows']} rows of dense models: mean {dense['mean']:.1f} %, largest {dense['largest']:.1f} %")


if __name__ == "__main__":
    main()
