"""Inputs to begin with, one folder a target: shipped files, and small samples of formats that no shipped file has.

seeds.py FOLDER writes FOLDER/seeds/TARGET/…, which every target has to accept, and FOLDER/strange/TARGET/…, which
it may refuse.
"""
import json
import pathlib
import sqlite3
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS, TRACES = ROOT / "configs", ROOT / "traces"
JSON_TARGETS = ["run_config", "topology", "device", "calibration", "workload", "preset", "kernels", "sweep", "experiment", "measured_case",
                "manifest", "kineto", "plan", "rocprof_json", "own_trace"]
LONGEST = 16384  # bytes; of larger files, arrays and tables of GEMMs keep their first entries

GEMM = {"m": 8192, "n": 1280, "k": 8192, "dtype": "bf16"}
RUNS = [
    {"topology": "mi300x_8", "schedule": "hetero_fused_1d", "params": {"chunks": 4, "agent": "cu"}},
    {"topology": "h200_4.json", "schedule": "shard_p2p", "seeds": 3, "without": ["contention", "launch"],
     "workload": {"collective": "all_gather", "order": "collective_first", "shard_dim": "m", "gemm": GEMM}},
    {"schema": 1, "topology": "h200_2", "schedule": "concurrent", "engine": "flow", "cost_models": ["gemm_tiled"],
     "workload": {"name": "list", "operators": [
         {"name": "a", "type": "gemm", **GEMM, "batch": 2}, {"name": "b", "type": "memory_bound", "read_bytes": 1e6,
                                                             "write_bytes": 2e6, "needs": ["a"]},
         {"name": "c", "type": "collective", "collective": "all_reduce", "bytes": 1e7, "dtype": "fp16",
          "needs": ["a", "b"]}, {"name": "d", "type": "reduction", "bytes": 1e6, "parts": 4}]}},
    {"topology": "mi300x_8", "schedule": "flag_gated", "what_if": {"topology.fabric.0.bandwidth_GBps": "2x",
                                                                 "device.dma.peer_engines": 4}},
]
MM = {"m": 512, "n": 256, "k": 128, "dtype": "bf16"}
PLANS = [
    {"schema": 2, "gpus": 2, "streams": ["side"], "tasks": [
        {"gpu": 0, "kind": "gemm", "stream": "compute", **MM, "name": "a", "gemm_cus": 100, "persistent": True},
        {"each_rank": [
            {"kind": "copy", "stream": "transfer +1", "src": "+1", "dst": "+0", "bytes": 1e6, "run_bytes": 4096, "shard": "+1", "after": [[3, "+1"]]},
            {"kind": "copy", "stream": "transfer +1", "src": "+0", "dst": "+1", "bytes": 1e6, "agent": "cu", "transfer": "push", "copy_cus": 4, "priority": 1},
            {"kind": "memory_bound", "stream": "side", "read_bytes": 1e6, "write_bytes": 2e6, "time_us": 7},
            {"kind": "reduce", "stream": "local", "bytes": {"ranks": [1e6, 2e6]}, "parts": 2, "after": [1, {"task": [2, 0], "from": 0.5, "to": 0.25}]}]},
        {"gpu": 1, "kind": "local_copy", "stream": "local", "bytes": 1e6, "after": ["a", [1, "+1"]]},
        {"gpu": 1, "kind": "local_copy", "stream": "local", "bytes": 1e6, "agent": "cu", "copy_cus": 8},
        {"gpu": 0, "kind": "memory_bound", "stream": "transfer 1", "read_bytes": 0, "write_bytes": 0, "time_us": 100, "waits": True}],
     "measure": {"repeats": 9, "warm_ups": 1, "at_peak_clock": False, "cold_caches": False, "marks": True}},
    {"schema": 2, "gpus": 8, "order": "data", "tasks": [{"each_rank": [
        {"kind": "collective", "stream": "transfer 0", "collective": "all_gather", "operand_bytes": 1e8, "channels": 56},
        {"kind": "copy", "stream": "transfer +1", "src": "+0", "dst": "+1", "second_dst": "+2", "bytes": 1e6, "dma_command": "broadcast", "transfer": "push", "prelaunched": True},
        {"kind": "copy", "stream": "transfer +3", "src": "+0", "dst": "+3", "bytes": 1e6, "dma_command": "back_to_back", "place": 0, "batch": 2, "transfer": "push"},
        {"kind": "copy", "stream": "transfer +3", "src": "+0", "dst": "+4", "bytes": 1e6, "dma_command": "back_to_back", "place": 1, "batch": 2, "transfer": "push"},
        {"kind": "gemm", "stream": "compute", **MM, "accumulate": True, "after": [0]}]}]},
    {"schema": 2, "gpus": 2, "config": {"workload": {"collective": "all_gather", "gemm": MM}},
     "buffers": [{"gpu": gpu, "name": name, "rows": rows, "columns": columns, "dtype": "bf16"} for gpu in (0, 1)
                 for name, rows, columns in (("a", 512, 128), ("b", 128, 256), ("c", 512, 256))],
     "inputs": [[0, 0, 0, 256, 128], [1, 0, 0, 128, 256], [3, 256, 0, 256, 128], [4, 0, 0, 128, 256]],
     "results": [[2, 0, 0, 512, 256], [5, 0, 0, 512, 256]],
     "tasks": [{"each_rank": [
         {"kind": "copy", "stream": "transfer +1", "src": "+1", "dst": "+0", "bytes": 65536,
          "from": {"ranks": [[[3, 256, 0, 256, 128]], [[0, 0, 0, 256, 128]]]}, "to": {"ranks": [[[0, 256, 0, 256, 128]], [[3, 0, 0, 256, 128]]]}},
         {"kind": "gemm", "stream": "compute", **MM, "after": [0], "from": {"ranks": [[[0, 0, 0, 512, 128], [1, 0, 0, 128, 256]], [[3, 0, 0, 512, 128], [4, 0, 0, 128, 256]]]},
          "to": {"ranks": [[[2, 0, 0, 512, 256]], [[5, 0, 0, 512, 256]]]}}]}]},
    {"schema": 2, "gpus": 4, "config": {"topology": "h200_4.json", "host": "pytorch_eager", "schedule": "concurrent", "workload": {"name": "list", "operators": [
        {"name": "a", "type": "gemm", **MM}, {"name": "b", "type": "collective", "collective": "all_reduce", "bytes": 1e7, "needs": ["a"]}]}},
     "tasks": [{"each_rank": [{"kind": "gemm", "stream": "compute", **MM, "operator": 0},
                              {"kind": "collective", "stream": "transfer 0", "collective": "all_reduce", "operand_bytes": 1e7, "operator": 1, "after": [0]}]}]},
]
SWEEPS = [
    {"schema": 1, "name": "small", "base": {"topology": "h200_4", "workload": "ficco_g1"},
     "axes": {"schedule": ["serial", "uniform_fused_1d"], "params.chunks": {"from": 1, "to": 4, "times": 2}},
     "where": ["gemm.m % (gpus * chunks) == 0", "schedule == \"serial\" || agent == \"cu\""]},
    {"schema": 1, "name": "other", "description": "all kinds of axes",
     "base": {"schedule": "hetero_fused_1d", "topology": "mi300x_8"},
     "axes": {"workload": {"files": ["ficco_g1", "ficco_g2"]}, "what_if.topology.fabric.0.bandwidth_GBps": [64, "2x"]},
     "zipped": [{"params.agent": ["cu", "dma"], "params.chunks": [1, 2]}]},
    {"schema": 1, "name": "listed", "base": {"schedule": "serial", "topology": "h200_2"},
     "points": [{"workload.gemm.m": 512}, {"workload.gemm.m": 1024, "params.agent": "dma"}]},
]
ROCPROF = {"rocprofiler-sdk-tool": [{
    "agents": [{"id": {"handle": 11}, "type": 1}, {"id": {"handle": 22}, "type": 2}, {"id": {"handle": 33}, "type": 2}],
    "kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name": "Cijk_Alik"},
                       {"kernel_id": 6, "formatted_kernel_name": "odd"}],
    "buffer_records": {
        "kernel_dispatch": [
            {"start_timestamp": 100, "end_timestamp": 2100,
             "dispatch_info": {"agent_id": {"handle": 33}, "queue_id": {"handle": 3}, "kernel_id": 5}},
            {"start_timestamp": 100, "end_timestamp": 200,
             "dispatch_info": {"agent_id": {"handle": 22}, "queue_id": {"handle": 3}, "kernel_id": 6}}],
        "memory_copy": [{"start_timestamp": 150, "end_timestamp": 250, "src_agent_id": {"handle": 22},
                         "dst_agent_id": {"handle": 33}}]}}]}
