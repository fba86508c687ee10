"""Mistakes in names, parameters and files: one line that says where and what is allowed, exit 2, nothing written."""
import json

from sim_case import PAIR, ROOT, SMALL, SimTestCase

MESH = ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d"]


class UnknownNames(SimTestCase):
    def test_the_nearest_is_named(self):
        machine, schedule = PAIR[:2], PAIR[2:]
        self.assert_refused([*machine, "--schedule", "ring_chunkd"], "'ring_chunkd'", "'ring_chunked'")
        self.assert_refused([*schedule, "--topology", "mi300x_80"], "mi300x_80", "'mi300x_8'")
        self.assert_refused([*PAIR, "--workload", "ficco_g99"], "ficco_g99", "did you mean 'ficco_g9'")
        self.assert_refused([*PAIR, "--set", "chunk=4"], "/params/chunk", "'chunks'")
        self.assert_refused([*PAIR, "--set", "agent=dna"], "/params/agent", "'dma'")
        self.assert_refused([*PAIR, "--dtype", "bf61"], "/workload/gemm/dtype", "'bf16'")
        self.assert_refused([*PAIR, "--collective", "all_gathr"], "/workload/collective", "'all_gather'")
        self.assert_refused([*PAIR, "--without", "contentoin"], "'contention'")
        self.assert_refused([*PAIR, "--engine", "simgird"], "'simgrid'")
        self.assert_refused([*PAIR, "--cost-model", "gemm_tile"], "'gemm_tiled'")

    def test_all_are_named_where_none_is_near(self):
        self.assert_refused([*PAIR, "--order", "later"], "/workload/order", "collective_first", "gemm_first")
        self.assert_refused([*PAIR, "--set", "zzzzzz=1"], "allowed: chunks, agent")

    def test_what_is_missing_is_named(self):
        self.assert_refused(PAIR[:2], "/schedule", "missing")
        self.assert_refused(PAIR[2:], "/topology", "missing")

    def test_line_breaks_in_names_stay_in_one_line(self):
        self.assert_refused([*PAIR[2:], "--topology", "a\nb"], "a b")
        self.assert_refused([*PAIR, "--gemm", "1x2\r\nx3"])


    def test_case_is_no_distance(self):
        self.assert_refused([*PAIR, "--dtype", "BF16"], "/gemm/dtype: is 'BF16' (did you mean 'bf16'?)")
        self.assert_refused(["cost", "--device", "h200", "--gemm", "8x8x8", "--dtype", "BF16"], "did you mean 'bf16'?")

    def test_a_part_of_many_names(self):
        error = self.sim(*PAIR, "--workload", "llama").stderr
        self.assertIn("did you mean one of 'llama", error)
        self.assertRegex(error, r"and \d+ more\?\)")
        self.assertEqual(error.count("', '"), 15)  # between 16 names


class Parameters(SimTestCase):
    def test_chunks(self):
        for value in ("0", "-1", "1.5", "four", "true", "1e9", "99999999999999999999", "null", "", "[4]"):
            self.assert_refused([*PAIR, "--set", "chunks=" + value], "/params/chunks", "whole number from 1 to")

    def test_more_chunks_than_rows(self):
        # 64 rows over 8 GPUs are shards of 8 rows.
        self.assert_refused([*MESH, "--gemm", "64x64x64", "--set", "chunks=9"], "chunks is 9", "allowed: 1 to 8")
        self.assert_refused([*MESH, "--gemm", "7x64x64"], "7", "8 GPUs")

    def test_compute_units_of_copies(self):
        self.assert_refused([*PAIR, "--set", "copy_cus=8"], "/params/copy_cus", "agent 'cu'")
        self.assert_refused([*PAIR, "--set", "copy_priority=high"], "/params/copy_priority", "agent 'cu'")
        self.assert_refused([*PAIR, "--seeds", "0"], "--seeds", "1")
        self.assert_refused([*MESH, "--set", "agent=cu", "--set", "copy_cus=44"], "/params/copy_cus", "from 1 to 43")
        self.assert_refused([*MESH, "--set", "agent=cu", "--set", "copy_cus=0"], "/params/copy_cus", "from 1 to 43")

    def test_of_another_schedule(self):
        self.assert_refused([*PAIR[:2], "--schedule", "serial", "--set", "chunks=2"], "/params/chunks", "allowed: agent")

    def test_assignment(self):
        for text in ("chunks", "=4"):
            self.assert_refused([*PAIR, "--set", text], "expected NAME=VALUE")


