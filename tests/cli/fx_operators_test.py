"""scripts/fx_operators: operator lists of PyTorch graphs. The recorded graph is that of fx_layer.py; recording needs PyTorch."""
import importlib.util
import json
import subprocess
import sys

from sim_case import ROOT, SimTestCase

GRAPH = ROOT / "tests/cli/fx_graph.json"


class FxOperators(SimTestCase):
    def script(self, *arguments):
        return subprocess.run([sys.executable, ROOT / "scripts/fx_operators", *map(str, arguments)], cwd=self.folder,
                              capture_output=True, encoding="utf-8", timeout=300)

    def converted(self, graph):
        done = self.script("convert", graph, "layer.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads((self.folder / "layer.json").read_text(encoding="utf-8"))["operators"]

    def node(self, name, target, inputs, value, **more):
        return {"name": name, "op": "call_function" if inputs else "placeholder", "target": target, "inputs": inputs,
                "value": value, **more}

    def graph(self, *nodes):
        self.graphs = getattr(self, "graphs", 0) + 1
        return self.file(f"graph{self.graphs}.json", {"torch": "2", "source": "x", "nodes": nodes})

    def test_a_layer_has_its_flops_and_runs(self):
        operators = self.converted(GRAPH)
        gemms = [one for one in operators if one["type"] == "gemm"]
        flops = sum(2 * one["m"] * one["n"] * one["k"] * one.get("batch", 1) for one in gemms)
        weights = 8192 * 3072 + 1024 * 8192 + 3 * 8192 * 3584  # qkv, out, gate, up, down
        self.assertEqual(flops, 2 * 4096 * weights + 2 * 2 * 8 * 4096 * 4096 * 128)  # and both products of attention
        by_name = {one["name"]: one for one in operators}
        self.assertEqual(by_name["silu"], {"name": "silu", "type": "memory_bound", "read_bytes": 4096 * 3584 * 2,
                                           "write_bytes": 4096 * 3584 * 2, "needs": ["mm_2"]})
        self.assertEqual(by_name["mm_4"]["needs"], ["mul_1"])  # through the transposed weights
        result = self.result("--topology", "h200_8", "--schedule", "serial", "--workload", "layer.json")
        self.assertGreater(result["makespan_us"], flops / 989e6)  # H200's peak: 989 TFLOPS

    def test_collectives_and_attention_of_export(self):
        head = [[1, 8, 1024, 128], "bfloat16"]
        operators = self.converted(self.graph(
            self.node("x", "x", [], [[512, 4096], "bfloat16"]),
            self.node("w", "w", [], [[3072, 4096], "bfloat16"]),
            self.node("ag", "all_gather_into_tensor", ["x"], [[1024, 4096], "bfloat16"]),
            self.node("wait", "wait_tensor", ["ag"], [[1024, 4096], "bfloat16"]),
            self.node("qkv", "linear", ["wait", "w"], [[1024, 3072], "bfloat16"]),
            *(self.node(name, "view", ["qkv"], head) for name in "qkv"),
            self.node("sdpa", "scaled_dot_product_attention", ["q", "k", "v"], head, flags={"is_causal": True}),
            self.node("rs", "reduce_scatter_tensor", ["sdpa"], [[512, 1024], "bfloat16"])))
        size = 1024 * 1024 * 2
        self.assertEqual(operators, [
            {"name": "ag", "type": "collective", "collective": "all_gather", "bytes": 1024 * 4096 * 2, "dtype": "bf16", "needs": []},
            {"name": "qkv", "type": "gemm", "m": 1024, "n": 3072, "k": 4096, "dtype": "bf16", "needs": ["ag"]},
            # Two products of 8 x 1024 x 1024 x 128, half of them masked
            {"name": "sdpa", "type": "memory_bound", "read_bytes": 3 * size, "write_bytes": size,
             "flops": 2 * 8 * 1024 * 1024 * 128, "dtype": "bf16", "needs": ["qkv"]},
            {"name": "rs", "type": "collective", "collective": "reduce_scatter", "bytes": size, "dtype": "bf16", "needs": ["sdpa"]}])

    def test_refusals_are_one_line(self):
        x = self.node("x", "x", [], [[4, 4], "complex64"])
        for graph, said in ((self.graph(x, self.node("y", "mm", ["x", "x"], [[4, 4], "complex64"])), "complex64"),
                            (self.graph(x, self.node("y", "convolution", ["x"], [[4, 4], "float32"])), "convolution"),
                            (self.graph(x), "no operator"), (self.file("no.json", "{}"), "no graph"), ("absent", "absent")):
            done = self.script("convert", graph, "out.json")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Ascripts/fx_operators: [^\n]+\n\Z")
            self.assertIn(said, done.stderr)
        self.assertNotIn("out.json", self.files())


class FxRecording(SimTestCase):
    def test_recording_gives_the_recorded_graph(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no PyTorch")
        done = subprocess.run([sys.executable, ROOT / "scripts/fx_operators", "record", ROOT / "tests/cli/fx_layer.py:layer",
                               self.folder / "graph.json"], capture_output=True, encoding="utf-8", timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        made, kept = (json.loads(path.read_text(encoding="utf-8"))["nodes"] for path in (self.folder / "graph.json", GRAPH))
        gemms = [[node["target"], node["value"]] for node in kept if node["target"] in ("mm", "bmm")]
        self.assertEqual([[node["target"], node["value"]] for node in made if node["target"] in ("mm", "bmm")], gemms)