ROCPROF_CSV = [
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n'
    '"KERNEL_DISPATCH","Agent 4",1,2,"Cijk_Ailk_Bljk_BBS_MT256x256x64",1000,51000\n'
    '"KERNEL_DISPATCH","Agent 5",1,0,"rccl ""Generic"", a",3000,9000\n',
    '"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE","Agent 5","Agent 4",7,2000,4000\n'
    '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","Agent 0","Agent 4",8,500,600\n']
SHAPES = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "distributedInfo": {"rank": 0}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 1, "dur": 2, "args": {
        "External id": 5, "Input Dims": [[2560], [4096, 8192], [8192, 2560], [], []],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]}},
    {"ph": "X", "cat": "kernel", "name": "nvjet_sm90", "ts": 10, "dur": 200, "args": {
        "External id": 5, "device": 0, "stream": 7, "correlation": 53}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 220, "dur": 100, "args": {
        "device": 0, "stream": 9, "Collective name": "allreduce", "In msg nelems": 10485760, "Out msg nelems": 10485760,
        "Group size": 2, "dtype": "BFloat16"}}]}
NSIGHT = """
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                                             demangledName INTEGER, shortName INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                                             bytes INTEGER, copyKind INTEGER);
    INSERT INTO StringIds VALUES (1, 'sm90_xmma_gemm_bf16bf16'), (2, 'mystery');
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 2, 7, 1, 1), (9000, 9100, 2, 7, 2, 2);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4000, 6000, 3, 13, 64, 10), (1, 2, 3, 13, 64, 1);"""
TABLES = ["m,n,k,dtype,accumulate,M,N,K,us\n4096,4096,4096,bf16,0,4096,4096,4096,200.5\n8,16,32,fp8,1,8,16,32,9\n",
          "M,N,K,us\n64,128,256,8.5\n1024,128,256,12\n"]
