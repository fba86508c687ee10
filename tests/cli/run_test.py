"""A run: its three renderings, the files it writes, and how flags, files and defaults become one config."""
import csv
import io
import json
import re

from sim_case import PAIR, SMALL, SimTestCase, without_clock, without_command

RESULT_KEYS = {"own_kernel", "baseline", "baseline_us", "schema", "config", "makespan_us", "makespan_p10_us", "makespan_p90_us", "seeds", "serial_us",
               "gemm_us", "comm_us", "ideal_us", "speedup", "overlap_efficiency",
               "exposed_comm_us", "losses_us", "utilisation", "comm_cus", "staging_bytes", "energy_J", "confidence", "tasks", "engine",
               "simulated_gpus", "wall_ms", "gemm_library", "notes"}
LOSSES = {"decomposition", "contention", "fill_drain", "launch", "packing", "pattern"}


class Help(SimTestCase):
    def test_help_names_flags_and_commands(self):
        text = self.output("--help")
        for word in ("--topology", "--schedule", "--trace", "--dry-run", "list", "explain", "cost", "batch", "calibrate"):
            self.assertIn(word, text)

    def test_every_command_has_help(self):
        for command in ("list", "explain", "cost", "batch", "calibrate"):
            self.assertIn("Usage", self.output(command, "--help"))

    def test_no_arguments_is_help(self):
        self.assertEqual(self.output(), self.output("--help"))

    def test_version(self):
        self.assertRegex(self.output("--version"), r"\A\d+\.\d+\.\d+\n\Z")


class Text(SimTestCase):
    def test_fits_a_screen_and_says_what_matters(self):
        for topology, schedule in (("mi300x_8.json", "ring_chunked"), ("h200_4", "serial"), ("mi300x_16", "shard_p2p")):
            with self.subTest(topology=topology, schedule=schedule):
                text = self.output("--topology", topology, "--schedule", schedule)
                lines = text.splitlines()
                self.assertLess(len(lines), 40)
                self.assertLessEqual(max(len(line) for line in lines), 100)
                for word in ("llama3_70b", schedule, "makespan", "serial", "ideal", "speed-up", "overlap efficiency",
                             "exposed communication", "where the time was lost", "compute units", "HBM", "links",
                             "DMA engines", "GPU 0", "--trace"):
                    self.assertIn(word, text)

    def test_same_but_for_the_clock(self):
        masked = [re.sub(r"simulated in \S+ \S+", "", self.output(*PAIR)) for _ in range(2)]
        self.assertEqual(masked[0], masked[1])
        self.assertNotIn("simulated in", masked[0])


