"""Rows of operators as measured cases (configs/schema/measured_case.schema.json), which `sim compare` reads."""
import json
import statistics

from . import blocks, iterations
from .turns import fastest

HOSTS = {"eager": "pytorch_eager", "graph": "cuda_graph"}
COLLECTIVES = {"all_gather_gemm": ("all_gather", "collective_first"),
               "gemm_reduce_scatter": ("reduce_scatter", "gemm_first"),
               "gemm_all_reduce": ("all_reduce", "gemm_first")}
SCHEDULES = {"nccl": {"schedule": "serial", "params": {"algorithm": "library", "agent": "cu"}},
             "async_tp": {"schedule": "async_tp"},
             "one_shot": {"schedule": "serial", "params": {"algorithm": "one_shot", "agent": "cu"}},
             "two_shot": {"schedule": "serial", "params": {"algorithm": "two_shot", "agent": "cu"}}}


def system_of(device, ranks):
    """The topology's name: "NVIDIA H100 80GB HBM3" of 2 ranks is h100_2."""
    model = next((word for word in device.lower().split() if word[-1].isdigit()), device.lower())
    return f"{model}_{ranks}"


def scenario_of(row, system):
    """The run config of a row; none for GEMMs and collectives alone."""
    for name, (collective, order) in COLLECTIVES.items():
        library = row["operator"].removeprefix(name + "_")
        if library not in SCHEDULES:
            continue
        gemm = {"m": row["m"], "n": row["n"], "k": row["k"], "dtype": "bf16"}
        return {"topology": system, "host": HOSTS[row["mode"]],
                "repeat": "steady" if row["state"] == "steady" else "once",
                "workload": {"collective": collective, "order": order, "gemm": gemm}} | SCHEDULES[library]
    return None


def scenario_of_block(row, system):
    """The run config of a row of layers.py in a graph."""
    links = "async_tp" if row["links"] == "async_tp" else "nccl"
    return {"topology": system, "host": "cuda_graph", "repeat": "steady" if row["state"] == "steady" else "once",
            "workload": blocks.workload_of(row)} | SCHEDULES[links] | ({"params": {"scatter": False}} if links == "async_tp" else {})


def scenario_of_iteration(row, system):
    """The run config of a row of fsdp.py."""
    whole = {"params": SCHEDULES["nccl"]["params"], "schedule": "serial" if row["prefetch"] == "none" else "concurrent"}
    return {"topology": system, "host": "pytorch_fsdp2", "repeat": "steady" if row["state"] == "steady" else "once",
            "workload": iterations.workload_of(row)} | whole


def scenario_of_generation(row, system):
    """The run config of a row of allreduce.generation_rows."""
    steps = blocks.Steps()
    for layer in range(row["layers"]):
        steps.gemm(f"gemm_{layer}", row["m"], row["n"], row["k"])
        steps.collective(f"sum_{layer}", "all_reduce", row["m"] * row["n"])
    workload = {"schema": 1, "name": f"generation_{row['m']}x{row['n']}x{row['k']}",
                "description": "GEMMs and all-reduces of allreduce.py", "operators": steps.operators}
    return {"topology": system, "host": "cuda_graph", "repeat": "steady", "workload": workload} | SCHEDULES[row["links"]]


def scenario(row, system):
    """The run config of any row; none for those that are no case."""
    if row["kind"] == "operator":
        return scenario_of(row, system)
    if row["state"] != "steady":
        return None  # blocks and iterations from cool: single runs, spread too far
    if row["kind"] == "block" and row["mode"].endswith("graph"):
        return scenario_of_block(row, system)
    of_kind = {"fsdp": scenario_of_iteration, "generation": scenario_of_generation}.get(row["kind"])
    return of_kind(row, system) if of_kind else None


def cases(machine, rows):
    """Measured cases of the rows that have a run config. Rows of one operator's scenario are turns of one case, whose faster ones are its
    runs. Any other row is a case of its own, also if the same was drawn or measured twice."""
    merged = {}
    for number, row in enumerate(rows):
        if "median_us" not in row or row.get("in_graph", 1) > 1:
            continue
        system = system_of(machine["device"], row["ranks"])
        config = scenario(row, system)
        if config is not None:
            key = json.dumps(config) if row["kind"] == "operator" else number
            case = merged.setdefault(key, {"schema": 1, "kind": "overlap", "system": system, "scenario": config, "unit": "us",
                                           "runs": []})
            case["runs"].append(row.get("samples_us", [row["median_us"]]))
    for case in merged.values():
        runs = fastest(case["runs"])
        yield case | {"runs": [{"date": machine["date"], "samples_us": samples} for samples in runs],
                      "makespan_us": statistics.median(sum(runs, []))}


def write_cases(measured, out):
    """Writes the cases of `measured`, a file of scripts/measure_pytorch, to `out`."""
    with open(measured, encoding="utf-8") as lines:
        machine, *rows = map(json.loads, lines)
    with open(out, "w", encoding="utf-8") as file:
        for line in (machine, *cases(machine, rows)):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
