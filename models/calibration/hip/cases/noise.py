#!/usr/bin/env python3
"""How much measured makespans differ between runs, machines and days: a table for a README.

noise.py FOLDER ...             differences between the runs of each case (the last run is on another machine)
noise.py FOLDER --next FOLDER   (or files) differences between the medians of the second folder and the first
noise.py --choices FILE ...     the same schedules, measured again and again: how often the schedule that is best in one file is
                                within 2 % of the best in another, and its mean loss. No model can choose better than that
noise.py --medians FILE ...     the same plans in each file: a row of medians a file, us

A cell has the median, the 90th percentile and the largest absolute difference over the cases, in %.
"""
import collections
import gzip
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
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
        for line in text.splitlines():
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


AS_GOOD_AS_BEST = 0.02  # as `sim compare` counts choices


def operators(file):
    """{operator: {schedule: median}} of the operators with at least two schedules."""
    found = collections.defaultdict(dict)
    for config, runs in cases(file):
        work = config["workload"]
        operator = work["collective"], work["order"], tuple(work["gemm"].values())
        found[operator][config["schedule"], tuple(config["params"].items())] = statistics.median(pooled(runs))
    return {operator: medians for operator, medians in found.items() if len(medians) > 1}


def losses(chosen_by, judged_by):
    """By operator: the loss in `judged_by` of the schedule that is the fastest in `chosen_by`."""
    assert chosen_by.keys() == judged_by.keys()
    return [judged_by[one][min(medians, key=medians.get)] / min(judged_by[one].values()) - 1
            for one, medians in chosen_by.items()]


def choices(files):
    measured = [operators(file) for file in files]
    pairs = [losses(one, other) for one in measured for other in measured if one is not other]
    assert pairs
    hits = [sum(loss <= AS_GOOD_AS_BEST for loss in pair) for pair in pairs]
    count = len(measured[0])
    print(f"chosen by one of {len(files)} measurements, judged by another: within 2 % of the best for {min(hits)} to {max(hits)} "
          f"of {count} operators, mean {100 * statistics.mean(hits) / count:.1f} %; "
          f"mean loss {100 * statistics.mean(loss for pair in pairs for loss in pair):.2f} %")


def medians(files):
    for file in files:
        row = [f"{statistics.median(pooled(runs)):6.0f}" for _, runs in cases(file)]
        print(f"{pathlib.Path(file).stem:20}" + "".join(row))


if __name__ == "__main__":
    if "--medians" in sys.argv:
        medians(sys.argv[2:])
    elif "--choices" in sys.argv:
        choices(sys.argv[2:])
    elif "--next" in sys.argv:
        next_day(sys.argv[1], sys.argv[3])
    else:
        between_runs(sys.argv[1:])
