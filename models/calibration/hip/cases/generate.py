#!/usr/bin/env python3
"""Writes the lists of cases beside this file: those of lists.py for four H200s that microbench measures. Usage: generate.py"""
from pathlib import Path

import as_plans
import lists

H200_4 = lists.Machine(gpus=4, units=132)
WRITTEN = ["gemm", "local", "two_gpus", "four_gpus", "residency", "residency_push", "residency_drawn"]


def main():
    for name in WRITTEN:
        path = Path(__file__).with_name(f"{name}.cases")
        lines = list(getattr(lists, name)(H200_4))
        if as_plans.PARTS.keys() & {line.split()[0] for line in lines}:
            lines = [line for line in lines if line.split()[0] not in as_plans.PARTS and not line.startswith("#")]
        path.write_text("# Written by generate.py; the format is described in ../README.md.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
