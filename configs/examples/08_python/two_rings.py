"""All-gather by two rings in opposite directions: half of each shard goes right, the other half left."""
import overlap

GPUS, SHARD = 8, 64e6


def rings(*directions):
    plan = overlap.Plan(GPUS)
    part = SHARD / len(directions)
    for way in directions:  # +1: each rank gets from the rank before it
        came = {}
        for step in range(1, GPUS):
            for rank in plan.ranks:  # what the neighbour got in the step before; in the first step its own part
                came[rank, step] = plan.copy(rank - way, rank, part, after=came.get(((rank - way) % GPUS, step - 1)),
                                             stream=f"transfer {(rank - way) % GPUS}", name=f"step {step}, {way:+d}")
    return plan


for name, directions in (("one_ring", (1,)), ("two_rings", (1, -1))):
    result = overlap.simulate(rings(*directions), "mi300x_8", trace=f"{name}.trace.json")
    print(f"{name}: {result['makespan_us']:.0f} us")
