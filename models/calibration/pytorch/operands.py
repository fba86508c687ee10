"""GEMMs after a rest on one GPU with operands of several distributions: at the same clock, what they hold decides how fast they are."""
import statistics
import time

import torch

from .calls import elapsed_us, graph_of

SHAPES = [(6144, 11008, 4096), (3072, 14336, 4096), (10240, 12288, 4096), (768, 28672, 8192), (31744, 5632, 4864), (19968, 12288, 3072),
          (8192, 14336, 8192), (8192, 8192, 8192), (5120, 5120, 5120), (4096, 4096, 7168), (10240, 8192, 14336), (15360, 2304, 9472),
          (2048, 14336, 8192)]
DISTRIBUTIONS = {
    "normal": lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16),
    "even": lambda *shape: torch.rand(*shape, device="cuda", dtype=torch.bfloat16) * 2 - 1,  # as those of microbench
    "zeros": lambda *shape: torch.zeros(*shape, device="cuda", dtype=torch.bfloat16),
}
SAMPLES, REST_S, CHAIN_US = 9, 0.1, 1000


def chain_us(m, n, k, make):
    """Median time of one of the GEMMs that fill about a millisecond in a graph, each time after a rest."""
    a, b, c = make(m, k), make(k, n), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    count = max(1, round(CHAIN_US / (2 * m * n * k / 750e6)))
    graph, times = graph_of(lambda: [torch.mm(a, b, out=c) for _ in range(count)]), []
    for _ in range(SAMPLES + 1):
        torch.cuda.synchronize()
        time.sleep(REST_S)
        torch.cuda._sleep(200_000)  # the clock is up, and the events are enqueued, when it begins
        times.append(elapsed_us(graph.replay) / count)
    return statistics.median(times[1:])


def rows():
    for m, n, k in SHAPES:
        for name, make in DISTRIBUTIONS.items():
            yield {"kind": "operands", "gemm": (m, n, k), "operands": name, "chain_us": round(chain_us(m, n, k, make), 2)}
