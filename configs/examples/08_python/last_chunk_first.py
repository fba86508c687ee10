"""A schedule of one's own: all-gather before a GEMM, every shard in chunks, the last chunk first."""
import overlap

GPUS, CHUNKS, M, N, K = 8, 4, 16384, 2560, 8192
rows = M // GPUS // CHUNKS
pair = {"collective": "all_gather", "gemm": {"m": M, "n": N, "k": K, "dtype": "bf16"}}


def schedule(order):
    plan = overlap.Plan(GPUS, workload=pair)
    for rank in plan.ranks:
        plan.gemm(rank, (M // GPUS, N, K), name="own shard")
        for chunk in order:
            came = [plan.copy(rank + d, rank, 2 * rows * K, chunk=chunk, name=f"get chunk {chunk}") for d in range(1, GPUS)]
            plan.gemm(rank, (rows * (GPUS - 1), N, K), after=came, chunk=chunk, name=f"gemm of chunk {chunk}")
    return plan


for name, order in (("first", range(CHUNKS)), ("last", range(CHUNKS)[::-1])):
    result = overlap.simulate(schedule(order), "h200_8", trace=f"{name}_chunk_first.trace.json")
    print(f"{name} chunk first: {result['makespan_us']:.0f} us, {result['speedup']:.2f} x as fast as serial")
