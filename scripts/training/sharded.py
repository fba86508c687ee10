"""Fully sharded data parallel training (ZeRO-3, FSDP): layers whose weights are gathered before they are used, as
operators, and the experiments of arXiv 2507.03114 and of DeepSpeed's all-gathers by DMA engines about it.

GEMMs of a layer: those of its projections, and in the whole step those of attention. What streams memory in the step is
taken as a kernel for each operation of public PyTorch code (huggingface/transformers modeling_qwen3.py, eager
attention: scale, mask, softmax in fp32 and back, rotary embedding, repeated keys and values; a kernel for each norm).
"""
from training.operators import OperatorList

ELEMENT, SINGLE, GPUS = 2, 4, 8  # bytes of bf16 and fp32
# arXiv 2005.14165 table 2.1, arXiv 2307.09288; sequence lengths are those that they were trained with.
LAYERS = {"gpt3_2_7b": {"hidden": 2560, "ffn": 10240, "gated": False, "tokens": 2048},
          "gpt3_6_7b": {"hidden": 4096, "ffn": 16384, "gated": False, "tokens": 2048},
          "llama2_7b": {"hidden": 4096, "ffn": 11008, "gated": True, "tokens": 4096},
          "llama2_13b": {"hidden": 5120, "ffn": 13824, "gated": True, "tokens": 4096}}
# Qwen/Qwen3-32B config.json; GPT-3 6.7B, whose feed-forward layer is not gated.
STEPS = {"qwen3_32b": {"hidden": 5120, "heads": 64, "kv_heads": 8, "depth": 128, "ffn": 25600, "gated": True,
                       "tokens": 1024},
         "gpt3_6_7b": {"hidden": 4096, "heads": 32, "kv_heads": 32, "depth": 128, "ffn": 16384, "gated": False,
                       "tokens": 2048}}
LAYERS_OF_A_STEP = 2


def beside(hidden, ffn, gated, tokens):
    """The forward GEMMs of a layer, beside the all-gather of the next layer's weights."""
    up = 2 * ffn if gated else ffn
    weights = [(3 * hidden, hidden), (hidden, hidden), (up, hidden), (hidden, ffn)]
    listed = OperatorList()
    listed.collective("gather", "all_gather", ELEMENT * sum(n * k for n, k in weights), "bf16")
    before = []
    for name, (n, k) in zip(("qkv", "attention_out", "up", "down"), weights):
        listed.gemm(name, tokens, n, k, "bf16", needs=before)
        before = [name]
    return listed.operators


