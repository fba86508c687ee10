"""MLP blocks and transformer layers (forward), tensor parallel over all GPUs: in graphs, compiled, by NCCL and async TP."""
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

from .calls import graph_of
from .counters import Counters
from .operators import longest, normal, refusal, single, steady
from .sizes import Sizes

# Model, tokens.
SIZES = (("llama3_8b", 8192), ("llama3_70b", 4096), ("qwen3_8b", 4096), ("llama3_8b", 2048), ("llama2_7b", 4096),
         ("qwen3_32b", 8192), ("llama3_70b", 1024), ("mistral_7b", 16384), ("llama3_8b", 512), ("llama3_70b", 16384))
COMPILED_AFTER = {1: (0,), len(SIZES) - 1: (1, 2, 3)}  # compiling takes longer than measuring, so most sizes come first
STEADY_S = 0.4


class Nccl:
    """Gathers before and sums behind GEMMs by NCCL; a rank keeps its share of tokens. Traceable by torch.compile."""
    shards = True

    def gathered(self, x, weights):
        return functional.all_gather_tensor(x, 0, dist.group.WORLD) @ weights

    def summed(self, x, weights):
        return functional.reduce_scatter_tensor(x @ weights, "sum", 0, dist.group.WORLD)


class AllReduce:
    """The same with all tokens on every rank."""
    shards = False

    def gathered(self, x, weights):
        return x @ weights

    def summed(self, x, weights):
        return functional.all_reduce(x @ weights, "sum", dist.group.WORLD)


class AsyncTp:
    """The operators that torch.compile puts in Nccl's place if async TP is on."""
    shards = True

    def gathered(self, x, weights):
        group = dist.group.WORLD.group_name
        return torch.ops.symm_mem.fused_all_gather_matmul(x, [weights], 0, group, return_A=False)[1][0]

    def summed(self, x, weights):
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weights, "sum", 0, dist.group.WORLD.group_name)


LINKS = {"nccl": Nccl(), "async_tp": AsyncTp(), "all_reduce": AllReduce()}


def mlp_of(sizes, links):
    norm = normal(sizes.hidden)
    gate_up, down = normal(sizes.hidden, 2 * sizes.inner) * 0.02, normal(sizes.inner, sizes.hidden) * 0.02

    def mlp(x):
        gate, up = links.gathered(rms_norm(x, (sizes.hidden,), norm), gate_up).chunk(2, dim=-1)
        return x + links.summed(silu(gate) * up, down)
    return mlp


def rotated(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


def attention(q, k, v):
    """Causal attention [batch, heads, tokens, head] by flash attention, PyTorch's first choice, or not at all."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def layer_of(sizes, links, tokens):
    """Attention of one sequence of `tokens` and an MLP, each behind a norm and with a residual."""
    norm, mlp = normal(sizes.hidden), mlp_of(sizes, links)
    heads = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
    qkv_weights, out = normal(sizes.hidden, sum(heads) * sizes.head) * 0.02, normal(sizes.heads * sizes.head, sizes.hidden) * 0.02
    cosine, sine = normal(tokens, sizes.head), normal(tokens, sizes.head)

    def layer(x):
        qkv = links.gathered(rms_norm(x, (sizes.hidden,), norm), qkv_weights)
        q, k, v = qkv.view(1, tokens, -1, sizes.head).transpose(1, 2).split(heads, dim=1)
        attended = attention(rotated(q, cosine, sine), rotated(k, cosine, sine), v)
        x = x + links.summed(attended.transpose(1, 2).reshape(tokens, -1), out)
        return mlp(x)
    return layer


def kernels_of(body):
    """Kernels and copies of one call in order of their starts: [name, start in µs from the first, µs]."""
    from torch.profiler import ProfilerActivity, profile
    dist.barrier()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        body()
        torch.cuda.synchronize()
    events = sorted((event for event in recorded.events() if event.device_type == torch.autograd.DeviceType.CUDA),
                    key=lambda event: event.time_range.start)
    return [[event.name[:60], round(event.time_range.start - events[0].time_range.start, 1),
             round(event.time_range.elapsed_us(), 1)] for event in events]


def compiled(body, by_async_tp):
    """`body` by torch.compile, which puts async TP's operators in the place of NCCL's if asked to."""
    import torch._inductor.config as inductor
    torch._dynamo.reset()
    inductor._micro_pipeline_tp = by_async_tp
    return torch.compile(body, dynamic=False)


@torch.no_grad()
def rows_of(row, body, x, modes, counters):
    """Rows of one block: single runs from cool and steady loops of each of its modes, and the kernels of a graph."""
    def call():
        with torch.no_grad():
            return body(x)
    for _ in range(3):
        call()
    for mode in modes:
        graph = mode.endswith("graph")
        run = graph_of(call).replay if graph else call
        time.sleep(0.2)
        first = single(run)
        yield row | {"mode": mode, "state": "cool", **first} | ({"kernels": kernels_of(run)} if graph else {})
        yield row | {"mode": mode, "state": "steady", **steady(run, first["median_us"], counters, STEADY_S)}


def variants(sizes):
    """(block, its size, links, modes): all in graphs; some of `SIZES` compiled as well."""
    def both(size, name, modes):
        for block in ("mlp", "layer"):
            yield block, size, name, modes
    for index, size in enumerate(sizes):
        for name in LINKS:
            yield from both(size, name, ("graph",))
        for other in COMPILED_AFTER.get(index, ()) if sizes is SIZES else ():
            for name in ("nccl", "async_tp"):
                yield from both(SIZES[other], name, ("compiled", "compiled_graph"))


def rows(rank, budget_s, sizes=SIZES):
    """All rows, on every rank alike; stops when `budget_s` is spent."""
    begin, ranks, counters = time.perf_counter(), dist.get_world_size(), Counters(rank)
    for block, (model, tokens), name, modes in variants(sizes):
        if longest(time.perf_counter() - begin) > budget_s:
            return
        row = {"kind": "block", "block": block, "model": model, "tokens": tokens, "links": name, "ranks": ranks}
        by_compiler = modes[0] == "compiled"
        try:
            sizes, links = Sizes(model, ranks), LINKS["nccl" if by_compiler else name]
            body = mlp_of(sizes, links) if block == "mlp" else layer_of(sizes, links, tokens)
            x = normal(tokens // ranks if links.shards else tokens, sizes.hidden)
            yield from rows_of(row, compiled(body, name == "async_tp") if by_compiler else body, x, modes, counters)
        except Exception as error:  # a library refuses this block: the others go on
            yield row | {"mode": modes[0], "refused": refusal(error)}
        torch.cuda.empty_cache()