class JsonResult(SimTestCase):
    def test_keys(self):
        result = self.result(*PAIR)
        self.assertEqual(set(result), RESULT_KEYS)
        self.assertEqual(set(result["losses_us"]), LOSSES | {"host"})
        self.assertEqual(set(result["utilisation"]), {"cu", "hbm", "link", "dma"})
        self.assertEqual((result["schema"], result["engine"]), (1, result["config"]["engine"]))

    def test_energy_where_the_device_has_constants(self):
        energy = self.result(*PAIR)["energy_J"]
        self.assertEqual(set(energy), {"total", "idle", "active", "compute", "hbm", "links", "copy_kernels", "power_limit"})
        self.assertAlmostEqual(sum(energy.values()), 2 * energy["total"], places=9)
        self.assertGreater(energy["compute"], 0)
        self.assertIn("\nenergy  ", self.output(*PAIR))
        none = ("--topology", "mi300x_8", "--schedule", "serial")
        self.assertIsNone(self.result(*none)["energy_J"])
        self.assertNotIn("\nenergy", self.output(*none))
        row = next(csv.DictReader(io.StringIO(self.output(*none, "--format", "csv"))))
        self.assertEqual(row["energy_J.total"], "")

    def test_unspecified_orders_give_a_distribution(self):
        run = ("--topology", "h200_4", "--schedule", "hetero_fused_1d", "--set", "transfer=push")
        by_default, many = self.result(*run), self.result(*run, "--seeds", "40")
        self.assertEqual((by_default["seeds"], by_default["config"]["seeds"]), (15, 15))
        self.assertEqual(many["seeds"], 40)
        self.assertLess(many["makespan_p10_us"], many["makespan_p90_us"])
        for result in (by_default, many):
            self.assertLessEqual(result["makespan_p10_us"], result["makespan_us"])
            self.assertLessEqual(result["makespan_us"], result["makespan_p90_us"])
        self.assertIn("p90", self.output(*run))
        # Served as enqueued, or first come, first served: one order, one simulation.
        self.assertEqual(self.result(*PAIR)["seeds"], 1)
        certain = self.result("--topology", "mi300x_8", "--schedule", "shard_direct", "--seeds", "40")
        self.assertEqual(certain["seeds"], 1)
        self.assertEqual(certain["makespan_p10_us"], certain["makespan_p90_us"])
        self.assertNotIn("p90", self.output("--topology", "mi300x_8", "--schedule", "shard_direct"))

    def test_losses_add_up(self):
        for schedule in ("ring_chunked", "serial", "uniform_unfused_2d"):
            with self.subTest(schedule=schedule):
                result = self.result("--topology", "mi300x_8", "--schedule", schedule)
                lost = result["makespan_us"] - result["ideal_us"]
                self.assertAlmostEqual(sum(result["losses_us"].values()), lost, delta=1e-9 * result["makespan_us"])

    def test_ratios_follow_from_the_times(self):
        result = self.result(*PAIR)
        speedup = result["serial_us"] / result["makespan_us"]
        best = result["serial_us"] / result["ideal_us"]
        self.assertAlmostEqual(result["speedup"], speedup, places=12)
        self.assertAlmostEqual(result["overlap_efficiency"], (speedup - 1) / (best - 1), places=9)
        self.assertGreaterEqual(result["makespan_us"], result["gemm_us"])
        for kind, share in result["utilisation"].items():
            self.assertTrue(0 < share <= 1, (kind, share))

    def test_same_but_for_the_clock(self):
        self.assertEqual(without_clock(self.result(*PAIR)), without_clock(self.result(*PAIR)))

    def test_one_line(self):
        self.assertRegex(self.output(*PAIR, "--format", "json"), r"\A\{[^\n]*\}\n\Z")


class Csv(SimTestCase):
    def test_a_header_and_a_row_with_the_values_of_the_json(self):
        text = self.output(*PAIR, "--format", "csv")
        self.assertTrue(text.endswith("\n"))
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 1)
        row, result = rows[0], self.result(*PAIR)
        self.assertEqual((row["topology"], row["schedule"]), ("h200_4.json", "hetero_fused_1d"))
        for key in ("makespan_us", "serial_us", "ideal_us", "speedup", "exposed_comm_us"):
            self.assertEqual(float(row[key]), result[key], key)
        for loss in LOSSES:
            self.assertEqual(float(row["losses_us." + loss]), result["losses_us"][loss], loss)


