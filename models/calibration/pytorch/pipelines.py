"""Iterations of a transformer in micro-batches through a pipeline with one stage a GPU, by torch.distributed.pipelining.

    cd models/calibration && python3 -m pytorch.pipelines OUT.jsonl [SECONDS]      # two or more GPUs
    cd models/calibration && python3 -m pytorch.pipelines --predict SIM OUT.jsonl  # what the simulator says of the same, without GPUs
    cd models/calibration && python3 -m pytorch.pipelines --errors OUT.jsonl MEASURED.jsonl

Layers as of Llama (RMS norms, rotary embedding, fused attention, gated MLP) in bf16, forward and backward, no embedding, no output
projection, no optimiser; the loss is a mean of squares. `compiled`: each layer by torch.compile. Every rank has `layers` /
(ranks * chunks) layers in each of its chunks. A line: `us`, the median of iterations that follow one another, from a rank's start
to all ranks' ends, by the host's clock between synchronisations; `one_gpu`: all micro-batches of a chunk's layers on one GPU,
one after another, without a pipeline.
"""
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPEATS = 7
VOCABULARY = 128  # of the config that is predicted: next to nothing


@dataclasses.dataclass(frozen=True)
class Case:
    model: tuple  # hidden, inner, heads, key heads
    layers: int
    sequence: int
    micro_batches: int
    order: str  # 1f1b, interleaved
    chunks: int = 1
    compiled: bool = False


LARGE, MIDDLE, SMALL = (8192, 28672, 64, 8), (4096, 14336, 32, 8), (2048, 8192, 32, 8)


def cases():
    for model, sequence in ((MIDDLE, 4096), (LARGE, 4096), (SMALL, 8192), (MIDDLE, 2048)):
        for micro_batches in (2, 4, 8):
            yield Case(model, 8, sequence, micro_batches, "1f1b")
            for chunks in (2, 4):
                yield Case(model, 8, sequence, micro_batches, "interleaved", chunks)
    for model, sequence in ((MIDDLE, 4096), (SMALL, 8192), (LARGE, 4096)):
        for micro_batches in (4, 8):
            yield Case(model, 8, sequence, micro_batches, "1f1b", compiled=True)
            yield Case(model, 8, sequence, micro_batches, "interleaved", 2, compiled=True)