def step(hidden, heads, kv_heads, depth, ffn, gated, tokens):
    """Forward, backward and AdamW of some layers. Weights of a projection are gathered while the one before it
    multiplies, gradients reduced as they are made."""
    listed, last, reduced, weights = OperatorList(), [], [], []
    used = []  # projections in the order in which they multiply: name of the operator after which the next is free
    width = {"q": (heads * depth, hidden), "k": (kv_heads * depth, hidden), "v": (kv_heads * depth, hidden),
             "attention_out": (hidden, heads * depth), **({"gate": (ffn, hidden)} if gated else {}),
             "up": (ffn, hidden), "down": (hidden, ffn)}

    def then(kind, name, *sizes, also=()):
        getattr(listed, kind)(name, *sizes, needs=[*last, *also])
        last[:] = [name]

    def stream(name, read, written):
        then("stream", name, ELEMENT * read, ELEMENT * written)

    def gather(name, part):
        n, k = width[part]
        listed.collective(name + "_gather", "all_gather", ELEMENT * n * k, "bf16", used[-2:-1])

    def project(layer, part):
        n, k = width[part]
        name = f"{layer}_{part}"
        gather(name, part)
        then("gemm", name, tokens, n, k, "bf16", also=[name + "_gather"])
        used.append(name)

    def project_back(layer, part):
        n, k = width[part]
        name = f"{layer}_{part}"
        gather(name + "_grad", part)
        then("gemm", name + "_dgrad", tokens, k, n, "bf16", also=[name + "_grad_gather"])
        then("gemm", name + "_wgrad", n, k, tokens, "bf16")
        used.append(name + "_wgrad")
        listed.collective(name + "_reduce", "reduce_scatter", ELEMENT * n * k, "bf16", [name + "_wgrad"])
        reduced.append(name + "_reduce")
        weights.append(n * k)

    own, queries, scores = tokens * hidden, tokens * heads * depth, heads * tokens * tokens

    def batched(name, m, n, k):
        then("gemm", name, m, n, k, "bf16", heads)

    for layer in (f"layer{number}" for number in range(LAYERS_OF_A_STEP)):
        stream(layer + "_norm", own, own)
        for part in ("q", "k", "v"):
            project(layer, part)
        stream(layer + "_rotary", 2 * queries, 2 * queries)
        batched(layer + "_scores", tokens, tokens, depth)
        for kernel, read, written in (("scale", 1, 1), ("mask", 1, 1), ("softmax", 1, 2), ("cast", 2, 1)):
            stream(f"{layer}_{kernel}", read * scores, written * scores)
        batched(layer + "_context", tokens, depth, tokens)
        project(layer, "attention_out")
        stream(layer + "_add", 2 * own, own)
        stream(layer + "_norm2", own, own)
        for part in ("gate", "up") if gated else ("up",):
            project(layer, part)
        stream(layer + "_activation", (2 if gated else 1) * tokens * ffn, tokens * ffn)
        project(layer, "down")
        stream(layer + "_add2", 2 * own, own)
    for layer in (f"layer{number}" for number in reversed(range(LAYERS_OF_A_STEP))):
        project_back(layer, "down")
        stream(layer + "_activation_grad", (3 if gated else 2) * tokens * ffn, (2 if gated else 1) * tokens * ffn)
        for part in ("up", "gate") if gated else ("up",):
            project_back(layer, part)
        stream(layer + "_norm2_grad", 2 * own, own)
        stream(layer + "_add_grad", 2 * own, own)
        project_back(layer, "attention_out")
        batched(layer + "_context_scores_grad", tokens, tokens, depth)
        batched(layer + "_context_v_grad", tokens, depth, tokens)
        for kernel, read, written in (("cast", 1, 2), ("softmax", 4, 2), ("scale", 2, 1)):
            stream(f"{layer}_{kernel}_grad", read * scores, written * scores)
        batched(layer + "_scores_q_grad", tokens, depth, tokens)
        batched(layer + "_scores_k_grad", tokens, depth, tokens)
        stream(layer + "_rotary_grad", 2 * queries, 2 * queries)
        for part in ("v", "k", "q"):
            project_back(layer, part)
        stream(layer + "_norm_grad", 2 * own, own)
        stream(layer + "_add2_grad", 2 * own, own)
    # AdamW of a rank's part: gradient, weight and two moments read, three of them and the weight in bf16 written.
    part = sum(weights) // GPUS
    then("stream", "adamw", (3 * SINGLE + ELEMENT) * part, (3 * SINGLE + ELEMENT) * part, also=reduced)
    return listed.operators


def workloads():
    """name -> workload file."""
    return {f"zero3_{name}": {
        "schema": 1, "name": f"zero3_{name}",
        "description": f"{LAYERS_OF_A_STEP} layers of {name} in training by ZeRO-3 on 8 GPUs, a sequence of "
                       f"{sizes['tokens']} tokens each: weights of a projection gathered while the one before "
                       "multiplies, gradients reduced. Written by scripts/training_workloads.",
        "source": "Qwen/Qwen3-32B config.json; arXiv 2005.14165 table 2.1 (GPT-3 6.7B); deepspeedai/DeepSpeed "
                  "examples/sdma_allgather/README.md (sequence lengths); operators derived: scripts/training/sharded.py",
        "order": "program", "operators": step(**sizes)} for name, sizes in STEPS.items()}


