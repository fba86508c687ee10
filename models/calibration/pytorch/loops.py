"""Operators of one GPU from cool and back to back until the clock has settled, with clock, power and temperature."""
import statistics
import time

import torch

from .calls import elapsed_us, graph_of
from .counters import Watch

COOL_SAMPLES, REST_S, WARM_S, WATCHED_S = 5, 0.25, 1.2, 1.2
OPERANDS = {
    "normal": lambda *shape: torch.randn(*shape, device="cuda"),
    "uniform": lambda *shape: torch.rand(*shape, device="cuda") - 0.5,
    "zeros": lambda *shape: torch.zeros(*shape, device="cuda"),
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

# m, n, k; bytes copied after each GEMM in MiB; operands; busy and pause in ms (0: no pause).
SHAPES = [(8192, 8192, 8192), (8192, 14336, 8192), (4096, 4096, 4096), (16384, 3584, 7168), (8192, 2560, 8192),
          (8192, 8192, 1024), (8192, 8192, 256), (2048, 14336, 8192), (512, 8192, 8192), (65536, 2048, 2048),
          (128, 8192, 8192), (5120, 5120, 5120), (8192, 5120, 2560), (3072, 12288, 6144), (1024, 28672, 8192)]


def cases():
    for shape in SHAPES:
        yield {"gemm": shape}
    for operands in ("uniform", "zeros"):
        yield {"gemm": (8192, 8192, 8192), "operands": operands}
    yield {"gemm": (8192, 8192, 8192), "dtype": "fp16"}
    for mib in (16, 64, 128, 256, 512):
        yield {"gemm": (8192, 8192, 8192), "copied_MiB": mib}
    for mib in (16, 64, 256):
        yield {"gemm": (4096, 8192, 4096), "copied_MiB": mib}
    for busy, pause in ((5, 0.5), (5, 1), (5, 1.5), (5, 2), (5, 3), (2, 0.2), (2, 0.4), (2, 0.6), (2, 0.8), (2, 1.2)):
        yield {"gemm": (8192, 8192, 8192), "busy_ms": busy, "pause_ms": pause}
    for busy, pause in ((2, 0.3), (2, 0.7)):
        yield {"gemm": (8192, 8192, 1024), "busy_ms": busy, "pause_ms": pause}
    for mib in (64, 512):
        yield {"copied_MiB": mib}


def body_of(case):
    """What an iteration of `case` enqueues, without its pause."""
    steps = []
    if "gemm" in case:
        m, n, k = case["gemm"]
        make, dtype = OPERANDS[case.get("operands", "normal")], DTYPES[case.get("dtype", "bf16")]
        a, b = make(m, k).to(dtype), make(k, n).to(dtype)
        c = torch.empty(m, n, device="cuda", dtype=dtype)
        steps.append(lambda: torch.mm(a, b, out=c))
    if "copied_MiB" in case:
        source = torch.randn(case["copied_MiB"] * 2**19, device="cuda", dtype=torch.bfloat16)
        target = torch.empty_like(source)
        steps.append(lambda: target.copy_(source))

    def body():
        for step in steps:
            step()
    return body


def cool_us(graph):
    """Median time of a replay after a rest."""
    times = []
    for _ in range(COOL_SAMPLES + 1):
        torch.cuda.synchronize()
        time.sleep(REST_S)
        torch.cuda._sleep(100_000)  # the clock is up, and the events are enqueued, when it begins
        times.append(elapsed_us(graph.replay))
    return statistics.median(times[1:])


def loop(graph, seconds, each_us, pause_ms):
    """Replays for about `seconds`; mean µs a replay with its pause."""
    count = max(int(seconds * 1e6 / (each_us + pause_ms * 1e3)), 3)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for replay in range(count):
        graph.replay()
        if pause_ms:
            end.record()
            end.synchronize()
            until = time.perf_counter() + pause_ms / 1e3
            while time.perf_counter() < until:
                pass
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def measured(case, counters):
    """One row: `case` with cool_us and steady_us of one iteration, and the counters while it was steady."""
    body = body_of(case)
    single = graph_of(body)
    row = {"kind": "loop", **case, "cool_us": round(cool_us(single), 2)}
    pause_ms = case.get("pause_ms", 0)
    together = max(int(case.get("busy_ms", 20) * 1e3 / row["cool_us"]), 1)
    many = graph_of(lambda: [body() for _ in range(together)])
    loop(many, WARM_S, row["cool_us"] * together, pause_ms)
    with Watch(counters) as watch:
        each = loop(many, WATCHED_S, row["cool_us"] * together, pause_ms)
    row |= {"iterations": together, "steady_us": round(each / together, 2), "power_W": watch.power_W,
            "clock_MHz": watch.clock_MHz, "temperature_C": watch.temperature_C}
    del single, many
    torch.cuda.empty_cache()
    return row


def rows(counters, budget_s):
    """Rows of all cases; stops when `budget_s` is spent."""
    begin = time.perf_counter()
    for case in cases():
        if time.perf_counter() - begin > budget_s:
            return
        yield measured(case, counters)