class WhatIf(SimTestCase):
    def test_keys(self):
        self.assert_refused([*PAIR, "--what-if", "topology.fabric.0.bandwith_GBps=2x"], "/what_if/topology.fabric.0.bandwith_GBps",
                            "h200_4.json", "'bandwidth_GBps'")
        self.assert_refused([*PAIR, "--what-if", "device.dmaa.peer_engines=2"], "h200.json", "'dma'")
        self.assert_refused([*PAIR, "--what-if", "workload.gemm.m=2"], "'workload'", "expected topology.KEY or device.KEY")
        self.assert_refused([*PAIR, "--what-if", "device.dma=2"], "/dma of", "expected one value of it", "order")
        for text in ("device.dma.peer_engines", "=4"):
            self.assert_refused([*PAIR, "--what-if", text], "--what-if is '" + text + "'", "expected KEY=VALUE")

    def test_values(self):
        self.assert_refused([*PAIR, "--what-if", "device.dma.peer_engines=0"], "h200.json with what_if: /dma/peer_engines/value:",
                            "from 1 to 1024")
        self.assert_refused([*PAIR, "--what-if", "device.dma.peer_engines=2.5"], "whole number")
        self.assert_refused([*PAIR, "--what-if", "device.energy.hbm_pJ_per_byte=-1"], "/energy/hbm_pJ_per_byte/value: is -1")
        self.assert_refused([*PAIR, "--what-if", "device.energy.idle_W=-1x"], "idle_W")
        self.assert_refused([*PAIR, "--what-if", "device.dma.peer_engines=many"], "expected a number, or a factor")
        self.assert_refused([*PAIR, "--what-if", "device.dma.order=lifo"], "'lifo'", "'fifo'")

    def test_in_a_config(self):
        for value in (4, [], None, "2x"):
            name = self.file("config.json", dict(SMALL, what_if=value))
            self.assert_refused(["--config", name], "config.json: /what_if: is", "expected an object")
            self.assert_refused(["--config", name, "--what-if", "device.dma.peer_engines=2"], "config.json: /what_if: is")
        name = self.file("config.json", dict(SMALL, what_if={"device.dma.peer_engine": 2}))
        self.assert_refused(["--config", name], "config.json: /what_if/device.dma.peer_engine:", "'peer_engines'")


class Sizes(SimTestCase):
    def test_gemm_flag(self):
        for text in ("0x1x1", "1x0x1", "-5x8x8", "1e30x1x1", "1000000001x1x1", "99999999999999999999x1x1", "8x8", "8x8x8x8",
                     "8x8x8.5", "8X8X8", " 8x8x8", "axbxc", "nanx1x1"):
            self.assert_refused([*PAIR, "--gemm", text], "--gemm is '" + text + "'", "expected MxNxK")

    def test_gemm_in_a_config(self):
        for value in (0, -5, 1.5, 1e30, 1e12, 10**25, "8", None, [8], True):
            workload = {"collective": "all_gather", "gemm": {"m": value, "n": 8, "k": 8, "dtype": "bf16"}}
            name = self.file("config.json", dict(SMALL, workload=workload))
            self.assert_refused(["--config", name], "config.json: /workload/gemm/m:", "whole number from 1 to")

    def test_bytes_of_an_operator(self):
        for value in (0, -1, 1e30, "1", None):
            collective = {"name": "gather", "type": "collective", "collective": "all_gather", "bytes": value}
            name = self.file("work.json", {"schema": 1, "operators": [collective]})
            self.assert_refused(["--topology", "h200_4", "--schedule", "concurrent", "--workload", name],
                                "work.json: /operators/0/bytes:")


