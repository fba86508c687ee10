"""Host time of the calls that PyTorch programs enqueue work with, and what a graph costs between its nodes."""
import statistics
import time

import torch

REPEATS, COUNT = 9, 200  # 200 calls fit into the launch queue, so no call waits for the GPU


def host_us(call, count=COUNT, together=lambda: None):
    """Median over the repeats of the mean host time of a call, in µs. Each repeat begins after `together`."""
    means = []
    for _ in range(REPEATS + 1):
        torch.cuda.synchronize()
        together()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        means.append((time.perf_counter() - begin) / count * 1e6)
    torch.cuda.synchronize()
    return statistics.median(means[1:])


def elapsed_us(call, count=1):
    """Mean device time of `count` calls, in µs, between events on the current stream."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def device_us(call, count=5):
    """Median device time of a call, in µs."""
    return statistics.median([elapsed_us(call, count) for _ in range(REPEATS + 1)][1:])


def calls():
    """Calls of a small size by name; each enqueues one thing."""
    a, b, c = (torch.randn(128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    x, y = (torch.zeros(256, device="cuda") for _ in range(2))
    stream, other = torch.cuda.current_stream(), torch.cuda.Stream()
    event = torch.cuda.Event()
    event.record()

    def enter_stream():
        with torch.cuda.stream(other):
            pass

    return {
        "gemm": lambda: torch.mm(a, b, out=c),
        "gemm_allocating": lambda: torch.mm(a, b),
        "kernel": lambda: torch.add(x, y, out=x),
        "copy": lambda: x.copy_(y),
        "event_record": lambda: event.record(stream),
        "event_wait": lambda: stream.wait_event(event),
        "stream_wait": lambda: stream.wait_stream(other),
        "enter_stream": enter_stream,
        "allocate": lambda: torch.empty(1024, device="cuda"),
    }


def graph_of(body):
    """A CUDA graph of `body`, warmed up."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            body()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph


def graphs():
    """Bodies of graphs by name, with their number of nodes: what the device takes for each node."""
    x, y = (torch.zeros(256, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()

    def chain(count, step):
        def body():
            for _ in range(count):
                step()
        return body

    def hop():
        main = torch.cuda.current_stream()
        x.add_(1)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            y.add_(1)
        main.wait_stream(side)

    return {
        "kernels": (chain(400, lambda: x.add_(1)), 400),
        "copies": (chain(400, lambda: x.copy_(y)), 400),
        "hops": (chain(200, hop), 400),
        "one_kernel": (chain(1, lambda: x.add_(1)), 1),
        "fifty_kernels": (chain(50, lambda: x.add_(1)), 50),
    }


def collective_rows():
    """Collectives of one rank: their host time without others to wait for."""
    import torch.distributed as dist
    one, out = (torch.zeros(1024, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    alone = {
        "all_gather": lambda: dist.all_gather_into_tensor(out, one),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, one),
        "all_reduce": lambda: dist.all_reduce(one),
    }
    for name, call in alone.items():
        yield {"kind": "host_call", "call": name, "ranks": 1, "host_us": round(host_us(call), 3)}


def compiled_rows():
    """Host time of a layer of a GEMM and an element-wise kernel by torch.compile's code, after 1 and after 9 layers."""
    x, w = (torch.randn(128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def layers(count):
        def body(x):
            for _ in range(count):
                x = torch.relu(x @ w) + 1
            return x
        return torch.compile(body)

    with torch.no_grad():
        for count in (1, 9):
            body = layers(count)
            body(x)
            yield {"kind": "compiled", "layers": count, "kernels": 2 * count,
                   "host_us": round(host_us(lambda: body(x), 40), 3)}


def rows():
    """Host calls, then graphs."""
    for name, call in calls().items():
        yield {"kind": "host_call", "call": name, "host_us": round(host_us(call), 3)}
    for name, (body, nodes) in graphs().items():
        graph = graph_of(body)
        yield {"kind": "graph", "graph": name, "nodes": nodes, "host_us": round(host_us(graph.replay, 20), 3),
               "device_us": round(device_us(graph.replay), 3)}
    yield from compiled_rows()


def memory_rows():
    """Device time of the local work around symmetric-memory operators, by bytes: copies and sums of shards."""
    for mib in (1, 4, 16, 64, 256):
        count = mib * 2**19  # bf16
        source, target = (torch.randn(count, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        yield {"kind": "local", "operator": "copy", "MiB": mib, "device_us": round(device_us(lambda: target.copy_(source)), 3)}
        yield {"kind": "local", "operator": "add", "MiB": mib,
               "device_us": round(device_us(lambda: torch.add(source, target, out=target)), 3)}
        for ranks in (2, 4, 8):
            staged = source.view(ranks, -1, 1024)
            yield {"kind": "local", "operator": "sum", "MiB": mib, "ranks": ranks,
                   "device_us": round(device_us(lambda: staged.sum(dim=0)), 3)}
            yield {"kind": "local", "operator": "mean", "MiB": mib, "ranks": ranks,
                   "device_us": round(device_us(lambda: staged.mean(dim=0)), 3)}
