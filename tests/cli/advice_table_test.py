"""'sim advise --table' and '--emit': which schedule to take by tokens, as JSON, as a C++ header and in Python, and as frameworks' settings."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from sim_case import SimTestCase

GEMMS = {"gemms": [{"name": "gate_up", "n": 7168, "k": 8192, "dtype": "bf16", "collective": "all_gather"},
                   {"name": "down", "n": 8192, "k": 3584, "dtype": "bf16", "collective": "all_reduce"}]}
MAIN = """#include "table.hpp"
#include <cstdio>
#include <initializer_list>
int main() {
    for (int gemm = 0; gemm < overlap_table::gemm_count; ++gemm)
        for (long tokens : {1L, 2L, 3000L, 4096L, 100000L}) {
            double us = 0;
            const auto choice = overlap_table::choose(gemm, tokens, &us);
            std::printf("%s %s %.6f\\n", choice.schedule ? choice.schedule : "none", choice.params ? choice.params : "", us);
        }
}
"""


class AdviceTable(SimTestCase):
    def test_table_header_and_python_agree(self):
        self.file("gemms.json", GEMMS)
        table = json.loads(self.output("advise", "--table", "--gemms", "gemms.json", "--tp", "2", "--topology", "h200_2", "--kernels", "library",
                                       "--header", "table.hpp"))
        self.file("table.json", table)
        bucket = table["buckets"].index(4096)
        for gemm, workload in zip(table["gemms"], GEMMS["gemms"]):
            order = "gemm_first" if workload["collective"] == "all_reduce" else "collective_first"
            advice = self.result("advise", "--topology", "h200_2", "--kernels", "library", "--gemm", f"4096x{gemm['n']}x{gemm['k']}", "--dtype", "bf16",
                                 "--collective", workload["collective"], "--order", order)
            fastest = min(choice["times_us"][bucket] for choice in gemm["choices"])
            presets = [one["makespan_us"] for one in advice.get("presets", []) if not one.get("own_kernel")]
            self.assertAlmostEqual(fastest, min([advice["candidates"][0]["makespan_us"], *presets]), places=3)
        module = pathlib.Path(os.environ["SIM"]).resolve().parent / "python"
        if not list((module / "overlap").glob("_overlap*.so")) or shutil.which("c++") is None:
            self.skipTest("no Python module or no compiler")
        sys.path.insert(0, str(module))
        import overlap
        self.file("main.cpp", MAIN)
        subprocess.run(["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "main.cpp", "-o", "main"], cwd=self.folder, check=True)
        rows = subprocess.run(["./main"], cwd=self.folder, check=True, capture_output=True, text=True).stdout.splitlines()
        path = self.folder / "table.json"
        for row, (name, tokens) in zip(rows, [(one["name"], tokens) for one in table["gemms"] for tokens in (1, 2, 3000, 4096, 100000)]):
            schedule, rest = row.split(" ", 1)
            if schedule == "none":
                self.assertRaisesRegex(overlap.UserError, "no schedule", overlap.choose, name, tokens, path)
                continue
            params, us = rest.rsplit(" ", 1)
            chosen = overlap.choose(name, tokens, path)
            self.assertEqual((chosen["schedule"], chosen["params"]), (schedule, json.loads(params)))
            self.assertAlmostEqual(chosen["time_us"], float(us), places=3)
        self.assertRaisesRegex(overlap.UserError, "has no GEMM 'up'", overlap.choose, "up", 1, path)

    def test_mistakes(self):
        self.file("gemms.json", GEMMS)
        table = ["advise", "--table", "--topology", "h200_2"]
        self.assert_refused([*table, "--gemms", "gemms.json", "--tp", "8"], "--tp is 8", "has 2 GPUs")
        self.assert_refused(table, "--gemms")
        self.assert_refused([*table, "--gemms", self.file("no.json", {"gemms": []})], "/gemms: is empty")
        wrong = self.file("wrong.json", {"gemms": [{**GEMMS["gemms"][0], "dtype": "bf61"}]})
        self.assert_refused([*table, "--gemms", wrong], "/gemms/0/dtype", "bf16")
        self.assert_refused([*table, "--gemms", self.file("twice.json", {"gemms": GEMMS["gemms"][:1] * 2})], "/gemms/1/name", "a second time")
        self.assert_refused([*table, "--gemms", "gemms.json", "--format", "csv"], "--format csv", "JSON")


LAYER = {"gemms": [{"name": name, "n": n, "k": k, "dtype": "bf16", "collective": collective}
                   for name, n, k, collective in (("qkv", 1280, 8192, "all_gather"), ("proj", 8192, 1024, "reduce_scatter"),
                                                  ("fc1", 7168, 8192, "all_gather"), ("fc2", 8192, 3584, "reduce_scatter"))]}


class FrameworkSettings(SimTestCase):
    def emit(self, framework, topology, *args, gemms=LAYER):
        self.file("layer.json", gemms)
        return self.output("advise", "--emit", framework, "--gemms", "layer.json", "--topology", topology, *args)

    def vllm_passes(self, topology):
        text = self.emit("vllm", topology)
        return json.loads(re.search(r"--compilation-config '(.*)'", text)[1])["pass_config"], text

    def test_vllm_threshold_is_near_its_own(self):
        # vllm/compilation: sequence parallelism on H100 from 8 MiB a GPU on, which are 4,096 tokens of 8,192 bf16 over 8 GPUs.
        passes, text = self.vllm_passes("h100_8")
        self.assertEqual((passes["enable_sp"], passes["fuse_gemm_comms"]), (True, True))
        self.assertTrue(4096 / 1.5 <= passes["sp_min_token_num"] <= 4096 * 1.5, passes)
        gains = {int(tokens): float(gain) for tokens, gain in re.findall(r"^# +(\d+) .* ([+-][\d.]+) %$", text, re.M)}
        self.assertEqual({tokens: gain > 0 for tokens, gain in gains.items()}, {tokens: tokens >= passes["sp_min_token_num"] for tokens in gains})

    def test_flux_gains_or_loses_as_published(self):
        # github.com/bytedance/flux, issue 90, on 8 H100: whether Flux is faster than NCCL and a GEMM. Wrong: reduce-scatter at 8192.
        def us(gemm, collective, order, *schedule):
            return self.result("--topology", "h100_8", "--gemm", gemm, "--dtype", "bf16", "--collective", collective, "--order", order,
                               "--schedule", *schedule)["makespan_us"]
        right = {"all_gather": 0, "reduce_scatter": 0}
        for m in (1024, 2048, 4096, 8192, 16384, 32768):
            for gemm, collective, order, preset, gains in ((f"{m}x7168x8192", "all_gather", "collective_first", "flux_ag_gemm", m > 1024),
                                                           (f"{m}x8192x3584", "reduce_scatter", "gemm_first", "flux_gemm_rs", False)):
                library = us(gemm, collective, order, "serial", "--set", "algorithm=library")
                right[collective] += (us(gemm, collective, order, preset) < library) == gains
        self.assertEqual(right["all_gather"], 6)
        self.assertGreaterEqual(right["reduce_scatter"], 5)

    def test_left_off_where_it_does_not_pay(self):
        # One of seven links at a time: async tensor parallelism on a mesh.
        passes, text = self.vllm_passes("mi300x_8")
        self.assertEqual(passes, {"enable_sp": False, "fuse_gemm_comms": False})
        self.assertIn("left off", text)
        self.assertIn("_micro_pipeline_tp = False", self.emit("pytorch", "mi300x_8"))
        small = self.emit("megatron", "h100_8", "--tokens", "64")
        self.assertIn("Leave --tp-comm-overlap off", small)
        self.assertNotIn("method:", small)

    def test_transformer_engine(self):
        text = self.emit("te", "h100_8", "--tokens", "8192")
        settings = json.loads(re.search(r"^ub_cfgs = (.*)$", text, re.M)[1])
        yaml = self.emit("megatron", "h100_8", "--tokens", "8192")
        for layer, keys in settings.items():
            lines = "".join(f"  {key}: {value}\n" for key, value in keys.items())
            self.assertIn(f"{layer}:\n{lines}", yaml)
            # The time is that of the schedule that the method is.
            name = re.match("[a-z0-9]+", layer)[0]
            gemm = next(one for one in LAYER["gemms"] if one["name"] == name)
            preset = "te_ring_exchange" if gemm["collective"] == "all_gather" else "te_ring_exchange_rs"
            if keys["method"] == "ring_exchange":
                order = "collective_first" if gemm["collective"] == "all_gather" else "gemm_first"
                run = self.result("--topology", "h100_8", "--schedule", preset, "--gemm", f"8192x{gemm['n']}x{gemm['k']}", "--dtype", "bf16",
                                  "--collective", gemm["collective"], "--order", order)
                self.assertIn(f"{layer}: {run['makespan_us']:.1f} us", text)
        self.assertGreaterEqual(len(settings), 2)

    def test_nccl(self):
        text = self.emit("nccl", "mi300x_8", "--tokens", "8192")
        times = {setting: float(us) for us, setting in re.findall(r"^# ([\d.]+) us +(.*)$", text, re.M)}
        self.assertGreaterEqual(len(times), 5)
        chosen = text.splitlines()[1].removeprefix("# ")
        self.assertEqual(chosen, min(times, key=times.get))

    def test_deepep(self):
        def emit(tokens, topology="h200_8"):
            return self.output("advise", "--emit", "deepep", "--model", "deepseek_v3", "--tokens", str(tokens), "--topology", topology)

        text = emit(4096)
        times = {name: [float(us) for us in row if us != "-"] for name, *row in
                 re.findall(r"^# (.{20}) +([\d.]+) +([\d.]+|-)$", text, re.M)}
        self.assertEqual(len(times), 7)  # the library, and 4 to 24 SMs
        best = min(times, key=lambda name: min(times[name])).strip()
        self.assertIn(f"deep_ep.Buffer.set_num_sms({best.split()[0]})", text)
        # One after another: the more SMs send, the sooner; two halves leave SMs to GEMMs.
        alone = [times[f"{sms} SMs".ljust(20)][0] for sms in (4, 8, 12, 16, 20, 24)]
        self.assertEqual(alone, sorted(alone, reverse=True))
        few = emit(64)
        self.assertIn("low_latency_mode=True", few)
        self.assertEqual(len(re.findall("^# .* [0-9.]+ +[0-9.-]+$", few, re.M)), 8)
        arguments = ["advise", "--emit", "deepep", "--topology", "h200_8"]
        self.assert_refused([*arguments, "--tokens", "64"], "--model")
        self.assert_refused([*arguments, "--model", "deepseek_v3"], "--tokens")
        self.assert_refused([*arguments, "--tokens", "64", "--model", "llama3_8b"], "experts")
        self.assert_refused(["advise", "--emit", "deepep", "--topology", "mi300x_8", "--tokens", "64", "--model", "deepseek_v3"], "mi300x", "DeepEP")

    def test_mistakes(self):
        self.file("layer.json", LAYER)
        emit = ["advise", "--gemms", "layer.json", "--topology", "h100_8", "--emit"]
        self.assert_refused([*emit, "vlm"], "vlm", "vllm")
        self.assert_refused([*emit, "te"], "--tokens")
        self.assert_refused([*emit, "vllm", "--tokens", "9"], "--tokens")
        self.assert_refused([*emit, "te", "--tokens", "9", "--format", "csv"], "--format csv")
        self.assert_refused([*emit, "vllm", "--tp", "4"], "--tp is 4", "has 8 GPUs")
        self.assert_refused(emit[:-1], "--gemms needs --table or --emit")
        self.assert_refused(["advise", "--topology", "h100_8", "--emit", "vllm"], "--gemms")
        self.file("layer.json", {"gemms": LAYER["gemms"][:1]})
        self.assert_refused([*emit, "vllm"], "both kinds")
        self.file("layer.json", {"gemms": [{**LAYER["gemms"][0], "name": "fc"}]})
        self.assert_refused([*emit, "te", "--tokens", "4096"], "/gemms/0/name", "fc1")
        self.file("layer.json", {"gemms": [{**LAYER["gemms"][0], "collective": "all_to_all"}]})
        self.assert_refused([*emit, "pytorch"], "/gemms/0/collective", "all_to_all")

    def test_machines_without_an_answer(self):
        self.file("layer.json", LAYER)
        for what in (["--emit", "vllm"], ["--emit", "nccl", "--tokens", "4096"], ["--table"]):
            self.assert_refused(["advise", *what, "--gemms", "layer.json", "--topology", "h200_1"], "h200_1 has one GPU")
        self.assert_refused(["advise", "--emit", "nccl", "--tokens", "4096", "--gemms", "layer.json", "--topology", "mi210_4"], "mi210_4", "library")
        # Copy engines serve the collectives of one node.
        self.assertIn("ZERO", self.emit("nccl", "mi300x_8", "--tokens", "4096"))
        self.assertNotIn("ZERO", self.emit("nccl", "mi300x_16", "--tokens", "4096"))