EXPRESSIONS = ["gemm.m % (gpus * chunks) == 0\n", 'agent == "cu" || chunks > 1\n', "abs(gemm.m - 4096) < 1\n",
               "dry ? false : max(gpus, chunks) >= 8\nlog2(gpus) == 3 and !dry\n",
               "what_if.device.dma.peer_engines == 0\n"]


def field(number, value):
    """A protobuf field: an integer, or bytes behind their length."""
    def varint(rest):
        return bytes([rest & 127 | 128]) + varint(rest >> 7) if rest > 127 else bytes([rest])
    if isinstance(value, int):
        return varint(8 * number) + varint(value)
    return varint(8 * number + 2) + varint(len(value)) + value


def chakra():
    """A trace of one rank: a collective, a computation with its recorded time, one with FLOPs and our own attribute."""
    def attribute(name, value):
        return field(10, field(1, name) + (field(9, value) if isinstance(value, int) else field(29, value)))

    def message(content):
        return field(0, content)[1:]
    ours = json.dumps({"name": "gemm", "type": "gemm", **GEMM}).encode()
    return [message(field(1, b"0.0.4")) + message(field(1, 0) + field(2, b"ag") + field(3, 7) + attribute(b"comm_type", 2)
                                                  + attribute(b"comm_size", 1 << 20)) +
            message(field(1, 1) + field(3, 4) + field(5, 0) + field(7, 9)) +
            message(field(1, 2) + field(3, 4) + field(5, 1) + attribute(b"num_ops", 2 * 8192 * 1280 * 8192)
                    + attribute(b"tensor_size", 2 * (8192 * 8192 + 8192 * 1280 + 8192 * 1280)) + attribute(b"overlap_operator", ours))]