class Trace(SimTestCase):
    def test_processes_tracks_spans_and_counters(self):
        result = self.result(*PAIR, "--trace", "out.json")
        self.assertEqual(self.files(), ["out.json"])
        events = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual({f"GPU {gpu}" for gpu in range(4)} - set(names.values()), set())
        tracks = {(event["pid"], event["tid"]): event["args"]["name"]
                  for event in events if event["name"] == "thread_name"}
        self.assertIn("compute", tracks.values())
        self.assertTrue(any(name.startswith("transfer") for name in tracks.values()))

        spans = [event for event in events if event["ph"] == "X" and names[event["pid"]] != "critical path"]
        self.assertEqual(len(spans), result["tasks"])
        for span in spans:
            self.assertIn((span["pid"], span["tid"]), tracks)
            self.assertGreaterEqual(min(span["ts"], span["dur"]), 0)
        self.assertAlmostEqual(max(span["ts"] + span["dur"] for span in spans), result["makespan_us"], delta=0.002)

        counters = [event for event in events if event["ph"] == "C"]
        for kind in ("hbm", "link"):
            self.assertTrue(any(kind in event["name"].lower() for event in counters), kind)
        self.assertTrue(all(event["args"]["GB/s"] >= 0 for event in counters))
        self.assertEqual({event["ph"] for event in events}, {"M", "X", "C", "s", "f"})

    def test_critical_path_and_arrows(self):
        """The path ends with the makespan and is marked in the tracks of the GPUs; arrows begin and end inside slices."""
        result = self.result(*PAIR, "--trace", "out.json", "--graph", "graph.json")
        events = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        spans = [event for event in events if event["ph"] == "X"]
        path = [span for span in spans if names[span["pid"]] == "critical path"]
        marked = [f"{names[span['pid']]}: {span['name']}" for span in spans
                  if span not in path and span.get("args", {}).get("critical path")]
        self.assertEqual(sorted(span["name"] for span in path), sorted(marked))
        self.assertAlmostEqual(path[-1]["ts"] + path[-1]["dur"], result["makespan_us"], delta=0.002)
        copies = [span["args"] for span in spans if span["cat"] == "copy"]
        self.assertTrue(copies)
        for copy in copies:
            self.assertLessEqual({"source", "destination", "bytes", "GB/s", "step"}, set(copy))
        arrows = [event for event in events if event["ph"] in "sf"]
        self.assertEqual(len(arrows), 2 * sum(len(waits) for _, waits in tasks_of(json.loads((self.folder / "graph.json").read_text()))))
        ends = {}
        for arrow in arrows:
            ends.setdefault(arrow["id"], {})[arrow["ph"]] = arrow["ts"]
            self.assertTrue(any(span["pid"] == arrow["pid"] and span["tid"] == arrow["tid"] and
                                span["ts"] <= arrow["ts"] <= span["ts"] + span["dur"] for span in spans), arrow)
        self.assertTrue(all(end["s"] <= end["f"] for end in ends.values()))

    def test_is_the_same_again(self):
        for name in ("one", "two"):
            self.output(*PAIR, "--trace", name)
        self.assertEqual(*[without_command((self.folder / name).read_bytes()) for name in ("one", "two")])


def tasks_of(plan):
    """GPU and waits of every task, with those of each rank."""
    for entry in plan["tasks"]:
        for line in entry.get("each_rank", [entry]):
            for gpu in range(plan["gpus"]) if "each_rank" in entry else [line["gpu"]]:
                yield gpu, line.get("after", [])


class Graph(SimTestCase):
    def test_json_has_every_task_and_edge(self):
        dry = json.loads(self.output(*PAIR, "--graph", "graph.json", "--dry-run"))
        graph = json.loads((self.folder / "graph.json").read_text(encoding="utf-8"))
        tasks = list(tasks_of(graph))
        self.assertEqual(len(tasks), dry["graph"]["tasks"])
        self.assertEqual(sum(len(waits) for _, waits in tasks), dry["graph"]["edges"])
        self.assertEqual({gpu for gpu, _ in tasks}, set(range(4)))
        self.assertEqual(graph["config"]["schedule"], "hetero_fused_1d")

    def test_dot_has_every_task(self):
        dry = json.loads(self.output(*PAIR, "--graph", "graph.dot", "--dry-run"))
        text = (self.folder / "graph.dot").read_text(encoding="utf-8")
        self.assertRegex(text, r"(?s)\Adigraph tasks \{.*\}\n\Z")
        self.assertEqual(len(re.findall(r"^ *t\d+ \[label=", text, re.M)), dry["graph"]["tasks"])
        self.assertIn("->", text)

    def test_beside_a_run(self):
        self.assertIn("makespan", self.output(*PAIR, "--graph", "graph.json"))
        self.assertEqual(self.files(), ["graph.json"])


