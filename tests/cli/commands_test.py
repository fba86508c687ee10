"""The other commands: list, explain, cost, batch."""
import csv
import io
import json
import statistics

from sim_case import EVERY_CASE, ROOT, SMALL, SimTestCase, without_clock

GEMMS = "id,m,n,k,dtype\nlarge,8192,8192,8192,bf16\nsmall,512,512,512,bf16\nmiddle,2048,4096,1024,bf16\n"


class List(SimTestCase):
    def names(self, *kind):
        lines = self.output("list", *kind).splitlines()
        return [line.split()[0] for line in lines if line.startswith("  ")]

    def test_has_every_shipped_config(self):
        for kind in ("topologies", "devices", "workloads", "models"):
            shipped = [path.stem for path in (ROOT / "configs" / kind).glob("*.json")]
            if kind == "topologies":
                shipped += [one["name"] for one in json.loads((ROOT / "configs" / "clusters.json").read_text(encoding="utf-8"))["clusters"]]
            self.assertEqual(self.names(kind), sorted(shipped))
            self.assertTrue(shipped)

    def test_everything_listed_can_be_explained(self):
        names = self.names()
        self.assertIn("ring_chunked", names)
        for name in names if EVERY_CASE else names[::4]:
            with self.subTest(name=name):
                text = self.output("explain", name)
                self.assertTrue(text.startswith(name + " ("), text)
                self.assertGreater(len(text.splitlines()), 1)

    def test_explains_parameters_and_sources(self):
        text = self.output("explain", "ring_chunked")
        for word in ("chunks", "agent", "copy_cus", "allowed", "default", "workloads: "):
            self.assertIn(word, text)
        self.assertIn("source", self.output("explain", "h200_4.json"))
        self.assertIn("/dma/engine_GBps = 50\n      What one engine sustains in total. No what-if of links moves it; sim new device scales it with their rate.\n      source: ", self.output("explain", "mi100"))
        tree = self.output("explain", "mi300x_64_fat_tree")
        self.assertIn('/fabric/1/type = "fat_tree"\n      Between nodes: leaf switches', tree)
        self.assertIn("/fabric/1/leaf_ports = 16\n      NICs on a leaf; ", tree)
        layer = self.output("explain", "llama3_70b_mlp_layer")
        self.assertIn('/operators/4/needs = ["down"]\n', layer)
        self.assertEqual(layer.count("Rows of A and C, after the gather."), 1)

    def test_schemas_are_what_the_tables_say(self):
        files = sorted((ROOT / "configs" / "schema").iterdir())
        self.assertEqual(len(files), 21)
        for file in files:
            with self.subTest(file=file.name):
                self.assertEqual(self.output("schema", file.name.removesuffix(".schema.json")), file.read_text(encoding="utf-8"))
        self.assert_refused(["schema", "devise"], "'devise' is no kind of file (did you mean 'device'?)")


class CostOfOne(SimTestCase):
    def cost(self, *args):
        return json.loads(self.output("cost", *args, "--format", "json"))

    def test_gemm(self):
        cost = self.cost("--device", "h200", "--gemm", "8192x2560x8192", "--dtype", "bf16")
        self.assertEqual(cost["device"], "h200")
        self.assertAlmostEqual(cost["time_us"], sum(cost["phases"].values()), places=9)
        flops = 2 * 8192 * 2560 * 8192
        self.assertAlmostEqual(cost["TFLOPS"], flops / cost["phases"]["body_us"] / 1e6, places=6)
        self.assertIn("time_us", self.output("cost", "--device", "h200", "--gemm", "8192x2560x8192"))

    def test_copy_by_each_agent(self):
        for agent, first in (("dma", "command_us"), ("cu", "launch_us")):
            cost = self.cost("--device", "mi300x", "--copy", "64MB", "--agent", agent)
            self.assertIn(first, cost["phases"])
            self.assertAlmostEqual(cost["GBps"], 64e6 / cost["time_us"] / 1e3, places=6)

    def test_sizes_have_units(self):
        times = [self.cost("--device", "mi300x", "--copy", size)["time_us"] for size in ("64MB", "64000KB", "64MiB")]
        self.assertEqual(times[0], times[1])
        self.assertLess(times[1], times[2])

    def test_more_compute_units_copy_no_slower(self):
        few, many = (self.cost("--device", "mi300x", "--copy", "64MB", "--agent", "cu", "--cus", cus)["time_us"]
                     for cus in ("1", "8"))
        self.assertLess(many, few)


