"""Which schedule overlaps best for a GEMM after an all-gather, and from which size on? PYTHONPATH names the module."""
import overlap

PAIR = {"collective": "all_gather", "gemm": {"m": 16384, "n": 2560, "k": 8192, "dtype": "bf16"}}

# One run: a dict like the result of `sim --format json`.
result = overlap.run({"topology": "h200_8", "schedule": "shard_p2p", "workload": PAIR})
print(f"shard_p2p: {result['makespan_us']:.0f} us, {result['speedup']:.2f} x as fast as serial")
print("lost by", max(result["losses_us"], key=result["losses_us"].get))

# The best of all schedules.
advice = overlap.advise({"topology": "h200_8", "workload": PAIR}, top=2)
print("best:", advice["best"][0]["config"]["schedule"])

# A sweep: columns, one value for each point. pandas.DataFrame(columns) makes a table of them.
columns = overlap.sweep({
    "base": {"topology": "h200_8", "workload": PAIR},
    "axes": {"schedule": ["serial", "shard_p2p"], "workload.gemm.m": [4096, 16384, 65536]}})
for m, schedule, makespan in zip(columns["m"], columns["schedule"], columns["makespan_us"]):
    print(f"m={m}: {schedule} {makespan:.0f} us")

# A mistake is a UserError, which is a ValueError, in one line.
try:
    overlap.run({"topology": "h200_9", "schedule": "serial"})
except overlap.UserError as error:
    print(error)
