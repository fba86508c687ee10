#!/usr/bin/env python3
"""Stands for microbench and replay where there are no GPUs: takes their arguments and writes lines as they do, at once.

Usage: fake_gpus.py LIST --out FILE [--seconds N] [--arena-GiB N], or fake_gpus.py --machine
FAKE_GPUS, FAKE_UNITS, FAKE_MEMORY_GIB, FAKE_PEERS=0, FAKE_ENERGY=0: the machine. FAKE_CASE_S: time of a case.
FAKE_FAULT=KIND:WORD:FILE does KIND once (when FILE is not there yet) at the first case that holds WORD: hang, crash, cut
(a line that is cut off, then the end), kill (the caller, too), fail (a wrong result, exit 1 at the end), slow (twice the time).
"""
import json
import os
import pathlib
import signal
import sys
import time

COUNT = int(os.environ.get("FAKE_GPUS", 1))
KNOWN = {"gemm": {"chain_us": 100.0}, "energy": {"energy_J": [1.0] * COUNT}}


def machine():
    reach = int(os.environ.get("FAKE_PEERS", 1))
    return {"schema": 1, "kind": "machine", "date": "2026-11-24T00:00:00Z", "command": "fake", "device": "Fake GPU", "gpus": COUNT,
            "compute_units": int(os.environ.get("FAKE_UNITS", 132)), "memory_GiB": float(os.environ.get("FAKE_MEMORY_GIB", 80)),
            "cache_MiB": 50, "peak_clock_MHz": 2000, "memory_clock_MHz": 2000, "power_limits_W": [700] * COUNT,
            "platform": os.environ.get("FAKE_PLATFORM", "amd"), "driver": "1", "driver_api": 1, "runtime": 1, "gemm_library": "fake 1",
            "peer_access": [[int(i != j) * reach for j in range(COUNT)] for i in range(COUNT)], "uuids": [f"GPU-{i}" for i in range(COUNT)],
            "pci_addresses": [], "energy_counter": int(os.environ.get("FAKE_ENERGY", 1))}


def ends_of(plan):
    """Every task takes 10 us on its stream, a wait as long as it says."""
    ends, last = [], {}
    for task in plan["tasks"]:
        stream = task["gpu"], task["stream"]
        last[stream] = last.get(stream, 0.0) + task.get("time_us", 10.0)
        ends.append(last[stream])
    return [ends] * plan["measure"]["repeats"]


def results(number, line):
    """One, or one for each plan of a list."""
    if not line.startswith(("{", "[")):
        return [result(number, line)]
    rows = []
    for plan in json.loads(f"[{line}]" if line.startswith("{") else line):
        measure = plan.get("measure", {})
        repeats = measure.get("repeats", 1)
        row = {"schema": 1, "kind": "overlap", "plan": number, "date": "2026-11-24T00:00:00Z", "scenario": {"plan": plan}, "unit": "us",
               "makespan_us": 10.0, "samples_us": [10.0] * repeats, "stream_ends_us": [[10.0, 20.0]] * repeats}
        rows.append({**row, "ends_us": ends_of(plan)} if measure.get("marks") else row)
    return rows


def result(number, line):
    kind, *words = line.split()
    return {"kind": kind, "pass": 1, "case_line": number, **dict(word.split("=") for word in words), "unit": "us", "median": 10.0,
            "min": 10.0, "p90": 10.0, "runs": 1, **KNOWN.get(kind, {}), "samples": [10.0]}


def fault(line):
    """The fault that the test asks for at this case, or nothing."""
    kind, word, mark = (os.environ.get("FAKE_FAULT") or "::").split(":", 2)
    if not kind or word not in line or pathlib.Path(mark).exists():
        return ""
    pathlib.Path(mark).touch()
    return kind


def main(cases, out, seconds):
    lines = [line for line in pathlib.Path(cases).read_text().splitlines() if line.strip()]
    part, begun, failed = pathlib.Path(out + ".part"), time.monotonic(), 0
    with open(part, "w", encoding="utf-8") as file:
        def write(value):
            file.write(json.dumps(value, separators=(",", ":")) + "\n")
            file.flush()
        write(machine())
        for number, line in enumerate(lines, 1):
            if time.monotonic() - begun > seconds:
                break
            rows, happens = results(number, line), fault(line)
            row = rows[-1]
            time.sleep(float(os.environ.get("FAKE_CASE_S", 0)))
            if happens == "hang":
                time.sleep(1000)
            if happens == "crash":
                sys.exit("a GPU is lost")
            if happens == "cut":
                file.write(json.dumps(row)[:30])
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            if happens == "kill":
                os.kill(os.getppid(), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            if happens == "slow":
                row["chain_us"] *= 2
            if happens == "fail":
                row = {key: value for key, value in row.items() if key in ("kind", "pass", "case_line", "plan")} | {"error": "3 words are wrong"}
                failed = 1
            for one in rows[:-1] if happens != "fail" else []:
                write(one)
            write(row)
    part.rename(out)
    sys.exit(failed)


if __name__ == "__main__":
    if COUNT == 0:
        print("no GPU: the driver lists none", file=sys.stderr)
        sys.exit(2)
    if "--machine" in sys.argv:
        print(json.dumps(machine(), separators=(",", ":")))
        sys.exit(0)
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    main(sys.argv[1], options["--out"], float(options.get("--seconds", 1e9)))