class CostOfTable(SimTestCase):
    def setUp(self):
        super().setUp()
        self.table = ["cost", "--device", "h200", "--from", self.file("gemms.csv", GEMMS)]

    def test_csv_is_the_file_with_four_columns_more(self):
        lines = self.output(*self.table, "--format", "csv").splitlines()
        self.assertEqual([line.rsplit(",", 4)[0] for line in lines], GEMMS.splitlines())
        self.assertEqual(lines[0].split(",")[-4:], ["predicted_us", "gemm_library", "basis", "error_pct"])

    def test_predicts_the_kernel_alone(self):
        rows = list(csv.DictReader(io.StringIO(self.output(*self.table, "--format", "csv"))))
        one = json.loads(self.output("cost", "--device", "h200", "--gemm", "512x512x512", "--format", "json"))
        self.assertAlmostEqual(float(rows[1]["predicted_us"]), one["time_us"] - one["phases"]["launch_us"], places=9)

    def test_json_agrees_with_csv(self):
        of_csv = csv.DictReader(io.StringIO(self.output(*self.table, "--format", "csv")))
        of_json = json.loads(self.output(*self.table, "--format", "json"))
        self.assertEqual([dict(row, predicted_us=float(row["predicted_us"]), error_pct=float(row["error_pct"]) if row["error_pct"] else None)
                          for row in of_csv], of_json)
        self.assertEqual({row["gemm_library"] for row in of_json}, {"cuBLASLt 13.1.0"})
        self.assertEqual([row["id"] for row in of_json], ["large", "small", "middle"])


class CostOfLibraries(SimTestCase):
    def rows(self, table, *args, device="h200"):
        return json.loads(self.output("cost", "--device", device, "--from", str(table), "--format", "json", *args))

    def test_grouped_gemms(self):
        table = ROOT / "traces/h200_1/grouped/torch.csv"

        def errors(*args):
            rows = self.rows(table, *args)
            self.assertEqual(len({row["library"] for row in rows}), 1)
            return rows[0]["library"], statistics.mean(abs(row["predicted_us"] / float(row["us"]) - 1) for row in rows)

        library, error = errors("--library", "torch")
        self.assertEqual(library, "torch")
        self.assertLess(error, 0.06)
        self.assertEqual(self.rows(table, "--library", "torch"), [
            {**row, "what_if": {"device.gemm_library": "torch"}}
            for row in self.rows(table, "--what-if", "device.grouped_library=torch")
            for row in [{key: value for key, value in row.items() if key != "what_if"}]])
        library, error = errors()
        self.assertEqual(library, "tensorrt_llm")
        self.assertGreater(error, 0.2)

    def test_attention(self):
        table = self.file("decode.csv", "kv_dtype,batch,context,heads,kv_heads,head_dim\nbf16,16,8192,8,1,128\nfp8,16,8192,8,1,128\n")
        default, operator = self.rows(table), self.rows(table, "--attention", "tensorrt_llm")
        self.assertEqual([[row["library"] for row in rows] for rows in (default, operator)],
                         [["cudnn", "tensorrt_llm"], ["tensorrt_llm"] * 2])  # fp8 has one fit
        self.assertNotEqual(default[0]["predicted_us"], operator[0]["predicted_us"])
        self.assertEqual(default[1]["predicted_us"], operator[1]["predicted_us"])
        prefill = self.file("prefill.csv", "dtype,kv_dtype,batch,tokens,heads,kv_heads,head_dim\nbf16,bf16,1,4096,8,1,128\n")
        for device, name in (("b200", "tensorrt_llm"), ("mi300x", "primus_turbo")):
            self.assertEqual(self.rows(prefill, device=device)[0]["library"], name)
        done = self.sim("cost", "--device", "h200", "--from", prefill, "--format", "json", "--attention", "cudnn")
        self.assertIn("device.attention_library=cudnn: changes nothing", done.stderr)

    def test_unknown_names(self):
        for flags, message in (
                (["--library", "torhc"], "/gemm_library: is 'torhc' (did you mean 'torch'? allowed: mixed, tensorrt_llm, torch)"),
                (["--attention", "flash"], "/attention_library: is 'flash' (allowed: cudnn, tensorrt_llm)"),
                (["--what-if", "device.grouped_library=x"], "/grouped_library: is 'x' (allowed: tensorrt_llm, torch)")):
            self.assert_refused(["cost", "--device", "h200", "--gemm", "512x512x512", *flags], message)
        self.assert_refused(["cost", "--device", "mi250x", "--gemm", "512x512x512", "--library", "asm"], "(allowed: mixed)")


