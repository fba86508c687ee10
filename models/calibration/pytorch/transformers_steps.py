"""Steps of Hugging Face models on one GPU: timed without a profiler, and recorded by one.

    python3 transformers_steps.py FOLDER      # one GPU, six minutes

Models have random weights and few layers. A line of FOLDER/steps.jsonl: model, what ran, `step_us` of single steps in a loop
(median, p10, p90 of 30; device time between events), and the recorded file beside it: NAME.json.gz, torch.profiler with shapes,
two steps after a warm-up.
"""
import gzip
import json
import pathlib
import shutil
import statistics
import sys

sys.path.pop(0)  # this folder, whose kernels.py transformers would take for a package of that name

import torch
import transformers
from torch.profiler import ProfilerActivity, profile, schedule
from transformers import AutoConfig, AutoModelForCausalLM

MODELS = {
    "llama": ("llama", dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
                            num_hidden_layers=3, vocab_size=32000)),
    "qwen3": ("qwen3", dict(hidden_size=2560, intermediate_size=9728, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                            num_hidden_layers=3, vocab_size=32000)),
    "mixtral": ("mixtral", dict(hidden_size=2048, intermediate_size=4096, num_attention_heads=16, num_key_value_heads=8,
                                num_local_experts=8, num_experts_per_tok=2, num_hidden_layers=2, vocab_size=32000)),
    "gpt_oss": ("gpt_oss", dict(hidden_size=2880, intermediate_size=2880, num_attention_heads=64, num_key_value_heads=8, head_dim=64,
                                num_local_experts=16, num_experts_per_tok=4, num_hidden_layers=2, vocab_size=32000)),
}
RUNS = [("training", "eager", 1, 2048), ("prefill", "eager", 1, 4096), ("prefill", "compiled", 1, 4096), ("training", "compiled", 2, 2048)]
REPEATS = 30


def step_of(model, phase, batch, tokens):
    words = torch.randint(0, 32000, (batch, tokens), device="cuda")
    if phase == "prefill":
        def prefill():
            with torch.no_grad():
                model(input_ids=words, use_cache=False)
        return prefill
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def training():
        optimizer.zero_grad(set_to_none=True)
        model(input_ids=words, labels=words, use_cache=False).loss.backward()
        optimizer.step()
    return training


def timed(step):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    times = sorted(1000 * a.elapsed_time(b) for a, b in zip(events, events[1:]))
    return {"median": round(statistics.median(times), 1), "p10": round(times[3], 1), "p90": round(times[-4], 1)}


def record(step, path):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 schedule=schedule(wait=0, warmup=1, active=2),
                 on_trace_ready=lambda done: done.export_chrome_trace(str(path))) as recorder:
        for _ in range(3):
            step()
            torch.cuda.synchronize()
            recorder.step()
    with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb", 9) as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "steps.jsonl", "w", encoding="utf-8") as file:
        print(json.dumps({"schema": 1, "kind": "machine", "device": torch.cuda.get_device_name(), "gpus": 1,
                          "pytorch": torch.__version__, "transformers": transformers.__version__, "runtime": torch.version.cuda,
                          "command": "python3 models/calibration/pytorch/transformers_steps.py FOLDER"}), file=file)
        for (name, (family, sizes)), (phase, how, batch, tokens) in ((m, r) for m in MODELS.items() for r in RUNS):
            model = step = None
            line = {"model": name, "model_type": family, "config": sizes, "phase": phase, "how": how, "batch": batch, "tokens": tokens,
                    "dtype": "bf16"}
            try:
                torch.manual_seed(0)
                torch._dynamo.reset()
                model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **sizes), dtype=torch.bfloat16).cuda()
                step = step_of(torch.compile(model) if how == "compiled" else model, phase, batch, tokens)
                for _ in range(8):
                    step()
                torch.cuda.synchronize()
                line["step_us"] = timed(step)
                line["recorded"] = f"{name}_{phase}_{how}.json.gz"
                record(step, folder / line["recorded"].removesuffix(".gz"))
                line["step_us_again"] = timed(step)
            except Exception as error:
                line["error"] = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
            print(json.dumps(line), file=file, flush=True)
            del model, step
            torch.cuda.empty_cache()


main(pathlib.Path(sys.argv[1]))
