"""PyTorch's attention (scaled_dot_product_attention as it chooses its kernels): prefill with its backward pass, and decode, in graphs."""
import csv
import itertools
import json
import pathlib
import random
import statistics
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

from .calls import elapsed_us, graph_of
from .operators import normal, refusal

HEADS = ((32, 8, 128), (64, 8, 128), (40, 8, 128), (28, 4, 128), (8, 1, 128), (32, 32, 128), (16, 2, 128), (96, 8, 128), (16, 16, 128),
         (12, 12, 64), (25, 25, 64), (71, 1, 64), (32, 32, 64), (8, 4, 256), (16, 16, 256), (32, 16, 128))
TOKENS = (128, 256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
SEQUENCES = (1, 2, 4, 8, 16)
CONTEXTS, DECODED = (512, 1024, 2048, 4096, 8192, 16384, 32768), (1, 4, 16, 32, 64, 128)
LARGEST_FLOP, LARGEST_CACHE = 4e12, 2**33  # some 8 ms; bytes
CALLS_US, LEAST_CALLS, REST_S, REPEATS = 2000, 4, 0.02, 6


def prefill_cases():
    cases = [case for case in itertools.product(HEADS, TOKENS, SEQUENCES, (True,) * 3 + (False,))
             if 1e9 < 4 * case[2] * case[0][0] * case[0][2] * case[1] ** 2 < LARGEST_FLOP and case[1] * case[2] <= 32768]
    random.Random("prefill").shuffle(cases)  # a limit of time cuts a sample of all
    return cases


def decode_cases():
    cases = [case for case in itertools.product(HEADS, CONTEXTS, DECODED)
             if 2**22 < 4 * case[2] * case[1] * case[0][1] * case[0][2] < LARGEST_CACHE]
    random.Random("decode").shuffle(cases)
    return cases


def each_us(call):
    """Time of a call on a cool GPU: the median over the repeats of short graphs of many calls."""
    for _ in range(2):
        call()  # the library chooses a kernel
    count = max(int(CALLS_US / max(elapsed_us(call, 3), 1)), LEAST_CALLS)
    graph = graph_of(lambda: [call() for _ in range(count)])
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        time.sleep(REST_S)
        torch.cuda._sleep(100_000)
        times.append(elapsed_us(graph.replay) / count)
    return statistics.median(times[1:])


def heads_first(sequences, tokens, heads, head):
    """[sequences, heads, tokens, head] as a view of a GEMM's result, in which a token's heads are next to each other."""
    return normal(sequences, tokens, heads, head).transpose(1, 2)


def prefill_us(heads, tokens, sequences, causal):
    """Times of the forward pass and of the backward pass."""
    q, k, v = (heads_first(sequences, tokens, count, heads[2]).requires_grad_() for count in (heads[0], heads[1], heads[1]))
    gradient = heads_first(sequences, tokens, heads[0], heads[2])

    def attend():
        return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads[0] != heads[1])

    def forward():
        with torch.no_grad():
            attend()
    both = each_us(lambda: torch.autograd.grad(attend(), (q, k, v), gradient))
    return each_us(forward), both


def decode_us(heads, context, sequences):
    q = normal(sequences, heads[0], 1, heads[2])
    k, v = (normal(sequences, heads[1], context, heads[2]) for _ in range(2))

    def call():
        with torch.no_grad():
            scaled_dot_product_attention(q, k, v, enable_gqa=heads[0] != heads[1])
    return each_us(call)


def row_of(kind, heads, size, sequences, measure):
    row = {"kind": kind, "dtype": "bf16", "batch": sequences, "heads": heads[0], "kv_heads": heads[1], "head_dim": heads[2], **size}
    try:
        return row | measure()
    except Exception as error:  # too much memory, or no kernel for this case
        return row | {"refused": refusal(error)}
    finally:
        torch.cuda.empty_cache()


def write_tables(measured):
    """Writes the rows of `measured`, a file of scripts/measure_pytorch, as tables that `sim calibrate` reads beside it."""
    with open(measured, encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if "refused" not in row]
    for kind, columns in (("prefill", {"dtype": "dtype", "batch": "batch", "tokens": "tokens", "heads": "heads", "kv_heads": "kv_heads",
                                       "head_dim_qk": "head_dim", "head_dim_v": "head_dim", "causal": "causal", "fwd_us": "fwd_us",
                                       "bwd_us": "bwd_us"}),
                          ("decode", {"kv_dtype": "dtype", "batch": "batch", "context": "context", "heads": "heads",
                                      "kv_heads": "kv_heads", "head_dim": "head_dim", "us": "us"})):
        with open(pathlib.Path(measured).with_suffix(f".{kind}.csv"), "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(columns)
            table.writerows([row[key] for key in columns.values()] for row in rows if row["kind"] == kind)


def rows(rank, budget_s):
    """Rows of prefill for two thirds of `budget_s`, then of decode."""
    del rank
    begin = time.perf_counter()
    for heads, tokens, sequences, causal in dict.fromkeys(prefill_cases()):
        if time.perf_counter() - begin > budget_s * 2 / 3:
            break

        def times():
            forward, both = prefill_us(heads, tokens, sequences, causal)
            return {"fwd_us": round(forward, 2), "bwd_us": round(both - forward, 2)}
        yield row_of("prefill", heads, {"tokens": tokens, "causal": causal}, sequences, times)
    for heads, context, sequences in decode_cases():
        if time.perf_counter() - begin > budget_s:
            break
        yield row_of("decode", heads, {"context": context}, sequences, lambda: {"us": round(decode_us(heads, context, sequences), 2)})