class Config(SimTestCase):
    def test_dry_run_gives_a_config_that_gives_the_same_result(self):
        text = self.output(*PAIR, "--set", "chunks=2", "--dry-run")
        dry = json.loads(text)
        size = dry.pop("graph")
        self.assertGreater(min(size["tasks"], size["edges"]), 0)
        expected = self.result(*PAIR, "--set", "chunks=2")
        self.assertEqual(dry, expected["config"])
        self.assertEqual(size["tasks"], expected["tasks"])
        again = self.result("--config", self.file("config.json", text))
        self.assertEqual(without_clock(again), without_clock(expected))

    def test_file_equals_flags(self):
        by_flags = self.result(*PAIR, "--set", "chunks=2", "--gemm", "4096x1024x2048", "--dtype", "bf16",
                               "--collective", "all_gather")
        by_file = self.result("--config", self.file("config.json", SMALL))
        by_flags["config"]["workload"].pop("name"), by_file["config"]["workload"].pop("name")
        self.assertEqual(without_clock(by_flags), without_clock(by_file))

    def test_flags_override_the_file(self):
        name = self.file("config.json", SMALL)
        config = self.result("--config", name, "--topology", "h200_2", "--schedule", "ring_chunked", "--set", "chunks=3",
                             "--set", "gemm=chunk", "--gemm", "2048x512x1024", "--dtype", "fp16")["config"]
        self.assertEqual((config["topology"], config["schedule"]), ("h200_2.json", "ring_chunked"))
        self.assertEqual((config["params"]["chunks"], config["params"]["gemm"]), (3, "chunk"))
        self.assertEqual(config["workload"]["gemm"], {"m": 2048, "n": 512, "k": 1024, "dtype": "fp16"})
        kept = self.result("--config", name)["config"]
        self.assertEqual(kept["workload"]["gemm"], SMALL["workload"]["gemm"])
        self.assertEqual(kept["params"]["chunks"], 2)

    def test_set_takes_numbers_words_and_truth(self):
        params = self.result(*PAIR, "--set", "chunks=2", "--set", "agent=cu", "--set", "copy_cus=8", "--set",
                             "scatter=false")["config"]["params"]
        self.assertEqual((params["chunks"], params["agent"], params["copy_cus"], params["scatter"]), (2, "cu", 8, False))

    def test_collective_and_order(self):
        machine = ["--topology", "h200_4", "--gemm", "4096x1024x2048"]
        for collective, order, schedule in (("reduce_scatter", "gemm_first", "ring_chunked"),
                                            ("all_reduce", "gemm_first", "shard_direct"),
                                            ("all_to_all", "collective_first", "hetero_fused_1d"),
                                            ("all_to_all", "gemm_first", "uniform_fused_1d"),
                                            ("all_gather", "gemm_first", "flag_gated"),
                                            ("all_gather", "independent", "concurrent")):
            with self.subTest(collective=collective, order=order):
                result = self.result(*machine, "--schedule", schedule, "--collective", collective, "--order", order)
                workload = result["config"]["workload"]
                self.assertEqual((workload["collective"], workload["order"]), (collective, order))
                self.assertGreater(result["comm_us"], 0)

    def test_own_files_by_relative_path(self):
        (self.folder / "own").mkdir()
        workload = self.file("own/work.json", dict(SMALL["workload"], schema=1, name="mine"))
        self.assertEqual(self.result(*PAIR, "--workload", workload)["config"]["workload"]["name"], "mine")

    def test_effects_are_switched_off(self):
        machine = ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d"]
        every = self.result(*machine)
        for effect in ("contention", "launch", "packing", "decomposition"):
            with self.subTest(effect=effect):
                less = self.result(*machine, "--without", effect)
                self.assertGreater(every["losses_us"][effect], 0)
                self.assertEqual(less["losses_us"][effect], 0)
                self.assertLess(less["makespan_us"], every["makespan_us"])
                self.assertEqual(less["config"]["without"], [effect])
        both = self.result(*machine, "--without", "contention,launch")
        self.assertEqual(both["config"]["without"], ["contention", "launch"])

    def test_another_cost_model(self):
        roofline = self.result(*PAIR, "--cost-model", "gemm_roofline")
        self.assertEqual(roofline["config"]["cost_models"], ["gemm_roofline"])
        self.assertLess(roofline["gemm_us"], self.result(*PAIR)["gemm_us"])
