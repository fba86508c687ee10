"""What the tests of traces share: small traces whose times are round, so that what is expected can be added up."""
import csv
import io
import json
import sqlite3

from sim_case import SimTestCase

NCCL = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
TENSILE = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN"
NVJET = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"


def event(category, name, start, lasted, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": lasted, "args": args}


def kineto(events, device="NVIDIA H200", **job):
    trace = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": device}], "traceEvents": events}
    if job:
        trace["distributedInfo"] = {"backend": "nccl", **job}
    return trace


def gathered_pair(rank, name, said_by, members=8):
    """Three steps of an all-gather of 430 us behind which a GEMM of 16384x1792x4096 takes 380; `said_by`: kernel or host."""
    events = []
    said = {"Collective name": "_allgather_base", "In msg nelems": 2 ** 26 // members, "Out msg nelems": 2 ** 26,
            "Group size": members, "dtype": "BFloat16"}
    for step in range(3):
        at = 1000.0 * (step + 1)
        events += [event("user_annotation", f"ProfilerStep#{step}", at, 900.0),
                   event("cpu_op", "aten::mm", at + 2, 5.0, **{"External id": 500 + step, "Input Dims": [[16384, 4096], [4096, 1792]],
                                                               "Input type": ["c10::BFloat16", "c10::BFloat16"]}),
                   event("cpu_op", "record_param_comms", at, 2.0, **{"External id": 900 + step, **(said if said_by == "host" else {})}),
                   event("cuda_runtime", "hipLaunchKernel", at + 0.5, 1.0, correlation=2 * step),
                   event("cuda_runtime", "hipLaunchKernel", at + 3, 1.0, correlation=2 * step + 1),
                   event("kernel", name, at + 20, 430.0, device=rank, stream=3, correlation=2 * step, **(said if said_by == "kernel" else {})),
                   event("kernel", TENSILE, at + 455, 380.0, device=rank, stream=0, correlation=2 * step + 1, **{"External id": 500 + step})]
    return events


class TraceTestCase(SimTestCase):
    def imported(self, *args, out="case.json"):
        """What sim import prints, and the case that it writes."""
        text = self.output("import", *args, "--out", out)
        return text, json.loads((self.folder / out).read_text(encoding="utf-8"))

    def csv(self, name, rows):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text.getvalue(), encoding="utf-8")
        return name

    def database(self, name, statements):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        handle = sqlite3.connect(self.folder / name)
        handle.executescript(statements)
        handle.commit()
        handle.close()
        return name
