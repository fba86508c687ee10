"""sim advise from outside: its renderings and its errors."""
import csv
import io
import json

from sim_case import SimTestCase

SCENARIO = ["advise", "--topology", "mi300x_8", "--gemm", "8192x2560x8192"]


class Advise(SimTestCase):
    def test_best_of_all_candidates_is_first(self):
        advice = self.result(*SCENARIO, "--top", "2")
        times = [one["makespan_us"] for one in advice["candidates"]]
        self.assertGreater(len(times), 100)
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(advice["best"]), 2)
        self.assertAlmostEqual(advice["best"][0]["makespan_us"], times[0])
        self.assertGreaterEqual(advice["best_shard_level"]["regret"], 0)
        for one in (*advice["candidates"], *advice["best"]):
            self.assertAlmostEqual(one["speedup"], advice["baseline"]["makespan_us"] / one["makespan_us"])
        first, second = ((run["config"]["schedule"], run["config"]["params"]["agent"]) for run in advice["best"])
        self.assertNotEqual(first, second)
        self.assertEqual(advice["best"][1]["makespan_us"], advice["next_choice"]["candidate"]["makespan_us"])
        self.assertAlmostEqual(advice["next_choice"]["margin"], advice["next_choice"]["candidate"]["regret"])
        losses = [run["losses_us"] for run in advice["best"]]
        self.assertIn(advice["next_choice"]["decided_by"], losses[0])

    def test_all_rows_have_one_host(self):
        program = ["--topology", "h200_8", "--gemm", "8192x2560x8192"]
        advice = self.result("advise", *program)
        self.assertEqual(advice["host"], "threads")
        by_threads = {one["name"]: one["makespan_us"] for one in self.result("advise", *program, "--host", "threads")["presets"]}
        self.assertTrue(advice["presets"])
        for one in advice["presets"]:
            self.assertEqual(one["makespan_us"], by_threads[one["name"]])
        text = self.output("advise", *program)
        self.assertIn("threads, in every row", text)
        self.assertNotIn(" 0.0 % faster", text)

    def test_a_run_and_advice_give_one_speed_up(self):
        """By default, with the host said, and in the rows of advice; on machines that were measured and on others."""
        gemm = ["--gemm", "8192x2560x8192"]
        for topology in ("h200_8", "h100_8", "b200_8", "h200_4", "mi300x_8", "mi355x_8"):
            advice = self.result("advise", "--topology", topology, *gemm)
            row = next(one for one in advice["candidates"]
                       if one["schedule"] == "shard_p2p" and (one["params"]["agent"], one["params"]["transfer"]) == ("dma", "pull"))
            run = ["--topology", topology, "--schedule", "shard_p2p", "--set", "agent=dma", "--set", "transfer=pull", *gemm]
            for host in ([], ["--host", "threads"]):
                with self.subTest(topology=topology, host=host):
                    result = self.result(*run, *host)
                    self.assertAlmostEqual(result["speedup"], row["speedup"], places=9)
                    self.assertEqual(result["baseline"], advice["baseline"]["name"])
                    self.assertLess(result["speedup"], 2)

    def test_in_a_program_that_repeats_the_operator(self):
        program = ["--topology", "h200_2", "--gemm", "4096x4096x4096", "--host", "pytorch_eager", "--steady"]
        advice = self.result("advise", *program)
        cool = self.result("advise", *program[:4])
        self.assertNotEqual(advice["candidates"][0]["makespan_us"], cool["candidates"][0]["makespan_us"])
        self.assertNotIn("steady", advice)
        presets = {one["name"]: one["makespan_us"] for one in advice["presets"]}
        self.assertEqual(list(presets.values()), sorted(presets.values()))
        for name in ("async_tp", "te_ring_exchange"):
            self.assertEqual(presets[name], self.result(*program, "--schedule", name)["makespan_us"])
        self.assertIn("as libraries run them", self.output("advise", *program))
        self.assertNotIn("flux_ag_gemm", [one["name"] for one in self.result("advise", *program, "--kernels", "library")["presets"]])
        lists = ["--topology", "h200_8", "--workload", "llama3_70b_mlp_layer", "--steady"]
        of_pairs = self.result("advise", *lists)
        self.assertEqual(of_pairs["presets"], [])
        self.assertLess(self.result("advise", *lists[:4])["pairs"]["makespan_us"], of_pairs["pairs"]["makespan_us"])

    def test_a_what_if_changes_the_machine_as_in_a_run(self):
        change = ["--what-if", "device.gemm.bf16.peak_TFLOPS=2x", "--what-if", "device.copy_kernel.default_cus=1x"]
        advice = self.sim("advise", *SCENARIO[1:], *change, "--format", "json")
        self.assertEqual(advice.returncode, 0, advice.stderr)
        self.assertIn("device.copy_kernel.default_cus=1x: changes nothing", advice.stderr)
        advice = json.loads(advice.stdout)
        self.assertEqual(advice["what_if"]["device.gemm.bf16.peak_TFLOPS"], "2x")
        self.assertEqual(len(advice["notes"]), 1)
        best = advice["candidates"][0]
        params = [flag for name, value in best["params"].items() for flag in ("--set", f"{name}={value}")]
        run = self.result(*SCENARIO[1:], "--schedule", best["schedule"], *params, *change[:2])
        self.assertAlmostEqual(run["makespan_us"], best["makespan_us"])
        before = self.result(*SCENARIO)
        self.assertLess(best["makespan_us"], before["candidates"][0]["makespan_us"])
        self.assertNotIn("what_if", before)
        text = self.sim("advise", *SCENARIO[1:], *change).stdout
        self.assertIn("what if    device.gemm.bf16.peak_TFLOPS = 2x", text)
        self.assertIn("note       what-if device.copy_kernel.default_cus=1x: changes nothing", text)
        self.assert_refused([*SCENARIO, "--what-if", "device.dma.engine_GBs=2x"], "'engine_GBps'")

    def test_a_run_of_the_advice_takes_as_long_as_advised(self):
        best = self.result(*SCENARIO)["candidates"][0]
        settings = [word for name, value in best["params"].items() for word in ("--set", f"{name}={value}")]
        run = self.result("--topology", "mi300x_8", "--gemm", "8192x2560x8192", "--schedule", best["schedule"], *settings)
        self.assertAlmostEqual(run["makespan_us"], best["makespan_us"])

    def test_agents(self):
        advice = self.result(*SCENARIO, "--agent", "cu")
        self.assertEqual({one["params"]["agent"] for one in advice["candidates"]}, {"cu"})
        self.assertIn("library", {one["params"].get("algorithm") for one in advice["candidates"]})
        # What --agent leaves out is still the baseline.
        text = self.output("advise", "--topology", "h200_4", "--workload", "llama3_70b_attn_out_forward",
                           "--agent", "dma", "--seeds", "3")
        self.assertNotRegex(text, r"regret\s+-")
        self.assertIn("speed-up over serial/-/dma/pull, ", text)

    def test_kernels(self):
        any_kernels = self.result(*SCENARIO)
        library = self.result(*SCENARIO, "--kernels", "library")
        self.assertEqual({one["schedule"] for one in any_kernels["candidates"] if one["own_kernel"]}, {"flag_gated"})
        self.assertEqual({one["own_kernel"] for one in library["candidates"]}, {False})
        self.assertTrue(any_kernels["candidates"][0]["own_kernel"])
        best = any_kernels["best_library_kernels"]
        self.assertGreater(best["regret"], 0)
        self.assertEqual(best["params"], library["candidates"][0]["params"])
        self.assertEqual(best["makespan_us"], library["candidates"][0]["makespan_us"])
        self.assertEqual(self.result(*SCENARIO, "--kernels", "any")["candidates"], any_kernels["candidates"])
        text = self.output(*SCENARIO)
        self.assertRegex(text, r"  1  flag_gated/\S+ +\S+ us  \+0\.0 %   speed-up \S+   own kernel\n")
        self.assertEqual(text.count("\nown kernel: "), 1)
        self.assertRegex(text, r"\n  best with library kernels +\S+ us   1\.\d+ x   hetero_fused_2d/")
        self.assertNotIn("own kernel", self.output(*SCENARIO, "--kernels", "library"))

    def test_renderings(self):
        text = self.output(*SCENARIO)
        for words in ("speed-up", "decided by", "best shard-level", "next choice  "):
            self.assertIn(words, text)
        rows = list(csv.DictReader(io.StringIO(self.output(*SCENARIO, "--format", "csv"))))
        self.assertEqual(rows[0]["rank"], "1")
        self.assertEqual(rows[0]["regret"], "0.0")
        self.assertGreater(float(rows[0]["speedup"]), 1)
        self.assertEqual(list(rows[0])[-8:-5], ["own_kernel", "pair", "gemm_library"])
        self.assertEqual({row["own_kernel"] for row in rows if row["schedule"] == "flag_gated"}, {"true"})
        self.assertEqual({row["own_kernel"] for row in rows if row["schedule"] != "flag_gated"}, {"false"})

    def test_any_workload(self):
        for workload in ("llama3_70b_independent", "llama3_70b_mlp_layer", "llama3_70b_qkv_wgrad"):
            with self.subTest(workload=workload):
                self.assertIn("candidates simulated",
                              self.output("advise", "--topology", "mi300x_8", "--workload", workload, "--top", "1"))

    def test_pairs_of_a_list(self):
        layer = ["advise", "--topology", "h200_8", "--workload", "llama3_70b_mlp_layer"]
        advice = self.result(*layer)
        pairs = advice["pairs"]
        self.assertEqual([one["pair"] for one in pairs["choices"]], ["ag > gate_up", "down > rs"])
        self.assertLess(pairs["makespan_us"], advice["candidates"][0]["makespan_us"])
        self.assertLessEqual(pairs["makespan_us"], pairs["one_for_all"]["makespan_us"])
        self.assertAlmostEqual(pairs["speedup"], advice["baseline"]["makespan_us"] / pairs["makespan_us"])
        # What is advised runs as advised, and another choice for one pair takes as much longer as its margin.
        run = pairs["run"]["config"]
        self.assertAlmostEqual(self.result("--config", self.file("run.json", run))["makespan_us"], pairs["makespan_us"], 3)
        following = pairs["choices"][1]["next_choice"]
        run["schedules"]["down"] = {"schedule": following["schedule"], "params": following["params"]}
        self.assertAlmostEqual(self.result("--config", self.file("next.json", run))["makespan_us"],
                               (1 + following["margin"]) * pairs["makespan_us"], 3)
        text = self.output(*layer)
        self.assertIn("a schedule for each pair, chosen by the time of the whole list: ", text)
        self.assertRegex(text, r"\n  ag > gate_up +\S+/.*\n      next choice  ")
        rows = [row for row in csv.DictReader(io.StringIO(self.output(*layer, "--format", "csv"))) if row["pair"]]
        self.assertEqual([(row["pair"], row["rank"]) for row in rows],
                         [(pair, rank) for pair in ("ag > gate_up", "down > rs") for rank in ("1", "2")])
        self.assertEqual(rows[0]["schedule"], pairs["choices"][0]["schedule"])
        for flags in (["--kernels", "library"], ["--agent", "dma"]):
            chosen = self.result(*layer, *flags)["pairs"]["choices"]
            self.assertTrue(all(one["params"]["agent"] == "dma" or flags[0] == "--kernels" for one in chosen))
            self.assertFalse(any(one["own_kernel"] and flags[0] == "--kernels" for one in chosen))
        self.assertNotIn("pairs", self.result(*SCENARIO))
        lonely = {"operators": [{"name": "g", "type": "gemm", "m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}]}
        self.assertNotIn("pairs", self.result("advise", "--topology", "h200_8", "--workload", self.file("lonely.json", lonely)))
        bad = {"operators": [{"name": "c", "type": "collective", "collective": "all_gather", "bytes": 64, "dtype": "bf16",
                              "group": {"size": 3}}]}
        self.assert_refused(["advise", "--topology", "h200_8", "--workload", self.file("bad.json", bad)], "group of operator 'c'", "groups of 3")

    def test_refusals(self):
        gemm = ["--gemm", "4096x4096x4096"]
        self.assert_refused(["advise", "--topology", "mi300_8", *gemm], "mi300_8", "did you mean 'mi300x_8'?")
        self.assert_refused(["advise", *gemm], "/topology: is missing")
        self.assert_refused(["advise", "--topology", "mi300x_1", *gemm], "one GPU")
        self.assert_refused(["advise", "--topology", "mi300x_8", "--gemm", "8x8"], "--gemm", "MxNxK")
        self.assert_refused(["advise", "--topology", "mi300x_8", "--gemm", "4x8x8"], "gemm.m is 4", "8 GPUs")
        self.assert_refused(["advise", "--topology", "mi300x_8", "--collective", "reduce_scatter", "--order",
                             "collective_first"], "order", "reduce_scatter")
        self.assert_refused([*SCENARIO, "--kernels", "libary"], "--kernels", "libary", "library")
        for gone in ("--judge", "--fit", "--simulate", "--constants", "--traces"):
            self.assert_refused([*SCENARIO, gone, "x"], gone)
