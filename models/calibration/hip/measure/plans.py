#!/usr/bin/env python3
"""Plans that replay measures for validation: drawn operators and schedules. No fit sees them.

Usage: plans.py SIM   writes plans_2, plans_4 and plans_8.jsonl.xz beside this file: a machine with GPUs may have no simulator
"""
import concurrent.futures
import json
import lzma
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from measure.fault import UserError  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cases"))

import lists  # noqa: E402
import overlap  # noqa: E402

SEED = 20261126
COUNTS = {2: 150, 4: 150, 8: 100}  # plans; those for eight GPUs are long
EACH = 6  # of one operator
ROWS = [1024, 2048, 3000, 4096, 5000, 8192, 12288, 16384]  # after the gather, or before the scatter
TOPOLOGY = "h200_{}"  # says only how many GPUs there are: the plan has no times


def configs(gpus, count, topology, seed=SEED):
    """Run configs: drawn operators, each with `serial` and drawn variants of schedules, so that choices can be judged."""
    at_random = random.Random(f"{seed} {gpus}")
    operators = [(name.split(":")[0], n, k) for name, shapes in lists.FAMILIES for n, k in shapes]
    drawn = {}
    while len(drawn) < count:
        name, n, k = at_random.choice(operators)
        collective = at_random.choice(["all_gather", "reduce_scatter"])
        gemm = {"m": at_random.choice(ROWS) // (8 * gpus) * (8 * gpus), "n": n, "k": k, "dtype": "bf16"}
        chunks = at_random.choice([2, gpus // 2, gpus]) if gpus < 8 else at_random.choice([2, 4])
        variants = list(overlap.variants(max(2, chunks), collective == "all_gather", max(2, chunks)))
        for schedule, params in [("serial", {})] + at_random.sample(variants[1:], EACH - 1):
            config = {"topology": topology, "host": "one_thread", "schedule": schedule, "params": params,
                      "workload": {"name": name, "collective": collective, "gemm": gemm}}
            drawn.setdefault(json.dumps(config), config)
    return list(drawn.values())[:count]


def plan(sim, config):
    """The plan on one line, or None where the simulator refuses the config."""
    with tempfile.TemporaryDirectory() as folder:
        given, written = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "plan.json")
        given.write_text(json.dumps(config))
        try:
            done = subprocess.run([sim, "--config", given, "--graph", written, "--dry-run"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return " ".join(written.read_text().split("\n")).strip() if done.returncode == 0 and written.exists() else None


def made_by(sim, gpus, count=None, seed=SEED):
    """Plans of as many GPUs as a shipped topology has. Refused configs are left out."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda config: plan(sim, config),
                        configs(gpus, count or COUNTS[gpus], TOPOLOGY.format(gpus), seed))
        return [text for text in made if text]


def shipped(gpus):
    with lzma.open(HERE / f"plans_{gpus}.jsonl.xz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def for_machine(gpus, sim=None):
    """Lines for replay: for the most GPUs up to `gpus` that there are plans for; or why there are none. `sim` makes them anew.
    Throws UserError if it can't."""
    if sim and not plan(sim, configs(2, 1, TOPOLOGY.format(2))[0]):
        raise UserError(f"--sim {sim}: makes no plan; expected a simulator such as build/release/sim")
    fitting = [count for count in COUNTS if count <= gpus]
    if not fitting:
        return "needs 2 GPUs"
    return made_by(sim, max(fitting)) if sim else shipped(max(fitting))


def main(sim):
    for gpus in COUNTS:
        text = "".join(line + "\n" for line in made_by(sim, gpus))
        (HERE / f"plans_{gpus}.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"plans_{gpus}.jsonl.xz: {text.count(chr(10))} plans")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
