"""Which number of the machine matters most: 'sim sensitivity' says what runs with changed values say."""
import csv
import io

from sim_case import SimTestCase

RUN = ["--topology", "mi300x_8", "--schedule", "shard_p2p", "--set", "agent=dma", "--gemm", "8192x8192x8192"]


class Sensitivity(SimTestCase):
    def test_a_row_is_what_a_what_if_gives(self):
        result = self.result("sensitivity", *RUN)
        self.assertEqual(result["makespan_us"], self.result(*RUN)["makespan_us"])
        values = {one["key"]: one for one in result["values"]}
        for key in ("device.compute_units", "topology.fabric.0.bandwidth_GBps", result["values"][0]["key"]):
            one = values[key]
            for side in ("low", "high"):
                run = self.sim(*RUN, "--what-if", f"{key}={one[side]['value']}", "--format", "csv")
                row = next(csv.DictReader(io.StringIO(run.stdout)))
                self.assertAlmostEqual(float(row["makespan_us"]), one[side]["makespan_us"], msg=key)
        # 304 * 1.1 = 334.4 and 304 * 0.9 = 273.6, rounded; the GEMM's units and rate move along.
        units = values["device.compute_units"]
        self.assertEqual((units["low"]["value"], units["high"]["value"]), (274, 334))
        self.assertIn("device.gemm.bf16.peak_TFLOPS", units["moves"])
        self.assertLess(units["high"]["change"], 0)
        self.assertEqual(values["device.dma.peer_engines"]["high"]["value"], 15)
        self.assertNotIn("device.gemm.fp8.peak_TFLOPS", values)
        effects = [one["effect"] for one in result["values"]]
        self.assertEqual(effects, sorted(effects, reverse=True))
        self.assertGreater(effects[0], 0.01)
        self.assertEqual(values["device.gemm.bf16.overlap_exponent"]["mark"], "fitted")
        self.assertEqual(values["device.dma.strided_run_bytes"]["mark"], "estimate")

    def test_forms_of_output(self):
        text = self.output("sensitivity", *RUN, "--top", "3", "--by", "5")
        self.assertRegex(text, r"schedule shard_p2p: makespan [0-9.]+ us\n")
        self.assertRegex(text, r"\n(topology|device)\.\S+ .* [+-][0-9.]+ % +[+-][0-9.]+ %\n")
        self.assertIn("more values change less", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        rows = list(csv.DictReader(io.StringIO(self.output("sensitivity", *RUN, "--format", "csv"))))
        self.assertEqual(len(rows), len(self.result("sensitivity", *RUN)["values"]))
        self.output("sensitivity", *RUN, "--plot", "t.svg")
        self.assertIn("device.", (self.folder / "t.svg").read_text(encoding="utf-8"))

    def test_several_schedules_are_ranked_anew(self):
        schedules = ["serial", "shard_p2p", "hetero_fused_1d"]
        flags = [flag for flag in RUN if flag not in ("--schedule", "shard_p2p", "--set", "agent=dma")]
        result = self.result("sensitivity", *flags, "--schedules", ",".join(schedules))
        makespans = {one: self.result(*flags, "--schedule", one)["makespan_us"] for one in schedules}
        self.assertEqual(result["best"], min(makespans, key=makespans.get))
        self.assertEqual(result["makespan_us"], min(makespans.values()))
        self.assertRegex(self.output("sensitivity", *flags, "--schedules", ",".join(schedules)),
                         r"\d+ values change which schedule is best")

    def test_mistakes(self):
        self.assert_refused(["sensitivity", *RUN, "--schedules", "serial"], "--schedules")
        self.assert_refused(["sensitivity", "--topology", "mi300x_8"], "/schedule: is missing")
        self.assert_refused(["sensitivity", *RUN, "--by", "0"], "--by")
        self.assert_refused(["sensitivity", *RUN, "--plot", "t.pdf"], "'.pdf'")

    def test_changes_of_all_and_more_are_made_where_the_range_permits(self):
        for by in ("100", "200"):
            values = {one["key"]: one for one in self.result("sensitivity", *RUN, "--by", by, "--only", "hardware")["values"]}
            links = values["topology.fabric.0.bandwidth_GBps"]
            self.assertIn("error", links["low"])
            self.assertLess(links["high"]["change"], 0)

    def test_hardware_is_told_from_constants_of_models(self):
        kinds = {one["key"]: one["kind"] for one in self.result("sensitivity", *RUN)["values"]}
        for key in ("topology.fabric.0.bandwidth_GBps", "device.compute_units", "device.dma.engine_GBps", "device.launch.kernel_us"):
            self.assertEqual(kinds[key], "hardware", key)
        for key in ("device.gemm.bf16.tile_fixed_us", "device.gemm.bf16.overlap_exponent", "device.gemm.bf16.sustained_slowdown"):
            self.assertEqual(kinds[key], "fit", key)
        only = self.result("sensitivity", *RUN, "--only", "fit")["values"]
        self.assertEqual({one["kind"] for one in only}, {"fit"})

    def test_a_models_step(self):
        model = ["llama3_8b", "--topology", "h200_2", "--tokens", "1024", "--layers", "2"]
        result = self.result("sensitivity", "model", *model, "--only", "hardware")
        step = self.result("model", *model)["steps"][0]["overlapped_us"]
        self.assertLess(abs(result["makespan_us"] / step - 1), 0.02)
        self.assertIn("device.hbm_GBps", [one["key"] for one in result["values"][:10]])
