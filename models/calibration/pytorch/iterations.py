"""Operator lists of the iterations that fsdp.py runs: kernels of traces/h200_2/pytorch/fsdp.fsdp_implicit.json.gz, by their sizes."""
from .blocks import Steps, flash_attention, rotation
from .sizes import Sizes

CASTS_PER_S = 1.9e12  # bytes read and written by its copies that cast, fsdp.fsdp_none.json.gz: 654 MB in 350 and in 331 us
BACKWARD = 2.53  # of flash attention, times the forward: 2.80 and 1.11 ms in that trace


class Iteration:
    """Forward and backward of `row`'s layers. Each operator of the computation needs the one before it; gathers, reduce-scatters and
    the copies around them need what FSDP2 lets them wait for. The casts of shards are on streams of FSDP2's own."""

    def __init__(self, row):
        self.row, self.sizes, self.steps = row, Sizes(row["model"], 1), Steps()
        self.tokens = row["sequences"] * row["tokens"]
        sizes = self.sizes
        self.heads_out = (sizes.heads + 2 * sizes.kv_heads) * sizes.head
        self.weights = sizes.hidden * (self.heads_out + sizes.heads * sizes.head + 3 * sizes.inner) + 2 * sizes.hidden
        self.last = None       # operator of the computation
        self.copied_out = None  # the last copy out of a gather

    def beside(self, add, *needs):
        """Adds an operator that only needs `needs`; returns its name."""
        add()
        self.steps.operators[-1]["needs"] = [need for need in needs if need]
        return self.steps.operators[-1]["name"]

    def compute(self, prefix, build):
        """Operators of the computation, in turn."""
        steps = Steps()
        build(steps)
        for one in steps.operators:
            one["name"] = prefix + one["name"]
            one["needs"] = [self.last] if self.last else []
            self.steps.operators.append(one)
            self.last = one["name"]

    def cast(self, name, read, written):
        self.steps.add(name, "memory_bound", read_bytes=read, write_bytes=written,
                       time_us=round((read + written) / CASTS_PER_S * 1e6, 2), stream="local")

    def gather(self, name):
        """Casts and copies the shard, gathers it."""
        mine = self.weights / self.row["ranks"]
        copied = self.beside(lambda: self.cast(name + "_copy_in", 4 * mine, 2 * mine), self.copied_out)
        return self.beside(lambda: self.steps.collective(name + "_gather", "all_gather", self.weights), copied)

    def copy_out(self, name, gathered):
        self.last = self.copied_out = self.beside(lambda: self.steps.stream(name + "_copy_out", self.weights, self.weights),
                                                  gathered, self.last)

    def reduce(self, name):
        mine, bytes_each = self.weights / self.row["ranks"], 4 if self.row["reduced"] == "float32" else 2
        copied = self.beside(lambda: self.steps.add(name + "_copy_grads", "memory_bound", read_bytes=2 * self.weights,
                                                    write_bytes=bytes_each * self.weights), self.last)
        summed = self.beside(lambda: self.steps.add(name + "_reduce", "collective", collective="reduce_scatter",
                                                    bytes=bytes_each * self.weights, dtype="bf16"), copied)
        self.beside(lambda: self.cast(name + "_cast_grads", bytes_each * mine, 4 * mine), summed)

    def forward(self, steps):
        sizes, tokens, hidden = self.sizes, self.tokens, self.tokens * self.sizes.hidden
        inner = tokens * sizes.inner
        steps.norm("norm", hidden)
        steps.gemm("qkv", tokens, self.heads_out, sizes.hidden)
        for name, heads in (("q", sizes.heads), ("k", sizes.kv_heads)):
            rotation(steps, name, tokens * heads * sizes.head)
        flash_attention(steps, self.row["tokens"], sizes, self.row["sequences"])
        steps.gemm("out", tokens, sizes.hidden, sizes.heads * sizes.head)
        steps.stream("add", 2 * hidden, hidden)
        steps.norm("mlp_norm", hidden)
        steps.gemm("gate_up", tokens, 2 * sizes.inner, sizes.hidden)
        steps.strided("silu", inner, inner)
        steps.strided("product", 2 * inner, inner)
        steps.gemm("down", tokens, sizes.hidden, sizes.inner)
        steps.stream("mlp_add", 2 * hidden, hidden)

    def gradients(self, steps, name, n, k):
        """Of x·W, W [k, n]: of x and of W."""
        steps.gemm(name + "_dgrad", self.tokens, k, n)
        steps.gemm(name + "_wgrad", n, k, self.tokens)

    def norm_gradient(self, steps, name, hidden):
        steps.stream(name + "_input", 2 * hidden, hidden)
        steps.stream(name + "_weights", 2 * hidden, 0)
        steps.stream(name + "_add", 2 * hidden, hidden)

    def backward(self, steps):
        sizes, tokens, hidden = self.sizes, self.tokens, self.tokens * self.sizes.hidden
        inner, q = tokens * sizes.inner, tokens * sizes.heads * sizes.head
        self.gradients(steps, "down", sizes.hidden, sizes.inner)
        for name in ("product_first", "product_second", "silu"):
            steps.strided(name + "_grad", 2 * inner, inner)
        steps.stream("halves", 2 * inner, 2 * inner)
        self.gradients(steps, "gate_up", 2 * sizes.inner, sizes.hidden)
        self.norm_gradient(steps, "mlp_norm", hidden)
        self.gradients(steps, "out", sizes.hidden, sizes.heads * sizes.head)
        steps.strided("attention_layout", q, q)
        flash_attention(steps, self.row["tokens"], sizes, self.row["sequences"])
        flash = steps.operators[-1]
        flash |= {"time_us": round(BACKWARD * flash["time_us"], 2), "flops": 2.5 * flash["flops"]}
        steps.stream("attention_sums", 2 * q, 2)
        steps.stream("attention_convert", 2 * q, q)
        for name, heads in (("q", sizes.heads), ("k", sizes.kv_heads)):
            rotation(steps, name, tokens * heads * sizes.head)
        elements = tokens * self.heads_out
        steps.timed("parts", elements, elements, elements / 235e9)
        self.gradients(steps, "qkv", self.heads_out, sizes.hidden)
        self.norm_gradient(steps, "norm", hidden)

    def workload(self):
        row = self.row
        gathered = self.gather("forward_0")
        for layer in range(row["layers"]):
            name = f"forward_{layer}"
            self.copy_out(name, gathered)
            if layer + 1 < row["layers"]:
                gathered = self.gather(f"forward_{layer + 1}")
            self.compute(name + "_", self.forward)
        self.copied_out = self.last
        gathered = self.gather(f"backward_{row['layers'] - 1}")
        for layer in reversed(range(row["layers"])):
            name = f"backward_{layer}"
            self.copy_out(name, gathered)
            if layer > 0:
                gathered = self.gather(f"backward_{layer - 1}")
            self.compute(name + "_", self.backward)
            self.reduce(name)
        return {"schema": 1, "name": f"{row['model']}_fsdp_{row['layers']}x{row['sequences']}x{row['tokens']}",
                "description": "an iteration of fsdp.py",
                "operators": self.steps.operators}


def workload_of(row):
    """The workload of a row of kind "fsdp"."""
    return Iteration(row).workload()
