"""Cases drawn by a seed, for checks that no decision has seen: shapes of operators, blocks, iterations and token generation."""
import json
import random

from .sizes import MODELS

DENSE = ("llama2_7b", "llama2_70b", "llama3_8b", "llama3_70b", "mistral_7b", "qwen2_7b", "qwen2_72b", "qwen3_8b", "qwen3_32b")
TOKENS = (256, 768, 1536, 2560, 3072, 5120, 6144, 10240, 12288)  # layers.py and fsdp.py have others
LARGEST_FLOP = 4e12  # of a GEMM: some 6 ms


def operators(seed, count=10):
    """(m, n, k) of whole GEMMs, as operators.OTHER_SHAPES."""
    draw, shapes = random.Random(f"operators {seed}"), []

    def size(low, high):  # as many of each magnitude
        return 256 * round(2 ** draw.uniform(low, high) / 256)
    while len(shapes) < count:
        m, n, k = size(10, 16), size(11, 14), size(11, 14)
        if 2 * m * n * k <= LARGEST_FLOP:
            shapes.append((m, n, k))
    return shapes


def layers(seed, count=8):
    """(model, tokens), as layers.SIZES."""
    draw = random.Random(f"layers {seed}")
    return draw.sample([(model, tokens) for model in DENSE for tokens in TOKENS], count)


def iterations(seed, count=8):
    """(model, layers, sequences, tokens, dtype of sums, prefetch), as fsdp.CASES."""
    draw, drawn = random.Random(f"iterations {seed}"), []
    while len(drawn) < count:
        model, number, sequences, tokens = draw.choice(DENSE), draw.randint(2, 6), draw.randint(1, 2), draw.choice(TOKENS)
        hidden = json.loads((MODELS / (model + ".json")).read_text())["hidden_size"]
        if tokens < 1024 or sequences * tokens * number * hidden > 2.5e8:
            continue
        drawn.append((model, number, sequences, tokens, draw.choice(("bfloat16", "float32")), draw.choice(("implicit", "none"))))
    return drawn


def generation(seed, count=16):
    """(m, n, k) of one GPU's output and down projections, m tokens at once; each GEMM of a model has weights of its own."""
    draw, shapes = random.Random(f"generation {seed}"), []
    for _ in range(count):
        config = json.loads((MODELS / (draw.choice(DENSE) + ".json")).read_text())
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        whole = draw.choice((config["intermediate_size"], heads * (config.get("head_dim") or hidden // heads)))
        shapes.append((draw.choice((1, 2, 4, 8, 24, 48, 96, 192, 384, 512)), hidden, whole // draw.choice((2, 4))))
    return shapes


def steps(seed, count=24):
    """(model, phase, tokens, sequence), as steps.CASES: as many of each phase."""
    draw, drawn = random.Random(f"steps {seed}"), []
    while len(drawn) < count:
        phase = ("forward", "decode", "training")[len(drawn) % 3]
        if phase == "decode":
            model, tokens, sequence = draw.choice(DENSE), draw.choice((1, 4, 16, 48, 128)), draw.choice((1024, 3072, 6144, 12288))
            fits = tokens * sequence <= 2**19
        else:
            sequence = draw.choice((512, 1024, 1536, 3072, 6144, 12288))
            model, tokens = draw.choice(DENSE), sequence * draw.choice((1, 2, 4))
            fits = tokens <= 16384
        if fits:
            drawn.append((model, phase, tokens, sequence))
    return drawn


def rows(seed, ranks):
    """What all the parts measure in a steady state, in their order, without times."""
    of_all = {"ranks": ranks, "state": "steady"}
    for m, n, k in operators(seed):
        for pair, of_k in (("all_gather_gemm", k), ("gemm_reduce_scatter", k // ranks)):
            for library in ("nccl", "async_tp"):
                for mode in ("eager", "graph"):
                    yield {"kind": "operator", "operator": f"{pair}_{library}", "m": m, "n": n, "k": of_k, "mode": mode} | of_all
    for m, n, k in generation(seed):
        for links in ("nccl", "one_shot"):
            yield {"kind": "generation", "links": links, "m": m, "n": n, "k": k, "layers": 16, "mode": "graph"} | of_all
    for model, tokens in layers(seed):
        for links in ("nccl", "async_tp", "all_reduce"):
            for block in ("mlp", "layer"):
                yield {"kind": "block", "block": block, "model": model, "tokens": tokens, "links": links, "mode": "graph"} | of_all
    for model, number, sequences, tokens, reduced, how in iterations(seed):
        yield {"kind": "fsdp", "model": model, "layers": number, "sequences": sequences, "tokens": tokens, "reduced": reduced,
               "prefetch": how, "mode": "eager"} | of_all
