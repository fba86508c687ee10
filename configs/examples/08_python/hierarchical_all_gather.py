"""An all-gather of one's own on several nodes: over NICs to the own rail, then on inside each node, shard by shard."""
import overlap

NODES, LOCAL, SHARD = 2, 8, 64e6
GPUS = NODES * LOCAL


def direct():
    plan = overlap.Plan(GPUS)
    for rank in plan.ranks:
        for d in range(1, GPUS):
            plan.copy(rank + d, rank, SHARD, name=f"shard {(rank + d) % GPUS}")
    return plan


def hierarchical():
    plan, here = overlap.Plan(GPUS), {}
    for rank in plan.ranks:  # the shards of the same place in all other nodes
        for node in range(1, NODES):
            source = (rank + node * LOCAL) % GPUS
            here[rank, source] = plan.copy(source, rank, SHARD, name=f"shard {source}")
    for rank in plan.ranks:  # from the other GPUs of the node: their own shard, and what came to them
        for d in range(1, LOCAL):
            other = rank // LOCAL * LOCAL + (rank + d) % LOCAL
            for shard in [other] + [source for at, source in here if at == other]:
                plan.copy(other, rank, SHARD, after=here.get((other, shard)), name=f"shard {shard}")
    return plan


for name, plan in (("direct", direct()), ("hierarchical", hierarchical())):
    result = overlap.simulate(plan, "mi300x_16", trace=f"{name}.trace.json")
    print(f"{name}: {result['makespan_us']:.0f} us")