def layer(model):
    import torch
    from torch import nn
    from torch.nn import functional
    hidden, inner, heads, key_heads = model
    size = hidden // heads

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ParameterList(torch.ones(hidden) for _ in range(2))
            self.qkv = nn.Linear(hidden, (heads + 2 * key_heads) * size, bias=False)
            self.out = nn.Linear(hidden, hidden, bias=False)
            self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
            self.down = nn.Linear(inner, hidden, bias=False)

        def forward(self, x):
            batch, tokens, _ = x.shape
            rows = self.qkv(functional.rms_norm(x, (hidden,), self.norms[0])).view(batch, tokens, -1, size).transpose(1, 2)
            queries_keys, values = rows[:, :heads + key_heads], rows[:, heads + key_heads:]
            one, other = queries_keys.chunk(2, dim=-1)
            angles = torch.arange(tokens, device=x.device, dtype=x.dtype)[:, None] / 1e4 ** torch.linspace(0, 1, size // 2, device=x.device, dtype=x.dtype)
            turned = torch.cat((one * angles.cos() - other * angles.sin(), one * angles.sin() + other * angles.cos()), dim=-1)
            result = functional.scaled_dot_product_attention(turned[:, :heads], turned[:, heads:], values, is_causal=True, enable_gqa=True)
            x = x + self.out(result.transpose(1, 2).reshape(batch, tokens, hidden))
            gate, up = self.gate_up(functional.rms_norm(x, (hidden,), self.norms[1])).chunk(2, dim=-1)
            return x + self.down(functional.silu(gate) * up)

    return Layer()


def loss_of(result, _target):
    return result.float().square().mean()


def chunk_of(case, count):
    import torch
    with torch.device("cuda"):
        layers = [layer(case.model).to(torch.bfloat16) for _ in range(count)]
    if case.compiled:
        layers = [torch.compile(one, dynamic=False) for one in layers]
    return torch.nn.Sequential(*layers)


def iteration_of(case, rank, ranks):
    """A function that runs one iteration, and what it is called with on this rank."""
    import torch
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
    hidden, all_chunks = case.model[0], ranks * case.chunks
    device = torch.device("cuda", rank)
    example = torch.randn(1, case.sequence, hidden, device=device, dtype=torch.bfloat16)
    stages = []
    for chunk in range(case.chunks):
        module = chunk_of(case, case.layers // all_chunks)
        stages.append(PipelineStage(module, chunk * ranks + rank, all_chunks, device, input_args=(example,), output_args=(example,)))
    if case.order == "1f1b":
        schedule = Schedule1F1B(stages[0], case.micro_batches, loss_fn=loss_of)
    else:
        schedule = ScheduleInterleaved1F1B(stages, case.micro_batches, loss_fn=loss_of)
    batch = torch.randn(case.micro_batches, case.sequence, hidden, device=device, dtype=torch.bfloat16)

    def run():
        if rank == 0:
            schedule.step(batch)
        elif rank == ranks - 1:
            schedule.step(target=batch, losses=[])
        else:
            schedule.step()
        for stage in stages:
            stage.submod.zero_grad(set_to_none=True)

    def alone():
        for number in range(case.micro_batches):
            rows = batch[number:number + 1].clone().requires_grad_()
            for stage in stages:
                loss_of(stage.submod(rows), None).backward()
        for stage in stages:
            stage.submod.zero_grad(set_to_none=True)
    return run, alone


def timed(run):
    import torch
    import torch.distributed as dist
    times = []
    for number in range(REPEATS + 3):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        took = torch.tensor([time.perf_counter() - start], device="cuda")
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        if number >= 3:
            times.append(took.item() * 1e6)
    return statistics.median(times), max(times) / min(times) - 1


def work(rank, seconds):
    import torch
    import torch.distributed as dist
    ranks, until = dist.get_world_size(), time.monotonic() + seconds
    for case in cases():
        if time.monotonic() > until:
            return
        torch.manual_seed(rank)
        run, alone = iteration_of(case, rank, ranks)
        us, spread = timed(run)
        one_gpu, _ = timed(alone)
        del run, alone
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        yield {"kind": "pipeline", **dataclasses.asdict(case), "ranks": ranks, "us": us, "spread": spread, "one_gpu_us": one_gpu}


def predicted(sim, case, ranks=2):
    """Of the simulator, without Adam, which the program does not run; null where it refuses the case."""
    hidden, inner, heads, key_heads = case.model
    config = {"model_type": "llama", "hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": heads, "num_key_value_heads": key_heads,
              "num_hidden_layers": case.layers, "vocab_size": VOCABULARY, "max_position_embeddings": case.sequence}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        done = subprocess.run([sim, "model", str(file), "--topology", f"h200_{ranks}", "--phase", "training", "--tp", "1", "--pp", str(ranks),
                               *(["--vp", str(case.chunks)] if case.chunks > 1 else []), "--sequence", str(case.sequence), "--micro-batch", "1",
                               "--global-batch", str(case.micro_batches), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"refused": done.stderr.strip()}
    step = json.loads(done.stdout)["steps"][0]
    adam = sum(row["overlapped_us"] * one["count"] for one in step["lists"] for row in one["operators"] if row["name"] == "adam")
    pipeline = step["pipeline"]
    passes = case.micro_batches * case.chunks * (pipeline["forward_overlapped_us"] + pipeline["backward_overlapped_us"])
    # The passes of a stage's other chunks hide all but the last chunk's Adam.
    return {"predicted_us": step["overlapped_us"] - adam / case.chunks, "one_gpu_us": passes, "send_us": pipeline["send_us"]}


def errors(predictions, measured):
    """Of times, and of the pipeline's share in them: time over that of the same passes on one GPU."""
    def key(row):
        return json.dumps([row[field.name] for field in dataclasses.fields(Case)])
    known = {key(row): row for row in predictions}
    groups = {}
    for row in measured:
        if row["kind"] == "pipeline":
            said = known[key(row)]
            group = groups.setdefault((row["order"], row["chunks"], row["compiled"]), [])
            share = (said["predicted_us"] / said["one_gpu_us"]) / (row["us"] / row["one_gpu_us"])
            group.append([said["predicted_us"] / row["us"] - 1, said["one_gpu_us"] / row["one_gpu_us"] - 1, share - 1])
    return groups


def main():
    if sys.argv[1] == "--predict":
        sim, out = sys.argv[2:]
        rows = [{"kind": "prediction", **dataclasses.asdict(case), **predicted(sim, case)} for case in cases()]
        pathlib.Path(out).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return
    if sys.argv[1] == "--errors":
        predictions, measured = ([json.loads(line) for line in pathlib.Path(name).read_text().splitlines()] for name in sys.argv[2:])
        print("| order | chunks | compiled | cases | time, mean | passes on one GPU, bias | pipeline over passes, mean | bias |\n|---|---|---|---|---|---|---|---|")
        for (order, chunks, compiled), rows in errors(predictions, measured).items():
            time_, passes, share = zip(*rows)
            print(f"| {order} | {chunks} | {'yes' if compiled else 'no'} | {len(rows)} | {100 * statistics.mean(map(abs, time_)):.1f} % | "
                  f"{100 * statistics.mean(passes):+.1f} % | {100 * statistics.mean(map(abs, share)):.1f} % | {100 * statistics.mean(share):+.1f} % |")
        return
    from .ranks import in_ranks, machine, write
    out, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 400
    write(out, machine(" ".join(["python3 -m pytorch.pipelines", *sys.argv[1:]])))
    in_ranks(work, out, seconds)


if __name__ == "__main__":
    main()
