"""A sweep's folder with made-up numbers that are easy to recompute: what the tests of `sim report` read."""
import csv
import itertools
import json

from sim_case import PAIR, SimTestCase

LOSSES = ("decomposition", "contention", "fill_drain", "launch", "packing", "pattern")
WORKLOADS = {"gate_2": 1, "gate_10": 5, "a, \"b\" </script>": 3}  # by how much longer the GEMM is
LINKS = {"0.5x": 0.5, "1x": 1, "2x": 2, "10x": 10}
LINK = "what_if.topology.fabric.0.bandwidth_GBps"
CHUNKED = ("ring_chunked", "hetero_fused_1d")


def point(workload, link, schedule, chunks, agent):
    """Columns of one point; a makespan is the ideal time and the losses, to the digit."""
    gemm, comm = 1000.0 * WORKLOADS[workload], 800.0 / LINKS[link]
    ring, copies = schedule == "ring_chunked", 16 if agent == "cu" else 0
    lost = dict.fromkeys(LOSSES, 0.0)
    if schedule == "serial":
        lost["fill_drain"] = min(gemm, comm)
    else:
        lost.update(fill_drain=min(gemm, comm) / chunks, decomposition=gemm * chunks / 200, launch=4.0 * chunks,
                    contention=2.5 * copies, packing=0.0 if ring else 30.0, pattern=comm if ring else -2.0)
    serial, ideal = gemm + comm, max(gemm, comm)
    makespan = ideal + sum(lost.values())
    cells = {"topology": "mi300x_8.json", "schedule": schedule, "workload": workload, "collective": "all_gather",
             "order": "collective_first", "m": 1024 * WORKLOADS[workload], "n": 512, "k": 256, "dtype": "bf16",
             "chunks": chunks, "agent": agent, "transfer": "pull", "copy_cus": copies or "", LINK: link}
    if (workload, chunks) == ("gate_10", 16):
        return {**cells, "error": 'chunks is 16, but "m" has <8>, no more'}
    return {**cells, "makespan_us": makespan, "makespan_p10_us": makespan, "makespan_p90_us": makespan, "seeds": 1,
            "serial_us": serial, "gemm_us": gemm, "comm_us": comm * (2 if ring else 1), "ideal_us": ideal,
            "speedup": serial / makespan, "overlap_efficiency": (serial / makespan - 1) / (serial / ideal - 1),
            "exposed_comm_us": lost["fill_drain"], **{f"losses_us.{name}": value for name, value in lost.items()},
            "utilisation.cu": gemm / makespan, "utilisation.hbm": 0.25, "utilisation.link": comm / makespan,
            "utilisation.dma": 0.5, "tasks": 8, "engine": "flow", "params": json.dumps({"agent": agent}),
            "comm_cus": copies * (1 if ring else 7), "staging_bytes": 0 if ring else 1e6 * WORKLOADS[workload],
            "error": ""}


def points():
    """All of them, in order; `serial` has no chunks."""
    schedules = [("serial", ""), *itertools.product(CHUNKED, (2, 4, 16))]
    combinations = itertools.product(WORKLOADS, LINKS, schedules, ("dma", "cu"))
    return [{"point": i, **point(workload, link, schedule, chunks, agent)}
            for i, (workload, link, (schedule, chunks), agent) in enumerate(combinations)]


def write_sweep(folder, csv_header, rows=None):
    """`csv_header`: the header line of `sim --format csv`, which the columns of a sweep follow."""
    folder.mkdir(exist_ok=True)
    rows = points() if rows is None else rows
    columns = [name for name in csv_header.strip().split(",") if name != "wall_ms"]
    with open(folder / "points.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["point", *columns, LINK, "error"], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    axes = [{"fields": ["workload"], "values": [[name] for name in WORKLOADS]},
            {"fields": [LINK], "values": [[name] for name in LINKS]},
            {"fields": ["schedule", "params.chunks"], "values": [["serial", None], *itertools.product(CHUNKED, (2, 4, 16))]},
            {"fields": ["params.agent"], "values": [["dma"], ["cu"]]}]
    sweep = {"schema": 1, "name": "made_up", "description": "Numbers that are easy to recompute.", "version": "0.1.0",
             "points": len(rows), "base": {"topology": "mi300x_8.json"}, "axes": axes, "where": ["chunks <= 16"]}
    (folder / "sweep.json").write_text(json.dumps(sweep), encoding="utf-8")


def read_points(folder):
    """Rows of points.csv, figures as numbers; failed ones have none."""
    with open(folder / "points.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figures = ("_us", "_us.", "speedup", "efficiency", "comm_cus", "staging_bytes")
    for row in rows:
        for name, value in row.items():
            if any(part in name for part in figures) and value != "":
                row[name] = float(value)
    return rows


class SweepTestCase(SimTestCase):
    """With a sweep in the folder "sweep"."""

    def setUp(self):
        super().setUp()
        self.write()

    def write(self, rows=None):
        write_sweep(self.folder / "sweep", self.output(*PAIR, "--format", "csv").splitlines()[0], rows)
