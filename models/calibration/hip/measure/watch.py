"""What disturbs a measurement: other work on the GPUs, clocks that fell. Looked at only between runs, which it would disturb."""
import os
import pathlib
import re
import statistics

from .platforms import output

FIELDS = "index,clocks.sm,clocks.max.sm,temperature.gpu,power.draw,utilization.gpu,memory.used"
REASONS = ["clocks_event_reasons.active", "clocks_throttle_reasons.active"]  # the first in newer drivers
# NVML's nvmlClocksEventReason…: those that power limits and idle GPUs don't explain.
SLOWED = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
          0x80: "power brake"}
BUSY_PERCENT = 20
SLOWER = 0.03  # of the reference GEMM; passes of a day differ by less (traces/h200_4/microbench)
KFD_PROCESSES = pathlib.Path("/sys/class/kfd/kfd/proc")


def nvidia():
    """({gpu: reading}, [warning])."""
    asked = ((fields := f"{FIELDS},{reasons}", output("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits",
                                                      timeout=20)) for reasons in REASONS)
    fields, listed = next(((fields, said) for fields, said in asked if said), ("", ""))
    readings, warnings = [], []
    for line in listed.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(fields.split(",")):
            continue
        readings.append(dict(zip(fields.split(","), values)))
        bits = int(values[-1], 16) if re.fullmatch(r"0x[0-9a-fA-F]+", values[-1]) else 0
        warnings += [f"GPU {values[0]}: {name}" for bit, name in SLOWED.items() if bits & bit]
    processes = output("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader", timeout=20)
    for line in (processes or "").splitlines():
        if line.strip() and line.split(",")[0].strip() != str(os.getpid()):
            warnings.append(f"another process on the GPUs: {line.strip()}")
    return readings, warnings


def amd():
    readings, warnings = [], []
    for path in sorted(pathlib.Path("/sys/class/drm").glob("card*/device/gpu_busy_percent")):
        try:
            readings.append({"index": path.parent.parent.name, "utilization.gpu": path.read_text().strip()})
        except OSError:
            continue
    if KFD_PROCESSES.is_dir():
        for path in KFD_PROCESSES.iterdir():
            if path.name.isdigit() and int(path.name) != os.getpid():
                warnings.append(f"another process on the GPUs: {path.name}")
    return readings, warnings


def look(platform):
    return nvidia() if platform == "nvidia" else amd()


def is_idle(readings):
    """Before the first run: work of others shows as utilization."""
    for reading in readings:
        value = reading.get("utilization.gpu", "")
        if value.isdigit() and int(value) >= BUSY_PERCENT:
            yield f"GPU {reading['index']} is {value} % busy before the measurement"


def slowed(references):
    """Pieces in which the reference GEMM took longer than usual."""
    times = [one["chain_us"] for one in references if one["chain_us"]]
    if len(times) < 3:
        return
    usual = statistics.median(times)
    for one in references:
        if one["chain_us"] and one["chain_us"] > usual * (1 + SLOWER):
            yield (f"{one['piece']}: the reference GEMM took {100 * (one['chain_us'] / usual - 1):.0f} % longer than usual: "
                   "clocks fell, or other work ran")
