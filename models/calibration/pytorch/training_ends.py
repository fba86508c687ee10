"""Times of what is beside the layers' GEMMs in a training step, on one GPU: optimisers, losses over large vocabularies, embeddings,
and what makes fp8 operands.

    cd models/calibration && python3 -m pytorch.training_ends OUT.csv [PART ...]      parts: optimisers losses embeddings casts

Columns: what, how, rows, columns; `us`, mean time of a call, forward and backward where there are both, back to back for 400 ms, of
which the second half counts. Rows of an optimiser are parameters in millions (columns is 1), those of losses and embeddings tokens.
"""
import csv
import sys

import torch
import torch.nn.functional as F

MILLISECONDS = 400
PARAMETERS = (64, 256, 1024)  # millions
TOKENS = (2048, 8192, 16384)
VOCABULARIES = (32000, 128256, 201088)
HIDDEN = (4096, 8192)


def mean_us(call):
    call(), call()
    torch.cuda.synchronize()

    def loop_ms(times):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(times):
            call()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / times

    half = max(2, int(MILLISECONDS / 2 / loop_ms(2)))
    loop_ms(half)
    return 1000 * loop_ms(half)


def optimisers():
    """torch's fused AdamW; states have the type of the parameters."""
    for millions in PARAMETERS:
        for dtype in (torch.float32, torch.bfloat16):
            weights = [torch.nn.Parameter(torch.randn(millions << 16, device="cuda", dtype=dtype)) for _ in range(16)]
            for weight in weights:
                weight.grad = torch.randn_like(weight)
            optimiser = torch.optim.AdamW(weights, fused=True)
            yield "adam", str(dtype).split(".")[1], millions, 1, mean_us(optimiser.step)


def losses():
    """Of bf16 logits: as they are, in fp32 as transformers and Megatron have them, and that compiled by torch.compile."""
    def in_fp32(logits, targets):
        return F.cross_entropy(logits.float(), targets)

    for vocabulary in VOCABULARIES:
        for tokens in TOKENS:
            torch.compiler.reset()  # a function is compiled for eight shapes at most
            compiled = torch.compile(in_fp32, dynamic=False)
            logits = torch.randn(tokens, vocabulary, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            targets = torch.randint(vocabulary, (tokens,), device="cuda")
            for how, loss in (("bf16", F.cross_entropy), ("float32", in_fp32), ("compiled", compiled)):
                def call():
                    logits.grad = None
                    loss(logits, targets).backward()
                yield "loss", how, tokens, vocabulary, mean_us(call)


def embeddings():
    """With the dense gradient of the table, rows are hidden sizes wide; how is the vocabulary."""
    for vocabulary in VOCABULARIES:
        for hidden in HIDDEN:
            table = torch.randn(vocabulary, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            for tokens in TOKENS:
                ids = torch.randint(vocabulary, (tokens,), device="cuda")
                slope = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)

                def call():
                    table.grad = None
                    F.embedding(ids, table).backward(slope)
                yield "embedding", str(vocabulary), tokens, hidden, mean_us(call)


def casts():
    """From bf16 to fp8, compiled by torch.compile: with a scale that is there (delayed scaling), with its transpose, with one scale for
    128 numbers of a row (blockwise); and the largest magnitude alone, which a current scale of a tensor needs before its cast."""
    narrow = torch.float8_e4m3fn

    def cast(x, scale):
        return (x.float() * scale).clamp(-448, 448).to(narrow)

    def cast_transpose(x, scale):
        made = cast(x, scale)
        return made, made.t().contiguous()

    def blockwise(x, _):
        blocks = x.float().view(x.shape[0], -1, 128)
        scale = 448 / blocks.abs().amax(2, keepdim=True)
        return (blocks * scale).to(narrow).view(x.shape), scale

    def amax(x, _):
        return x.abs().amax()

    for columns in (4096, 8192, 28672):
        for tokens in TOKENS:
            x = torch.randn(tokens, columns, device="cuda", dtype=torch.bfloat16)
            scale = torch.ones((), device="cuda")
            for call in (cast, cast_transpose, blockwise, amax):
                torch.compiler.reset()
                compiled = torch.compile(call, dynamic=False)
                yield "cast", call.__name__, tokens, columns, mean_us(lambda: compiled(x, scale))


PARTS = {part.__name__: part for part in (optimisers, losses, embeddings, casts)}


def main():
    with open(sys.argv[1], "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("what", "how", "rows", "columns", "us"))
        for part in sys.argv[2:] or PARTS:
            for *row, us in PARTS[part]():
                table.writerow((*row, f"{us:.2f}"))
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
