"""BERT: a training iteration as operators, and the experiment that takes it apart.

One encoder layer, forward and backward, and the LAMB update of its weights: all layers are alike, so shares of an
iteration are those of a layer (embedding, heads and loss left out). Every kernel that does not multiply streams so
many reads and writes of a tensor. Kernels are those that PyTorch launches for public code as it is written: a kernel
for each operation of GeLU and layer norm (huggingface/pytorch-pretrained-BERT modeling.py: gelu, BertLayerNorm), of
their derivatives (pytorch/pytorch tools/autograd/derivatives.yaml) and of LAMB (cybertronai/pytorch-lamb lamb.py); one
for softmax, dropout (which keeps a mask of one byte an element) and what is a single operation. A bias goes with its
GEMM forward and is a reduction of its own backward. Sizes: arXiv 1810.04805 (BERT).
"""
from training.operators import OperatorList

SOURCE = "arXiv 1810.04805 (BERT): layers, hidden size, heads; operators derived: scripts/training_workloads"
MODELS = {"base": {"hidden": 768, "heads": 12}, "large": {"hidden": 1024, "heads": 16}}
LINEAR, ATTENTION, STREAMED = "linear", "attention", "streamed"

# (kernel, reads, writes), in passes over the tensor.
# x * 0.5 * (1 + erf(x / sqrt(2)))
GELU = (("div", 1, 1), ("erf", 1, 1), ("add", 1, 1), ("half", 1, 1), ("mul", 2, 1))
# Of the product both ways; * 0.5; erf: 2 / sqrt(pi) * exp(-(x^2)) * grad; / sqrt(2); sum of both ways to x.
GELU_GRAD = (("mul_left", 2, 1), ("mul_right", 2, 1), ("half", 1, 1), ("erf_pow", 1, 1), ("erf_neg", 1, 1),
             ("erf_exp", 1, 1), ("erf_scale", 1, 1), ("erf_mul", 2, 1), ("div", 1, 1), ("sum", 2, 1))
# u = mean(x); s = mean((x - u)^2); weight * ((x - u) / sqrt(s + eps)) + bias; what is a number a row is left out
NORM = (("mean", 1, 0), ("sub", 1, 1), ("pow", 1, 1), ("variance", 1, 0), ("center", 1, 1), ("div", 1, 1),
        ("weight", 1, 1), ("bias", 1, 1))
# bias; weight; normalised; / of numerator and denominator, -grad * ((a / b) / b); pow, grad * 2a; both x - u, each with
# a negated sum for u; their sum
NORM_GRAD = (("bias", 1, 0), ("weight_mul", 2, 1), ("weight_sum", 1, 0), ("scale", 1, 1), ("div", 1, 1),
             ("div_once", 1, 1), ("div_twice", 1, 1), ("div_neg", 1, 1), ("div_mul", 2, 1), ("div_sum", 1, 0),
             ("pow_twice", 1, 1), ("pow_mul", 1, 1), ("center_neg", 1, 1), ("center_sum", 1, 0), ("sub_neg", 1, 1),
             ("sub_sum", 1, 0), ("sum_center", 2, 1), ("sum_sub", 2, 1), ("sum_mean", 2, 1))
# m.mul_().add_(g); v.mul_().addcmul_(g, g); norm of w; step = m / v.sqrt().add(eps); step.add_(w); its norm; w.add_(step)
LAMB = (("m_decay", 1, 1), ("m_add", 2, 1), ("v_decay", 1, 1), ("v_add", 2, 1), ("weight_pow", 1, 1),
        ("weight_norm", 1, 0), ("sqrt", 1, 1), ("eps", 1, 1), ("step", 2, 1), ("decay", 2, 1), ("step_pow", 1, 1),
        ("step_norm", 1, 0), ("update", 2, 1))


