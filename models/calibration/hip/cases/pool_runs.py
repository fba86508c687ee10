#!/usr/bin/env python3
"""Merges runs of replay over the same plans: the measured value of a case is the median of the samples of all runs.

Usage: pool_runs.py FOLDER RUN.jsonl RUN.jsonl …
FOLDER gets cases.jsonl and, if the runs have spans, with_spans.jsonl: facts of the machine, then one line a case
(configs/schema/measured_case.schema.json). Spans are from the run with the median makespan.
"""
import json
import pathlib
import statistics
import sys


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def pooled(cases):
    """One case of all runs. Its config must be the same in all."""
    first = cases[0]
    if any(case["scenario"] != first["scenario"] for case in cases):
        sys.exit(f"plan {first['plan']} is not the same in all runs")
    result = {"schema": 1, "kind": "overlap", "system": first["system"], "scenario": first["scenario"], "unit": "us"}
    refused = [case for case in cases if "samples_us" not in case]
    if refused:
        return {**result, "skipped": refused[0].get("skipped") or refused[0].get("error")}
    result["makespan_us"] = statistics.median([sample for case in cases for sample in case["samples_us"]])
    result["runs"] = [{"date": case["date"], "samples_us": case["samples_us"]} for case in cases]
    middle = sorted(cases, key=lambda case: case["makespan_us"])[len(cases) // 2]
    for key in ("recorded_makespan_us", "spans"):
        if key in middle:
            result[key] = middle[key]
    return result


def main(folder, files):
    runs = [[json.loads(line) for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()] for file in files]
    if len({len(run) for run in runs}) != 1:
        sys.exit("the runs have not the same number of cases")
    facts = runs[0][0]
    cases = [pooled(together) for together in zip(*(run[1:] for run in runs))]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, chosen in [("cases", [case for case in cases if "spans" not in case]),
                         ("with_spans", [case for case in cases if "spans" in case])]:
        if chosen:
            (folder / f"{name}.jsonl").write_text("".join(map(compact, [facts] + chosen)), encoding="utf-8")
        print(f"{folder}/{name}.jsonl: {len(chosen)} cases")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