class Files(SimTestCase):
    def test_missing(self):
        self.assert_refused(["--config", "nowhere.json"], "nowhere.json", "no such file")
        self.assert_refused([*PAIR, "--workload", "./nowhere.json"], "./nowhere.json", "no such file")
        self.assert_refused([*PAIR[2:], "--topology", "no/where.json"], "no/where.json", "no such file")

    def test_directory(self):
        (self.folder / "folder").mkdir()
        self.assert_refused(["--config", "folder"], "folder", "is a directory")
        self.assert_refused([*PAIR, "--workload", "folder"], "folder", "is a directory")
        self.assert_refused([*PAIR[2:], "--topology", "folder"], "folder", "is a directory")
        for name in ("mi300x", "h200_2", "llama3_8b"):  # as results may be called
            (self.folder / name).mkdir()
        self.assertIn("mi300x_8", self.output("list"))
        self.output("model", "llama3_8b", "--topology", "h200_2")

    def test_not_json(self):
        whole = json.dumps(SMALL)
        for text in ("", whole[:30], whole[:-1], whole + "}", "hello", "'a'", whole.replace(":", "=", 1)):
            self.assert_refused(["--config", self.file("config.json", text)], "config.json: not valid JSON:")

    def test_numbers_that_are_none(self):
        for number in ("NaN", "Infinity", "-Infinity", "1e999"):
            text = json.dumps(dict(SMALL, params={"chunks": "?"})).replace('"?"', number)
            self.assert_refused(["--config", self.file("config.json", text)], "config.json: not valid JSON:")

    def test_key_given_twice(self):
        text = json.dumps(SMALL)[:-1] + ', "schedule": "serial"}'
        self.assert_refused(["--config", self.file("config.json", text)], "config.json", "'schedule'", "twice")

    def test_wrong_types(self):
        for pointer, config in {"": [1], "/topology": dict(SMALL, topology=5), "/params": dict(SMALL, params=[]),
                                "/workload": dict(SMALL, workload=7), "/workload/gemm": dict(SMALL, workload={
                                    "collective": "all_gather", "gemm": "8x8x8"}),
                                "/without": dict(SMALL, without="contention"), "/schema": dict(SMALL, schema=2)}.items():
            self.assert_refused(["--config", self.file("config.json", config)], "config.json: " + (pointer or "/") + ":",
                                "expected")

    def test_nested_too_deep(self):
        for text in ("[" * 80_000 + "]" * 80_000, '{"a":' * 80_000):
            name = self.file("deep.json", text)
            for args in (["--config", name], [*PAIR, "--workload", name], ["sweep", name], ["compare", name],
                         ["import", name, "--out", "out.json"]):
                self.assert_refused(args, "deep.json: is nested more than 100 levels deep")

    def test_of_another_kind(self):
        model = self.file("config.json", {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096})
        for args in (["--config", model], ["import", model, "--out", "out.json"], [*PAIR, "--workload", model],
                     ["compare", model], ["sweep", model, "--out", "out"], [*PAIR[2:], "--topology", "./" + model]):
            self.assert_refused(args, "config.json: is the config of a Hugging Face model, expected", "sim model FILE")
        trace = self.file("trace.json", {"traceEvents": []})
        self.assert_refused(["compare", trace], "is a Chrome trace", "expected a measured case", "sim import")
        self.assert_refused(["--config", str(ROOT / "configs/sweeps/chunk_size.json")], "is a sweep", "sim sweep FILE")
        run = self.file("run.json", SMALL)
        self.assert_refused(["sweep", run, "--out", "out"], "is a run config, expected a sweep", "sim --config FILE")

    def test_a_workload_that_is_none(self):
        for content, expected in (([1], "work.json: /: is [1], expected an object"),
                                  ({"collective": "all_gather", "gemm": 7}, "work.json: /gemm: is 7, expected an object")):
            self.assert_refused([*PAIR, "--workload", self.file("work.json", content), "--dtype", "bf16"], expected)

    def test_unknown_keys(self):
        self.assert_refused(["--config", self.file("config.json", dict(SMALL, schedul="serial"))],
                            "config.json: /schedul:", "'schedule'")
        gemm = dict(SMALL["workload"]["gemm"], dtyp="bf16")
        work = self.file("work.json", dict(SMALL["workload"], gemm=gemm))
        self.assert_refused([*PAIR, "--workload", work], "work.json: /gemm/dtyp:", "'dtype'")

    def test_missing_key(self):
        work = self.file("work.json", {"collective": "all_gather", "gemm": {"m": 8, "n": 8, "k": 8}})
        self.assert_refused([*PAIR, "--workload", work], "work.json: /gemm/dtype:", "missing")