def experiments():
    """system/name -> experiment file."""
    points = [{"workload": {"name": name, "operators": beside(**sizes)}} for name, sizes in LAYERS.items()]
    slower = "100 * (beside.makespan_us / beside.gemm_us - 1)"
    return {
        "characterization/fsdp": {
            "schema": 2, "name": "fsdp",
            "description": "Forward GEMMs of a layer of GPT-3 2.7B and 6.7B and of Llama 2 7B and 13B, one sequence a "
                           "GPU, beside the all-gather of the next layer's weights (FSDP), on 4 H100 by library and on "
                           "4 MI210 by copy kernels. From the source: GPUs, kinds of models, that both are of data "
                           "parallel training. Ours: sizes and sequences; only forward, whose ratio of communication to "
                           "computation is that of backward. Slower: the makespan over the GEMMs alone. Written by "
                           "scripts/training_workloads.",
            "source": "arXiv 2507.03114 (4 A100, H100, MI210, MI250; GPT and LLaMA: overlapped computation 18.9 % slower "
                      "on average, 40.0 % at most; one after the other 10.2 % slower than overlapped, 26.6 % at most)",
            "scenarios": {
                "base": {"schedule": "concurrent", "topology": "h100_8.json", "what_if": {"topology.gpus_per_node": 4}},
                "axes": {"workload": [point["workload"] for point in points]},
                "zipped": [{"topology": ["h100_8.json", "mi210_4.json"],
                            "params.algorithm": ["library", "direct"], "params.agent": ["dma", "cu"]}]},
            "variants": {"beside": {}, "after": {"schedule": "serial"}},
            "cases": [
                {"name": "computation beside an all-gather: slower by, mean", "kind": "independent",
                 "value": slower, "over": "mean",
                 "published": 18.9, "unit": "%", "tolerance": {"absolute": 3.5}, "status": "enforced"},
                {"name": "layers whose computation is slower beside an all-gather, by at most 40 % as published",
                 "kind": "qualitative", "value": f"{slower} > 0 && {slower} <= 40", "over": "count",
                 "published": 8, "unit": "of 8", "tolerance": {"absolute": 0.5}, "status": "known_gap",
                 "reason": "GPT-3 2.7B on H100 is 46 % slower: its GEMMs of 2048 rows have few rounds of tiles, and beside 24 SMs "
                           "of NCCL they need one more; the source's batches are larger"},
                {"name": "all-gather first: slower than overlapped by, mean", "kind": "independent",
                 "value": "100 * (after.makespan_us / beside.makespan_us - 1)", "over": "mean",
                 "published": 10.2, "unit": "%", "tolerance": {"absolute": 2}, "status": "known_gap",
                 "reason": "the source's batches, which are larger: with 18.9 % slower computation its communication is "
                           "31 % of computation (1.102 * 1.189 - 1), here 47 %"}]},
        "deepspeed/zero3": {
            "schema": 2, "name": "zero3",
            "description": "Training by ZeRO-3 on 8 MI300X, layers of Qwen3-32B (a sequence of 1024 tokens a GPU) and of "
                           "GPT-3 6.7B (2048; the source's model of about 7 billion is not public), with collectives by "
                           "RCCL and by DMA engines. Ours: weights are gathered one projection ahead (the source's "
                           "prefetch of 5e7 elements is of that order), each by itself; embedding and head are left "
                           "out. Gradients go the way of the weights here, where the source leaves them to RCCL. "
                           "Written by scripts/training_workloads.",
            "source": "deepspeedai/DeepSpeed examples/sdma_allgather/README.md (8x MI300X: 697.7 -> 622.0 ms a step, 7B; "
                      "1402.5 -> 1263.2 ms, Qwen3-32B)",
            "scenarios": {"base": {"topology": "mi300x_8.json", "schedule": "concurrent"},
                          "axes": {"workload": [f"zero3_{name}" for name in STEPS]}},
            "variants": {"rccl": {"params.algorithm": "library"}, "dma": {}},
            "cases": [
                {"name": f"{title}: less time a step by", "kind": "independent", "where": f"workload == \"zero3_{name}\"",
                 "value": "100 * (1 - dma.makespan_us / rccl.makespan_us)", "published": published, "unit": "%",
                 "tolerance": {"absolute": 2},
                 **({"status": "known_gap", "reason": reason} if reason else {"status": "enforced"})}
                for name, title, published, reason in (
                    ("gpt3_6_7b", "GPT of 7 billion", 10.85, ""),
                    ("qwen3_32b", "Qwen3-32B", 9.93,
                     "the source's steps take 1.3 and 2 times as long as their kernels and copies here: a host that launches "
                     "kernels more slowly than they run, embedding, head and loss"))]}}