def shortened(value):
    if isinstance(value, list):
        return [shortened(entry) for entry in value[:4]]
    if isinstance(value, dict):
        return {key: shortened(entry) for key, entry in (list(value.items())[:40])}
    return value


def text_of(file):
    text = file.read_text(encoding="utf-8")
    if len(text) > LONGEST:
        text = json.dumps(shortened(json.loads(text)), ensure_ascii=False)
    return text


def lines_of(file, lines):
    with open(file, encoding="utf-8") as opened:
        return [next(opened) for _ in range(lines)]


def one_of_each_kind(trace):
    """A profiler's trace with the first two events of each category."""
    kept, seen = [], {}
    for event in trace["traceEvents"]:
        kind = event.get("cat")
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 2:
            kept.append(event)
    return {**trace, "traceEvents": kept}


def database(folder):
    """SQLite's smallest pages, so that a mutation hits something."""
    file = folder / "report.sqlite"
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as connection:
        connection.executescript("PRAGMA page_size = 512;" + NSIGHT)
    connection.close()


def seeds():
    """Texts by target."""
    files = {"topology": "topologies/*.json", "device": "devices/*.json", "calibration": "calibrations/*.json",
             "workload": "workloads/*.json", "preset": "schedules/*.json", "kernels": "kernels.json", "experiment": "experiments/*/*.json"}
    # Sanitized, a machine of more than 10,000 GPUs takes longer to read than an input may.
    texts = {target: [text_of(file) for file in sorted(CONFIGS.glob(pattern)) if "000_rail" not in file.name and "16384" not in file.name]
             for target, pattern in files.items()}
    cases = lines_of(TRACES / "h200_2/overlap/cases.jsonl", 6)[1:]
    with_spans = lines_of(TRACES / "h200_2/overlap/with_spans.jsonl", 3)[1:]
    published = lines_of(TRACES / "published/collectives.jsonl", 2)
    scenarios = [json.dumps(json.loads(case)["scenario"]) for case in cases[:2]]
    texts |= {
        "run_config": [json.dumps(run) for run in RUNS] + scenarios,
        "sweep": [json.dumps(sweep) for sweep in SWEEPS] + [(CONFIGS / "sweeps/chunk_size.json").read_text()],
        "measured_case": cases[:2] + with_spans + published,
        "manifest": list(manifests()),
        "own_trace": with_spans, "plan": [json.dumps(plan) for plan in PLANS] + [(ROOT / "sim/plan/example.json").read_text()],
        "kineto": [json.dumps(one_of_each_kind(json.loads(file.read_text(encoding="utf-8"))))
                   for file in sorted(TRACES.glob("*/profiler/rank*.json"))] + [json.dumps(SHAPES)],
        "rocprof_json": [json.dumps(ROCPROF)],
        "rocprof_csv": ROCPROF_CSV, "csv_table": TABLES, "expressions": EXPRESSIONS,
        "microbenchmark": ["".join(lines_of(TRACES / f"h200_4/microbench/{name}.jsonl", 3))
                           for name in ("gemm", "local", "two_gpus", "at_once")],
    }
    return texts


def manifests():
    """Of archives, without digests, because an input is a manifest alone."""
    for file in sorted(TRACES.glob("*/*.tar.gz")):
        with tarfile.open(file) as archive:
            member = next(one for one in archive if one.name.endswith("/manifest.json"))
            manifest = json.load(archive.extractfile(member))
        yield json.dumps({**manifest, "sha256": {}})


def write(folder, texts):
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"seed_{number:02}").write_text(text, encoding="utf-8")


def main(folder):
    for target, texts in seeds().items():
        write(folder / "seeds" / target, texts)
    (folder / "seeds" / "chakra").mkdir(exist_ok=True)
    for number, trace in enumerate(chakra()):
        (folder / "seeds" / "chakra" / f"seed_{number:02}").write_bytes(trace)
    (folder / "seeds" / "nsight").mkdir(exist_ok=True)
    database(folder / "seeds" / "nsight")
    for target in JSON_TARGETS:
        write(folder / "strange" / target, ["[" * 100_000, '{"schema":' * 50_000, "[" * 100_000 + "]" * 100_000,
                                            json.dumps({"schema": 1, "name": "x" * 1_000_000})])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
