"""`sim explain` knows every word that a report prints, by the definitions of sim/README.md and sim/transformer/README.md."""
import json
import re

from sim_case import ROOT, SimTestCase


class Explain(SimTestCase):
    RUNS = [["--topology", "mi300x_8", "--schedule", "ring_chunked"], ["--topology", "h200_8", "--schedule", "serial"],
            ["--topology", "h200_2", "--schedule", "async_tp", "--host", "pytorch_eager", "--steady"],
            ["--topology", "h200_4", "--schedule", "hetero_fused_1d", "--workload", "llama3_70b_down_forward", "--seeds", "3"],
            ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d", "--workload", "llama3_70b_mlp_layer"]]
    VALUES = ("all_gather", "reduce_scatter", "bf16", "dma", "cu", "pull", "push", "shard", "hipBLASLt", "cuBLASLt", "flow")
    BASES = ("measured", "fitted", "published", "derived", "estimate")

    def words(self, text):
        """Labels, names of numbers and losses, keys of parameters, and kinds of prices in a report."""
        found = set()
        head, *sections = text.split("\n\n")
        for line in head.splitlines()[1:]:
            found.update(re.findall(r"^[a-zA-Z]\S*(?: \S+)*(?=  )|^\w{10}(?= )", line))
            found.update(re.findall(r"\b(\w+)=", line))
            found.update(word for word in re.findall(r"\w+", line) if word in self.VALUES)
            found.update(word for word in re.findall(r"\w+", line) if word in self.BASES or word.endswith("_first"))
        for section in sections:
            if section.startswith("GPU 0"):
                found.update(line[:11].strip() for line in section.splitlines()[1:] if line[0] != " ")
                continue
            for line in section.splitlines():
                if line.startswith("utilisation"):
                    found.update(re.split(r" +[\d.]+ %(?: +|$)", line.removeprefix("utilisation (mean)").strip()))
                    found.add("utilisation (mean)")
                elif line.startswith("where the time"):
                    found.add(line.split(",")[0])
                elif match := re.match(r" *(\S+(?: \S+)*) {2,}-?[\d.]|^(next) ", line):
                    found.add(match[1] or match[2])
        return found - {""}

    def test_every_word_of_a_report_is_explained(self):
        words = set()
        for run in self.RUNS:
            words |= self.words(self.sim(*run).stdout)
        # Of each part of a report some, so that the test looks where it should.
        for word in ("confidence", "makespan", "exposed communication", "pattern", "fill_drain", "power", "host", "chunks",
                     "fitted", "HBM", "transfers", "makespan - ideal", "GEMM alone", "computation alone", "engine", "energy", "all_gather", "bf16", "dma", "push", "hipBLASLt"):
            self.assertIn(word, words)
        for word in sorted(words):
            with self.subTest(word=word):
                text = self.output("explain", *word.split())
                self.assertGreater(len(text.splitlines()), 1)

    def test_every_word_of_a_models_step_is_explained(self):
        words = {"serial", "overlap", "alone", "schedule", "what decides", "dma", "cu", "library", "bf16", "fp8"}
        for args in (["llama3_8b", "--topology", "h200_4", "--sequence-parallel", "--phase", "training", "--tokens", "4096"],
                     ["deepseek_v2", "--topology", "h200_8", "--ep", "8", "--phase", "training", "--tokens", "4096", "--layers", "2"],
                     ["deepseek_v3", "--topology", "h200_8", "--tokens", "256", "--phase", "decode"],
                     ["falcon_40b", "--topology", "h200_8", "--tokens", "4096", "--phase", "training"],
                     ["deepseek_v3", "--topology", "h200_8", "--tp", "8", "--sequence-parallel", "--tokens", "4096", "--phase", "training"],
                     ["gemma2_9b", "--topology", "h200_4", "--sequence-parallel", "--tokens", "4096"],
                     ["llama3_8b", "--topology", "h200_4", "--dp", "4", "--fsdp", "--phase", "training", "--tokens", "8192"]):
            report = json.loads(self.output("model", *args, "--format", "json"))
            for one in report["steps"][0]["lists"]:
                words.add(one["name"])
                for row in one["operators"]:
                    words.update(row["name"].split(" > "))
                    words.add(row.get("decided_by") or "all")
        text = self.output("model", *args)
        for line in text[:text.index("confidence ")].splitlines()[3:]:
            words.update(re.findall(r"^ *(\S+(?: \S+)*?)(?: \(x \d+\))? {2,}[\d.]", line))
        for word in ("tokens/s", "share of peak (MFU)", "exposed communication", "qkv_dgrad_reduce", "expert_gate_up_wgrad",
                     "absorb_keys", "queries_gather", "qkv_latent_wgrad_reduce", "window_layer", "logits_cap", "branches_sum_grad", "backward_parameters_gather", "embedding", "step"):
            self.assertIn(word, words)
        for word in sorted(words):
            with self.subTest(word=word):
                self.assertGreater(len(self.output("explain", *word.split()).splitlines()), 1)
        down = self.output("explain", "down_dgrad")
        self.assertIn("GEMMs of the MLP", down)
        self.assertIn("GEMMs of the gradients", down)

    # Values of these keys are named by the data: what was swept, chosen or priced.
    NAMED_BY_DATA = ("config", "values", "schedules", "prices", "what_if", "params", "labels")

    def keys(self, json_value):
        found = set()
        if isinstance(json_value, dict):
            for key, value in json_value.items():
                found.add(key)
                if key not in self.NAMED_BY_DATA:
                    found |= self.keys(value)
        elif isinstance(json_value, list):
            for value in json_value:
                found |= self.keys(value)
        return found

    def test_every_key_of_every_json_output_is_explained(self):
        run = ["--topology", "h200_8", "--schedule", "ring_chunked"]
        gemm = ["--topology", "h200_8", "--gemm", "8192x2560x8192"]
        outputs = {"run": [*run, "--steady"], "model": ["model", "llama3_8b", "--topology", "h200_8"], "advise": ["advise", *gemm],
                   "cost": ["cost", "--device", "h200", "--gemm", "8192x2560x8192"], "copy": ["cost", "--device", "h200", "--copy", "64MiB"],
                   "sensitivity": ["sensitivity", "--topology", "h200_2", "--schedule", "ring_chunked", "--only", "hardware"], "compare": ["compare", str(ROOT / "traces/h200_2/measured"), "--tolerances", str(ROOT / "configs/tolerances/h100_fifth.json")],
                   "search": ["search", "--topology", "h200_2", "--gemm", "10240x1280x8192", "--draws", "20"], "reproduce": ["reproduce", "comet"]}
        keys = {"own_kernel"}
        for name, command in outputs.items():
            result = self.sim(*command, "--format", "json")
            self.assertIn(result.returncode, (0, 3), name + result.stderr)
            found = self.keys(json.loads(result.stdout))
            self.assertGreater(len(found), 5, name)
            keys |= found
        out = self.folder / "out"
        sweep = self.file("s.json", {"base": {"topology": "h200_8", "schedule": "ring_chunked"}, "axes": {"params.chunks": [2, 4]}})
        self.output("sweep", sweep, "--out", str(out))
        keys |= set((out / "points.csv").read_text().splitlines()[0].split(","))
        for key in sorted(keys):
            with self.subTest(key=key):
                self.assertGreater(len(self.output("explain", key).splitlines()), 1)

    def test_definitions_are_those_of_the_readme(self):
        readme = (ROOT / "sim" / "README.md").read_text(encoding="utf-8")
        for name, part in (("regret", "time of the chosen schedule over time of the best schedule, minus 1"),
                           ("exposed_comm_us", "takes part in a transfer or a reduction and computes nothing"), ("DIL", "an output, never an input")):
            self.assertIn(part, readme)
            self.assertIn(part, self.output("explain", name))
        self.assert_refused(["explain", "dekomposition"], "did you mean 'decomposition'?")
