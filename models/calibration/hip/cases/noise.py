#!/usr/bin/env python3
"""How much measured makespans differ between runs, machines and days: a table for a README.

noise.py FOLDER ...             differences between the runs of each case (the last run is on another machine)
noise.py FOLDER --next FOLDER   (or files) differences between the medians of the second folder and the first

A cell has the median, the 90th percentile and the largest absolute difference over the cases, in %.
"""
import json
import math
import pathlib
import statistics
import sys


def cases(folder):
    """(config, sample lists of its runs) of every case, in the order of the plans."""
    found = []
    given = pathlib.Path(folder)
    for path in sorted(given.glob("*.jsonl")) if given.is_dir() else [given]:
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if case["kind"] == "overlap":
                found.append((case["scenario"], [run["samples_us"] for run in case.get("runs", [case])]))
    return found


def quantile(values, share):
    """Of nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def cell(differences):
    absolute = [abs(difference) for difference in differences]
    return ", ".join(f"{100 * value:.1f}" for value in (statistics.median(absolute), quantile(absolute, 0.9), max(absolute)))


def pooled(runs):
    return [sample for run in runs for sample in run]


def middle(runs):
    return statistics.median(statistics.median(run) for run in runs[:3])


ROWS = {
    "median of a run against the middle one of the first three":
        lambda runs: [statistics.median(run) / middle(runs) - 1 for run in runs[:3]],
    "the other machine's against that one": lambda runs: [statistics.median(runs[3]) / middle(runs) - 1],
    "median of a run against the pooled one of all four":
        lambda runs: [statistics.median(run) / statistics.median(pooled(runs)) - 1 for run in runs],
    "p10 to p90 of all samples":
        lambda runs: [(quantile(pooled(runs), 0.9) - quantile(pooled(runs), 0.1)) / statistics.median(pooled(runs))],
}


def chosen(found, agent):
    return [runs for config, runs in found if config["params"]["agent"] == agent]


def between_runs(folders):
    columns = [(folder, agent) for folder in folders for agent in ("dma", "cu")]
    heading = [f"{folder.strip('/').split('/')[-2]}, {'DMA' if agent == 'dma' else 'kernels'}" for folder, agent in columns]
    print("| % | " + " | ".join(heading) + " |\n|" + "---|" * (len(columns) + 1))
    for label, differences in ROWS.items():
        row = [cell([one for runs in chosen(cases(folder), agent) for one in differences(runs)]) for folder, agent in columns]
        print("| " + " | ".join([label, *row]) + " |")


def next_day(first, second):
    print("| % | absolute | mean |\n|---|---|---|")
    pairs = list(zip(cases(first), cases(second)))
    assert pairs and len(pairs) == len(cases(first))
    for (config, _), (again, _) in pairs:
        assert (config["schedule"], config["workload"]) == (again["schedule"], again["workload"])
    for agent, name in (("dma", "DMA"), ("cu", "kernels")):
        differences = [statistics.median(pooled(after)) / statistics.median(pooled(before)) - 1
                       for (config, before), (_, after) in pairs if config["params"]["agent"] == agent]
        print(f"| {name} | {cell(differences)} | {100 * statistics.mean(differences):+.1f} |")


if __name__ == "__main__":
    if "--next" in sys.argv:
        next_day(sys.argv[1], sys.argv[3])
    else:
        between_runs(sys.argv[1:])
