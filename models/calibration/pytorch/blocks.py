"""Operator lists (configs/schema/workload.schema.json) of the blocks that layers.py runs, kernel by kernel."""
import math

from .sizes import Sizes

# Decided on single calls, kernel by kernel: traces/h200_2/pytorch/layers.jsonl (H200) and, of traces/h100_2/drawn (H100), qwen3_8b of
# 2560 tokens, qwen3_32b of 256, qwen2_72b of 3072 and mistral_7b of 5120. PyTorch's element-wise kernel for operands that are not
# contiguous takes as long for each element, whatever it does with it; so does the one that concatenates. Flash attention (version
# 2): time of a block of 128 queries and 64 keys on a unit of 132, and how many blocks' time the longest tile adds at the end, within
# 10 % of single calls. Of few tokens it is two kernels of 8.5 us.
STRIDED_PER_S, CONCATENATED_PER_S, STRIDED_START_S = 350e9, 230e9, 0.8e-6
BLOCK_US, TAIL, UNITS, LEAST_US = 1.71, 0.83, 132, 17
# The norm's kernel takes 6 to 7 us of up to 4M elements; a graph's launch and the usual gap are 0.7 us more than the gap measured.
NORM_SMALL, NORM_S = 2**22, 5.7e-6
# Energy of its FLOP over that of a GEMM's. An estimate, no measured power: chosen by hand so that Llama 3 8B's compiled layer
# settles near its measured clock (1710 MHz).
FLASH_ENERGY = 2


class Steps:
    """A list under construction: each operator needs the one before it."""

    def __init__(self):
        self.operators = []

    def add(self, name, kind, **values):
        needs = [self.operators[-1]["name"]] if self.operators else []
        self.operators.append({"name": name, "type": kind, **values, "needs": needs})

    def stream(self, name, read, written):
        """A kernel that streams bf16 elements."""
        self.add(name, "memory_bound", read_bytes=2 * read, write_bytes=2 * written)

    def timed(self, name, read, written, seconds, flops=0):
        more = {"flops": flops, "dtype": "bf16"} if flops else {}
        self.add(name, "memory_bound", read_bytes=2 * read, write_bytes=2 * written, time_us=round(seconds * 1e6, 2), **more)

    def strided(self, name, read, written):
        self.timed(name, read, written, STRIDED_START_S + written / STRIDED_PER_S)

    def norm(self, name, elements):
        """Reads a row for its sums and again to scale it."""
        if elements <= NORM_SMALL:
            self.timed(name, elements, elements, NORM_S)
        else:
            self.stream(name, 2 * elements, elements)

    def gemm(self, name, m, n, k):
        self.add(name, "gemm", m=m, n=n, k=k, dtype="bf16")

    def collective(self, name, kind, elements):
        self.add(name, "collective", collective=kind, bytes=2 * elements, dtype="bf16")


def flash_attention(steps, tokens, sizes, sequences=1):
    """Causal attention of `sequences` of `tokens` each by PyTorch's flash attention."""
    tiles = math.ceil(tokens / 128)
    blocks = sequences * sizes.heads * tiles * (tiles + 1)
    seconds = 1e-6 * max(LEAST_US, BLOCK_US * (blocks / UNITS + TAIL * 2 * tiles))
    q = sequences * tokens * sizes.heads * sizes.head
    kv = sequences * tokens * sizes.kv_heads * sizes.head
    steps.timed("attention", q + 2 * kv, q, seconds, flops=FLASH_ENERGY * 2 * sequences * tokens * tokens * sizes.heads * sizes.head)


def rotation(steps, name, elements):
    """x·cos + cat(−second half, first half)·sin, eager."""
    steps.strided(name + "_cosine", elements, elements)
    steps.strided(name + "_negative", elements / 2, elements / 2)
    steps.timed(name + "_turned", elements, elements, STRIDED_START_S + elements / CONCATENATED_PER_S)
    steps.strided(name + "_sine", elements, elements)
    steps.strided(name + "_sum", 2 * elements, elements)


class Links:
    """What is before the first GEMM of a pair and behind the last one's."""

    def __init__(self, name, tokens, hidden, ranks):
        self.sums = name == "all_reduce"
        self.whole, self.mine = tokens * hidden, tokens * hidden // (1 if self.sums else ranks)

    def gather(self, steps, name):
        if not self.sums:
            steps.collective(name, "all_gather", self.whole)

    def scatter(self, steps, name):
        if self.sums:  # the functional all-reduce leaves its operand as it is
            steps.stream(name + "_copy", self.whole, self.whole)
        steps.collective(name, "all_reduce" if self.sums else "reduce_scatter", self.whole)


def mlp(steps, sizes, tokens, links, compiled):
    steps.norm("mlp_norm", links.mine)
    links.gather(steps, "mlp_gather")
    steps.gemm("gate_up", tokens, 2 * sizes.inner, sizes.hidden)
    inner = tokens * sizes.inner
    if compiled:
        steps.stream("activation", 2 * inner, inner)
    else:
        steps.strided("silu", inner, inner)
        steps.strided("product", 2 * inner, inner)
    steps.gemm("down", tokens, sizes.hidden, sizes.inner)
    links.scatter(steps, "mlp_reduce")
    steps.stream("residual", 2 * links.mine, links.mine)


def layer(steps, sizes, tokens, links, compiled):
    q, k = (tokens * heads * sizes.head for heads in (sizes.heads, sizes.kv_heads))
    steps.norm("attention_norm", links.mine)
    links.gather(steps, "attention_gather")
    steps.gemm("qkv", tokens, (sizes.heads + 2 * sizes.kv_heads) * sizes.head, sizes.hidden)
    if compiled:
        steps.stream("rotary", q + k, q + k)
    else:
        rotation(steps, "q", q)
        rotation(steps, "k", k)
    flash_attention(steps, tokens, sizes)
    steps.gemm("attention_out", tokens, sizes.hidden, sizes.heads * sizes.head)
    links.scatter(steps, "attention_reduce")
    if not compiled:  # else it is part of the next norm
        steps.stream("attention_residual", 2 * links.mine, links.mine)
    mlp(steps, sizes, tokens, links, compiled)


def workload_of(row):
    """The workload of a row of kind "block"."""
    sizes, steps = Sizes(row["model"], row["ranks"]), Steps()
    links = Links(row["links"], row["tokens"], sizes.hidden, row["ranks"])
    {"mlp": mlp, "layer": layer}[row["block"]](steps, sizes, row["tokens"], links, row["mode"].startswith("compiled"))
    return {"schema": 1, "name": f"{row['model']}_{row['block']}_{row['tokens']}", "description": "a block of layers.py",
            "operators": steps.operators}