def operators(hidden, heads, batch, tokens, mixed):
    """(class, operator) in order; each needs the one before."""
    rows, depth, groups = batch * tokens, hidden // heads, batch * heads
    element, dtype = (2, "fp16") if mixed else (4, "fp32")
    activation, scores = rows * hidden, groups * tokens * tokens
    listed = OperatorList()
    kinds = []

    def gemm(kind, name, m, n, k, batch=1):
        kinds.append(kind)
        listed.gemm(name, m, n, k, dtype, batch)

    def stream(name, size, read, written, masks_read=0, masks_written=0):
        kinds.append(STREAMED)
        listed.stream(name, size * (read * element + masks_read), size * (written * element + masks_written))

    def chain(name, size, kernels):
        for kernel, read, written in kernels:
            stream(f"{name}_{kernel}", size, read, written)

    def linear(name, inputs, outputs):
        gemm(LINEAR, name, rows, outputs, inputs)

    def linear_back(name, inputs, outputs):
        gemm(LINEAR, name + "_dgrad", rows, inputs, outputs)
        gemm(LINEAR, name + "_wgrad", inputs, outputs, rows)
        stream(name + "_bias_grad", rows * outputs, 1, 0)

    def output_back(name):
        chain(name + "_norm_grad", activation, NORM_GRAD)
        stream(name + "_dropout_grad", activation, 1, 1, masks_read=1)

    def output(name):
        stream(name + "_dropout", activation, 1, 1, masks_written=1)
        stream(name + "_residual", activation, 2, 1)
        chain(name + "_norm", activation, NORM)

    for part in "qkv":
        linear(part, hidden, hidden)
    gemm(ATTENTION, "scores", tokens, tokens, depth, groups)
    stream("scale", scores, 1, 1)
    stream("mask", scores, 1, 1)
    stream("softmax", scores, 1, 1)
    stream("scores_dropout", scores, 1, 1, masks_written=1)
    gemm(ATTENTION, "context", tokens, depth, tokens, groups)
    stream("merge_heads", activation, 1, 1)
    linear("attention_out", hidden, hidden)
    output("attention_out")
    linear("fc1", hidden, 4 * hidden)
    chain("gelu", 4 * activation, GELU)
    linear("fc2", 4 * hidden, hidden)
    output("fc2")

    output_back("fc2")
    linear_back("fc2", 4 * hidden, hidden)
    chain("gelu_grad", 4 * activation, GELU_GRAD)
    linear_back("fc1", hidden, 4 * hidden)
    stream("fc1_residual_grad", activation, 2, 1)
    output_back("attention_out")
    linear_back("attention_out", hidden, hidden)
    stream("split_heads", activation, 1, 1)
    gemm(ATTENTION, "context_scores_grad", tokens, tokens, depth, groups)
    gemm(ATTENTION, "context_v_grad", tokens, depth, tokens, groups)
    stream("scores_dropout_grad", scores, 1, 1, masks_read=1)
    stream("softmax_grad", scores, 2, 1)
    stream("scale_grad", scores, 1, 1)
    gemm(ATTENTION, "scores_q_grad", tokens, depth, tokens, groups)
    gemm(ATTENTION, "scores_k_grad", tokens, depth, tokens, groups)
    for part in "qkv":
        linear_back(part, hidden, hidden)
        stream(part + "_residual_grad", activation, 2, 1)

    # LAMB is done in fp32: in mixed precision gradients are brought to it, and weights back to fp16.
    weights, element = 12 * hidden * hidden + 13 * hidden, 4
    if mixed:
        kinds.append(STREAMED)
        listed.stream("lamb_gradient", 2 * weights, 4 * weights)
    chain("lamb", weights, LAMB)
    if mixed:
        kinds.append(STREAMED)
        listed.stream("lamb_weights", 4 * weights, 2 * weights)
    return list(zip(kinds, listed.operators))


def only(listed, kinds):
    """The operators of these classes, one after the other."""
    kept = [dict(op) for kind, op in listed if kind in kinds]
    for before, op in zip([None, *kept], kept):
        op["needs"] = [before["name"]] if before else []
    return kept


def made():
    """name -> (listed, workload file)."""
    files = {}
    for model, batch, tokens, mixed in (("large", 32, 128, False), ("large", 32, 128, True), ("large", 4, 128, False),
                                        ("large", 4, 512, False), ("base", 32, 128, False)):
        sizes = MODELS[model]
        name = f"bert_{model}_b{batch}_n{tokens}_{'mixed' if mixed else 'fp32'}"
        listed = operators(**sizes, batch=batch, tokens=tokens, mixed=mixed)
        files[name] = (listed, {
            "schema": 1, "name": name,
            "description": f"A layer of BERT-{model.title()} in training, {batch} sequences of {tokens} tokens, "
                           f"{'mixed precision' if mixed else 'fp32'}: forward, backward, LAMB. Written by "
                           "scripts/training_workloads.",
            "source": SOURCE, "order": "program", "operators": [op for _, op in listed]})
    return files


def workloads():
    """name -> workload file."""
    return {name: file for name, (_, file) in made().items()}


def experiments():
    """system/name -> experiment file."""
    listed_of = {name: listed for name, (listed, _) in made().items()}
    variants = {}
    for variant, name in (("fp32", "bert_large_b32_n128_fp32"), ("mixed", "bert_large_b32_n128_mixed")):
        listed = listed_of[name]
        variants[variant] = {"workload": name}
        variants[variant + "_gemms"] = {"workload": {"operators": only(listed, (LINEAR, ATTENTION))}}
        variants[variant + "_linear"] = {"workload": {"operators": only(listed, (LINEAR,))}}

    def share(variant, part):
        return f"100 * {variant}_{part}.makespan_us / {variant}.makespan_us"

    def case(name, value, published, reason=None):
        found = {"name": name, "kind": "independent", "value": value, "published": published, "unit": "%",
                 "tolerance": {"absolute": 6}, "status": "known_gap" if reason else "enforced"}
        return {**found, "reason": reason} if reason else found

    return {"bert/iteration": {
        "schema": 2, "name": "iteration",
        "description": "A training iteration of BERT-Large (32 sequences of 128 tokens) on one MI100, in fp32 and in mixed "
                       "precision: shares of its time. GEMMs: those of linear and feed-forward layers and the batched "
                       "ones of attention; the rest streams memory. Batch and sequence length are the paper's "
                       "pre-training phase 1 (quoted from memory). Kernels are those of public PyTorch code as written; "
                       "with layer norm, GeLU and LAMB in one kernel each, which the summary does not exclude, GEMMs "
                       "would be 84 %. Written by scripts/training_workloads.",
        "source": "arXiv 2104.08335 (Demystifying BERT, IISWC 2021) by a summary: GEMMs about 60 % of an iteration, "
                  "memory-bound operators about 34 %, linear and feed-forward GEMMs 57 % in fp32 and 40 % in mixed "
                  "precision",
        "scenarios": {"base": {"topology": "mi100_1.json", "schedule": "serial",
                               "workload": "bert_large_b32_n128_fp32"}},
        "variants": variants,
        "cases": [
            case("GEMMs, fp32", share("fp32", "gemms"), 60),
            case("memory-bound operators, fp32", "100 - " + share("fp32", "gemms"), 34),
            case("linear and feed-forward GEMMs, fp32", share("fp32", "linear"), 57),
            case("linear and feed-forward GEMMs, mixed precision", share("mixed", "linear"), 40),
        ]}}
