"""Layers of a transformer on one GPU as `sim model` lists them: compiled, in a CUDA graph, in a steady state."""
import time

import torch

from .calls import graph_of
from .counters import Counters
from .layers import kernels_of, rotated
from .operators import normal, refusal, slices_us, steady
from .sizes import Sizes

# Model, phase, tokens, tokens of a sequence (decode: of a context).
CASES = (("llama3_8b", "forward", 4096, 4096), ("llama3_8b", "decode", 64, 4096), ("llama3_8b", "training", 4096, 4096),
         ("qwen3_32b", "forward", 8192, 2048), ("qwen3_32b", "decode", 32, 8192), ("llama2_7b", "training", 8192, 2048),
         # GEMMs between memory and arithmetic, which the power limit slows down
         ("llama3_8b", "decode", 128, 2048), ("qwen3_32b", "decode", 256, 1024), ("llama3_70b", "decode", 96, 1024),
         ("qwen2_72b", "decode", 192, 1024), ("mistral_7b", "decode", 512, 512), ("llama3_70b", "decode", 384, 512),
         ("qwen3_8b", "decode", 256, 1024), ("qwen2_7b", "decode", 128, 4096), ("llama3_8b", "forward", 512, 512),
         ("qwen3_32b", "forward", 256, 256), ("llama3_70b", "forward", 384, 384), ("llama2_7b", "decode", 64, 2048),
         ("llama2_70b", "decode", 64, 1024), ("qwen2_72b", "forward", 512, 256))
LAYERS = 4  # each with weights of its own, which no cache holds for the next one
STEADY_S, WARM_S = 0.5, 4  # a GPU that was idle for long keeps a higher clock for a second


class Weights:
    """Of one layer; in training with Adam's states in fp32."""

    def __init__(self, sizes, training):
        inside = (sizes.heads + 2 * sizes.kv_heads) * sizes.head
        self.tensors = [normal(sizes.hidden), normal(inside, sizes.hidden) * 0.02,
                        normal(sizes.hidden, sizes.heads * sizes.head) * 0.02, normal(sizes.hidden),
                        normal(2 * sizes.inner, sizes.hidden) * 0.02, normal(sizes.hidden, sizes.inner) * 0.02]
        self.adam = []
        for tensor in self.tensors if training else ():
            self.adam.append((tensor.float(), *(torch.zeros_like(tensor, dtype=torch.float32) for _ in range(2))))
            tensor.requires_grad_()


def mlp(x, norm, gate_up, down):
    gate, up = torch.nn.functional.linear(torch.nn.functional.rms_norm(x, x.shape[-1:], norm), gate_up).chunk(2, dim=-1)
    return x + torch.nn.functional.linear(torch.nn.functional.silu(gate) * up, down)


def layer(x, angles, cache, heads, head, attention_norm, qkv, out, *of_mlp):
    """x: [sequences, tokens, hidden]. With a cache (keys and values of a context) a token of each sequence joins it as the last."""
    sequences, tokens, hidden = x.shape
    inside = torch.nn.functional.linear(torch.nn.functional.rms_norm(x, (hidden,), attention_norm), qkv)
    q, k, v = inside.view(sequences, tokens, -1, head).transpose(1, 2).split(heads, dim=1)
    q, k = rotated(q, *angles), rotated(k, *angles)
    if cache:
        for kept, new in zip(cache, (k, v)):
            kept[:, :, -1:] = new
        k, v = cache
    attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=not cache, enable_gqa=heads[0] != heads[1])
    x = x + torch.nn.functional.linear(attended.transpose(1, 2).reshape(sequences, tokens, -1), out)
    return mlp(x, *of_mlp)


def adam(weights, gradient, whole, mean, square):
    """Weights, gradients in bf16; the rest in fp32, which the weights are rounded from."""
    gradient = gradient.float()
    mean.lerp_(gradient, 0.1)
    square.lerp_(gradient * gradient, 0.05)
    whole.sub_(1e-4 * mean / (square.sqrt() + 1e-8))
    weights.copy_(whole)


def body_of(model, phase, tokens, sequence):
    """What a step of LAYERS layers enqueues."""
    sizes, training = Sizes(model, 1), phase == "training"
    sequences, each = (tokens, 1) if phase == "decode" else (tokens // sequence, sequence)
    heads = (sizes.heads, sizes.kv_heads, sizes.kv_heads)
    layers = [Weights(sizes, training) for _ in range(LAYERS)]
    caches = [tuple(normal(sequences, sizes.kv_heads, sequence, sizes.head) for _ in range(2)) if phase == "decode" else ()
              for _ in layers]
    x, gradient = (normal(sequences, each, sizes.hidden) for _ in range(2))
    angles = normal(each, sizes.head), normal(each, sizes.head)
    torch._dynamo.reset()
    compiled, update = torch.compile(layer, dynamic=False), torch.compile(adam, dynamic=False)

    def forward():
        y = x
        for weights, cache in zip(layers, caches):
            y = compiled(y, angles, cache, heads, sizes.head, *weights.tensors)
        return y

    def train():
        forward().backward(gradient)
        with torch.no_grad():
            for weights in layers:
                for tensor, states in zip(weights.tensors, weights.adam):
                    update(tensor, tensor.grad, *states)
                    tensor.grad = None

    def infer():
        with torch.no_grad():
            forward()
    return train if training else infer


def rows_of(row, run, counters):
    by_name = {}
    for name, _, took in kernels_of(run):
        count, total = by_name.get(name, (0, 0))
        by_name[name] = count + 1, round(total + took, 1)
    yield row | {"state": "steady", **steady(run, 0, counters, STEADY_S),
                 "kernels": [[name, *sums] for name, sums in by_name.items()]}


def rows(rank, budget_s, cases=CASES):
    """All rows of one GPU; stops when `budget_s` is spent."""
    begin, counters = time.perf_counter(), Counters(rank)
    a, b = normal(8192, 8192), normal(8192, 8192)
    slices_us(lambda: torch.mm(a, b), int(WARM_S / 1.6e-3))
    for model, phase, tokens, sequence in cases:
        if time.perf_counter() - begin > budget_s:
            return
        row = {"kind": "step", "model": model, "phase": phase, "tokens": tokens, "sequence": sequence, "layers": LAYERS,
               "ranks": 1, "mode": "graph"}
        try:
            run = graph_of(body_of(model, phase, tokens, sequence)).replay
            yield from rows_of(row, run, counters)
        except Exception as error:  # too little memory, say: the others go on
            yield row | {"refused": refusal(error)}
        run = None
        torch.cuda.empty_cache()
