"""A design space as a DataFrame: from which size on does which schedule pay?"""
import overlap

frame = overlap.sweep({
    "base": {"topology": "h200_8", "workload": {"collective": "all_gather", "gemm": {"m": 8192, "n": 2560, "k": 8192, "dtype": "bf16"}}},
    "axes": {"schedule": ["serial", "shard_p2p", "ring_chunked"], "workload.gemm.m": [4096, 16384, 65536]}}).to_frame()
print(frame.pivot(index="m", columns="schedule", values="makespan_us").round(0))
print(frame.loc[frame.groupby("m").makespan_us.idxmin(), ["m", "schedule", "speedup"]])