class CostOfExchanges(SimTestCase):
    ROWS = ("device,nodes,hidden,top_k,experts,tokens,sms\nh200,1,7168,8,256,4096,24\nh200,1,7168,8,256,4096,12\n"
            "h200,2,7168,8,256,4096,24\nh100,1,7168,8,256,4096,24\n")

    def rows(self, text, *args):
        return list(csv.DictReader(io.StringIO(self.output("cost", "--from", self.file("rows.csv", text), "--format", "csv", *args))))

    def test_normal_kernels(self):
        rows = self.rows(self.ROWS)
        self.assertEqual(list(rows[0])[-4:], ["dispatch_us", "combine_us", "basis", "error_pct"])
        one, fewer_sms, nodes, _ = [{key: float(row[key]) for key in ("dispatch_us", "combine_us")} for row in rows]
        for key in one:
            self.assertLess(1.3 * one[key], fewer_sms[key])  # 24 SMs are near the links' rate, 12 are not
            self.assertLess(1.3 * one[key], nodes[key])
        # fp8 in, bf16 out: 1.94 times the bytes.
        self.assertGreater(one["combine_us"], 1.5 * one["dispatch_us"])
        self.assertEqual({row["basis"] for row in rows}, {"fitted"})
        # Nobody measured more than two nodes.
        self.assertEqual(self.rows(self.ROWS.replace("h200,2,", "h200,4,"))[2]["basis"], "estimate")
        # A row's device goes before the command line's; without the column that of the command line counts.
        self.assertEqual(self.rows(self.ROWS, "--device", "b200"), rows)
        alone = "".join(line.split(",", 1)[1] for line in self.ROWS.splitlines(True))
        self.assertEqual(self.rows(alone, "--device", "h200")[0]["dispatch_us"], rows[0]["dispatch_us"])
        # A low-latency kernel, without sms, starts sooner.
        few = "nodes,hidden,top_k,experts,tokens{}\n1,7168,8,256,8{}\n"
        self.assertLess(float(self.rows(few.format("", ""), "--device", "h200")[0]["dispatch_us"]),
                        0.7 * float(self.rows(few.format(",sms", ",24"), "--device", "h200")[0]["dispatch_us"]))

    def test_mistakes(self):
        header = "device,nodes,hidden,top_k,experts,tokens"
        for text, *expected in ((f"{header}\nh20,1,7168,8,256,8\n", "rows.csv:2", "h20"),
                                (f"{header}\nmi300x,1,7168,8,256,8\n", "mi300x", "DeepEP"),
                                (f"{header}\nh200,1,7168,9,8,8\n", "rows.csv:2: top_k is '9'", "experts"),
                                (f"{header}\nh200,1,7168,8,100,8\n", "rows.csv:2: experts is '100'", "8 GPUs"),
                                (f"{header},dispatch_us\nh200,1,7168,8,256,8,1\n", "dispatch_us"),
                                ("nodes,hidden,top_k,experts,tokens\n1,7168,8,256,8\n", "--device"),
                                ("nodes,hidden,top_k,experts\n1,7168,8,256\n", "tokens")):
            self.assert_refused(["cost", "--from", self.file("rows.csv", text), "--format", "csv"], *expected)


class Batch(SimTestCase):
    def lines(self, text):
        return [json.loads(line) for line in text.splitlines()]

    def test_answers_in_order(self):
        schedules = ["serial", "ring_chunked", "shard_p2p"]
        configs = [{"topology": "h200_4", "schedule": name, "workload": SMALL["workload"]} for name in schedules]
        text = "\n".join(json.dumps(config) for config in configs) + "\n"
        results = self.lines(self.output("batch", self.file("runs.jsonl", text)))
        self.assertEqual([result["config"]["schedule"] for result in results], schedules)
        for config, result in zip(configs, results):
            alone = self.result("--config", self.file("one.json", config))
            self.assertEqual(without_clock(result), without_clock(alone))
        standard = self.lines(self.output("batch", "-", stdin=text))
        self.assertEqual([without_clock(r) for r in standard], [without_clock(r) for r in results])

    def test_bad_lines_are_answered_and_counted(self):
        bad = [dict(SMALL, schedule="ring_chunkd"), "{\"topology\": ", [1], dict(SMALL, params={"chunks": 0})]
        lines = [json.dumps(SMALL)] + [line if isinstance(line, str) else json.dumps(line) for line in bad]
        done = self.sim("batch", self.file("runs.jsonl", "\n".join(lines + [json.dumps(SMALL)]) + "\n"))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Asim: runs.jsonl: 4 of 6 [^\n]*\n\Z")
        results = self.lines(done.stdout)
        self.assertEqual([set(result) == {"schema", "error"} for result in results], [False] + 4 * [True] + [False])
        self.assertEqual(without_clock(results[0]), without_clock(results[-1]))
        for result, expected in zip(results[1:], ("ring_chunked", "line 3", "line 4", "/params/chunks")):
            self.assertIn(expected, result["error"])

    def test_blank_lines_are_skipped_and_the_last_needs_no_end(self):
        text = "\n" + json.dumps(SMALL) + "\r\n\n" + json.dumps(SMALL)
        self.assertEqual(len(self.lines(self.output("batch", self.file("runs.jsonl", text)))), 2)
