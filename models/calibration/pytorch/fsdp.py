"""Iterations (forward, backward) of transformer layers by FSDP2, fully_shard, over all GPUs: step times and a trace."""
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import silu

from .counters import Counters
from .layers import attention, rotated
from .operators import longest, normal, once_us, refusal, steady
from .sizes import Sizes

# Model, layers, sequences and their tokens on each GPU, dtype of summed gradients, prefetch; see `prefetched`.
CASES = (("llama3_8b", 4, 2, 4096, "bfloat16", "implicit"), ("llama3_8b", 4, 2, 4096, "bfloat16", "none"),
         ("llama3_8b", 4, 1, 2048, "bfloat16", "implicit"), ("llama3_8b", 4, 1, 2048, "bfloat16", "none"),
         ("llama3_8b", 4, 2, 4096, "float32", "implicit"), ("llama3_8b", 4, 1, 2048, "bfloat16", "explicit"),
         ("llama2_7b", 6, 1, 4096, "bfloat16", "implicit"), ("llama2_7b", 6, 1, 4096, "bfloat16", "none"),
         ("qwen3_32b", 2, 1, 4096, "bfloat16", "implicit"), ("qwen3_32b", 2, 1, 4096, "bfloat16", "none"),
         ("llama3_70b", 2, 1, 4096, "bfloat16", "implicit"), ("llama3_70b", 2, 1, 4096, "bfloat16", "none"),
         ("llama3_8b", 8, 1, 4096, "bfloat16", "implicit"), ("llama3_8b", 8, 1, 1024, "bfloat16", "implicit"))
STEADY_S, COOL_SAMPLES = 0.8, 5


class Layer(nn.Module):
    """Attention and gated SiLU with RMS norms and residuals; x is [sequences, tokens, hidden]."""

    def __init__(self, sizes, tokens):
        super().__init__()
        self.sizes, self.heads = sizes, (sizes.heads, sizes.kv_heads, sizes.kv_heads)
        self.norm_attention, self.norm_mlp = nn.RMSNorm(sizes.hidden), nn.RMSNorm(sizes.hidden)
        self.qkv = nn.Linear(sizes.hidden, sum(self.heads) * sizes.head, bias=False)
        self.out = nn.Linear(sizes.heads * sizes.head, sizes.hidden, bias=False)
        self.gate_up = nn.Linear(sizes.hidden, 2 * sizes.inner, bias=False)
        self.down = nn.Linear(sizes.inner, sizes.hidden, bias=False)
        self.angles = normal(tokens, sizes.head), normal(tokens, sizes.head)

    def forward(self, x):
        sequences, tokens, _ = x.shape
        qkv = self.qkv(self.norm_attention(x))
        q, k, v = qkv.view(sequences, tokens, -1, self.sizes.head).transpose(1, 2).split(self.heads, dim=1)
        attended = attention(rotated(q, *self.angles), rotated(k, *self.angles), v)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.norm_mlp(x)).chunk(2, dim=-1)
        return x + self.down(silu(gate) * up)


def prefetched(model, how):
    """explicit: each layer's forward and backward gathers the next one's weights first; implicit: FSDP2's default, the host
    runs ahead and gathers have a stream of their own; none: gathers and reduce-scatters are on the stream of the computation."""
    layers = list(model)
    if how == "explicit":
        for layer, following in zip(layers, layers[1:]):
            layer.set_modules_to_forward_prefetch([following])
            following.set_modules_to_backward_prefetch([layer])
    return model


def on_stream_of_computation(model):
    """Puts FSDP2's collectives onto the computation's stream, so that nothing overlaps. Uses what PyTorch keeps private."""
    stream = torch.cuda.current_stream()
    for module in (model, *model):
        state = module._get_fsdp_state()
        group = getattr(state, "_fsdp_param_group", None)
        for context in (getattr(state, "_comm_ctx", None), getattr(group, "comm_ctx", None)):
            if context is not None:
                for name in ("all_gather_copy_in_stream", "all_gather_stream", "reduce_scatter_stream", "all_reduce_stream"):
                    setattr(context, name, stream)


def model_of(name, layers, tokens, reduced, how):
    sizes = Sizes(name, 1)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=getattr(torch, reduced))
    with torch.device("cuda"):
        model = nn.Sequential(*(Layer(sizes, tokens) for _ in range(layers)))
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return prefetched(model, how), sizes


def iteration_of(model, x, gradient):
    """Forward and backward, without an optimiser; the gradients are thrown away."""
    def iteration():
        model(x).backward(gradient)
        for weights in model.parameters():
            weights.grad = None
        x.grad = None
    return iteration


def trace(iteration, file):
    """Writes a Kineto trace of two iterations with shapes to `file`; without one this rank only takes part."""
    from torch.profiler import ProfilerActivity, profile, schedule

    def write(profiler):
        if file:
            profiler.export_chrome_trace(str(file))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, on_trace_ready=write,
                 schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as profiler:
        for _ in range(3):
            dist.barrier()
            torch.cuda.synchronize()
            iteration()
            torch.cuda.synchronize()
            profiler.step()


def rows(rank, budget_s, out, cases=CASES):
    """All rows, on every rank alike. Of `CASES`, rank 0 writes a trace of the first and the first without prefetch beside `out`."""
    begin, ranks, counters = time.perf_counter(), dist.get_world_size(), Counters(rank)
    traced = set() if cases is CASES else {"implicit", "none"}
    for name, layers, sequences, tokens, reduced, how in cases:
        if longest(time.perf_counter() - begin) > budget_s:
            return
        row = {"kind": "fsdp", "model": name, "layers": layers, "sequences": sequences, "tokens": tokens,
               "reduced": reduced, "prefetch": how, "ranks": ranks, "mode": "eager"}
        try:
            model, sizes = model_of(name, layers, tokens, reduced, how)
            x = normal(sequences, tokens, sizes.hidden).requires_grad_()
            iteration = iteration_of(model, x, normal(sequences, tokens, sizes.hidden))
            iteration()  # FSDP2 makes its streams in the first one
            if how == "none":
                on_stream_of_computation(model)
            for _ in range(2):
                iteration()
            if how not in traced and how != "explicit":
                traced.add(how)
                trace(iteration, out.with_suffix(f".fsdp_{how}.json.gz") if rank == 0 else None)
            samples = [once_us(iteration) for _ in range(COOL_SAMPLES)]
            each = statistics.median(samples)
            yield row | {"state": "cool", "median_us": round(each, 1), "samples_us": [round(one, 1) for one in samples]}
            yield row | {"state": "steady", **steady(iteration, each, counters, STEADY_S),
                         "host_us": round(host_us(iteration), 1)}
        except Exception as error:  # too little memory, say: the others go on
            yield row | {"refused": refusal(error)}
        model = x = iteration = None
        torch.cuda.empty_cache()


def host_us(iteration):
    """Host time of one iteration that begins with an idle GPU, an upper bound: some of its calls may wait."""
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    iteration()
    took = (time.perf_counter() - begin) * 1e6
    torch.cuda.synchronize()
    return took
