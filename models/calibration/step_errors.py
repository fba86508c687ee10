"""How far layers of transformers as `sim model` predicts them are from those that scripts/measure_pytorch --parts steps measured.

python3 models/calibration/step_errors.py FILE... [--each] [--json] [--predicted OLD]
Needs a built sim (SIM, or build/release/sim), or OLD: predictions that were written down before (traces/*/steps/predicted*.jsonl)."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models" / "calibration"))

from pytorch.cases import system_of  # noqa: E402

SIM = os.environ.get("SIM", str(ROOT / "build" / "release" / "sim"))


def steps_of(file):
    """Steps of a file, each with its topology and the measured time of a layer."""
    with open(file, encoding="utf-8") as lines:
        machine, *rows = map(json.loads, lines)
    return [row | {"topology": system_of(machine["device"], row["ranks"]), "measured_us": row["median_us"] / row["layers"]}
            for row in rows if row["kind"] == "step" and "median_us" in row]


def with_prediction(step):
    command = [SIM, "model", step["model"], "--topology", step["topology"], "--phase", step["phase"], "--tokens", str(step["tokens"]),
               "--sequence", str(step["sequence"]), "--layers", str(step["layers"]), "--format", "json", "--quiet"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    layer, = (one for one in told["steps"][0]["lists"] if one["name"] != "head")
    return step | {"predicted_us": layer["serial_us"], "error": layer["serial_us"] / step["measured_us"] - 1}


def as_told_before(step, told):
    predicted = next(one["layer_us"] for one in told if all(one[key] == step[key] for key in ("model", "phase", "tokens", "sequence")))
    return step | {"predicted_us": predicted, "error": predicted / step["measured_us"] - 1}


def summary(steps):
    errors = sorted(abs(step["error"]) for step in steps)
    return {"steps": len(errors), "mean": statistics.mean(errors), "p90": errors[len(errors) * 9 // 10], "largest": errors[-1],
            "bias": statistics.mean(step["error"] for step in steps)}


def summaries(files, told=None):
    """Steps of `files` with predictions, those of `told` or new ones, and their errors by phase and of all."""
    steps = [step for file in files for step in steps_of(file)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        steps = [as_told_before(step, told) for step in steps] if told else list(pool.map(with_prediction, steps))
    phases = dict.fromkeys(step["phase"] for step in steps)
    return steps, {phase: summary([step for step in steps if step["phase"] == phase]) for phase in phases} | {"all": summary(steps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--each", action="store_true", help="a row for each step")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--predicted", metavar="OLD", help="predictions that were written down before")
    chosen = parser.parse_args()
    told = [json.loads(line) for line in pathlib.Path(chosen.predicted).read_text().splitlines()] if chosen.predicted else None
    steps, errors = summaries(chosen.files, told)
    if chosen.json:
        print(json.dumps(errors))
        return
    if chosen.each:
        print("| model | phase | tokens, of a sequence | layer, measured us | predicted us | error % |\n|---|---|---|---|---|---|")
        for step in steps:
            print(f"| {step['model']} | {step['phase']} | {step['tokens']}, {step['sequence']} | {step['measured_us']:.1f} | "
                  f"{step['predicted_us']:.1f} | {100 * step['error']:+.1f} |")
        return
    print("| phase | steps | mean % | p90 % | largest % | bias % |\n|---|---|---|---|---|---|")
    for phase, one in errors.items():
        print(f"| {phase} | {one['steps']} | {100 * one['mean']:.1f} | {100 * one['p90']:.1f} | {100 * one['largest']:.1f} | "
              f"{100 * one['bias']:+.1f} |")


if __name__ == "__main__":
    main()
