#!/usr/bin/env python3
"""Writes the lists of cases beside this file: those of lists.py for four H200s. Usage: generate.py"""
from pathlib import Path

import lists

H200_4 = lists.Machine(gpus=4, units=132)
WRITTEN = ["gemm", "local", "two_gpus", "four_gpus", "beside", "more_shapes", "unseen", "drawn", "redrawn", "residency",
           "residency_push", "residency_drawn", "at_once"]


def main():
    for name in WRITTEN:
        path = Path(__file__).with_name(f"{name}.cases")
        lines = getattr(lists, name)(H200_4)
        path.write_text("# Written by generate.py; the format is described in ../README.md.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