class Topologies(SimTestCase):
    def setUp(self):
        super().setUp()
        self.shipped = json.loads((ROOT / "configs/topologies/h200_2.json").read_text(encoding="utf-8"))

    def refused(self, change, *expected):
        name = self.file("machine.json", dict(self.shipped, **change))
        self.assert_refused(["--topology", name, "--schedule", "hetero_fused_1d"], *expected)

    def test_the_shipped_one_works_as_a_file(self):
        name = self.file("machine.json", self.shipped)
        self.assertIn("makespan", self.output("--topology", name, "--schedule", "hetero_fused_1d"))

    def test_unreachable_peer(self):
        self.refused({"fabric": []}, "no route from gpu", "/fabric")

    def test_unknown_key(self):
        self.refused({"fabrik": []}, "machine.json: /fabrik:", "'fabric'")
        self.refused({"fabric": [dict(self.shipped["fabric"][0], speed=3)]}, "machine.json: /fabric/0/speed:")

    def test_unknown_device(self):
        self.refused({"device": "h20.json"}, "machine.json: /device:", "'h200.json'")

    def test_absurd_numbers(self):
        for gpus in (0, -2, 1.5, 10**6):
            self.refused({"gpus_per_node": gpus}, "machine.json: /gpus_per_node:")
        for rate in (0, -1, 1e30, "385"):
            group = dict(self.shipped["fabric"][0], bandwidth_GBps={"value": rate, "source": "test"})
            self.refused({"fabric": [group]}, "machine.json: /fabric/0/bandwidth_GBps/value:")

    def test_a_value_without_source(self):
        group = dict(self.shipped["fabric"][0], bandwidth_GBps={"value": 385})
        self.refused({"fabric": [group]}, "machine.json: /fabric/0/bandwidth_GBps/source:", "missing")


class Workloads(SimTestCase):
    def test_schedule_that_does_not_serve_it(self):
        machine = PAIR[:2]
        self.assert_refused([*machine, "--schedule", "ring_chunked", "--collective", "all_to_all"], "'ring_chunked'",
                            "does not serve", "schedules that do: serial")
        alone = ["--workload", "bert_base_b32_n128_fp32"]  # one GPU's
        self.assert_refused([*PAIR, *alone], "/schedule:", "serves no pair", "whole lists are served by serial and concurrent")

    def test_schedules_of_a_list(self):
        run = {"topology": "h200_4", "schedule": "serial", "workload": "llama3_70b_mlp_layer"}
        for schedules, reason in (({"gate": {"schedule": "t3"}}, "/schedules/gate: is no GEMM of the list (did you mean"),
                                  ({"gate_up": {"schedule": "t3"}}, "/schedules/gate_up: is in no pair that 't3' serves"),
                                  ({"gate_up": {"schedule": "t4"}}, "schedule 't4' is not known (did you mean 't3'?)"),
                                  ({"gate_up": "t3"}, "/schedules/gate_up: is \"t3\", expected an object")):
            self.assert_refused(["--config", self.file("run.json", {**run, "schedules": schedules})], reason)

    def test_operator_list_cannot_be_changed(self):
        layer = [*PAIR[:2], "--schedule", "serial", "--workload", "llama3_70b_mlp_layer"]
        for flags in (["--gemm", "8x8x8"], ["--dtype", "fp16"], ["--collective", "all_gather"]):
            self.assert_refused([*layer, *flags], "llama3_70b_mlp_layer.json", "lists operators", "--gemm")

    def test_orders_that_make_no_sense(self):
        self.assert_refused([*PAIR, "--order", "gemm_first"], "gemm > all_gather", "uniform_unfused_1d")
        self.assert_refused([*PAIR, "--order", "gemm_first", "--shard-dim", "k"], "/workload/shard_dim", "before a GEMM")
        self.assert_refused([*PAIR, "--collective", "reduce_scatter", "--order", "collective_first"], "/workload/order")

    def test_needs_of_an_operator(self):
        gemm = {"name": "up", "type": "gemm", "m": 8, "n": 8, "k": 8, "dtype": "bf16", "needs": ["gathr"]}
        gather = {"name": "gather", "type": "collective", "collective": "all_gather", "bytes": 4096}
        name = self.file("work.json", {"schema": 1, "operators": [gather, gemm]})
        self.assert_refused(["--topology", "h200_4", "--schedule", "concurrent", "--workload", name],
                            "work.json: /operators/1/needs:", "'gather'")
