"""A machine from a data sheet: the files of 'sim new device' run at once, say where each number is from, and
a device file with several mistakes names them all."""
import json
import os
import subprocess

from sim_case import ROOT, SimTestCase

B100 = ["new", "device", "b100", "--platform", "NVIDIA", "--units", "148", "--TFLOPS", "bf16=2250", "--TFLOPS", "fp4=9000",
        "--hbm-GBps", "8000", "--hbm-GB", "180", "--link-GBps", "50", "--links", "18", "--switch", "--out", "."]
RUN = ["--schedule", "shard_p2p", "--gemm", "8192x8192x8192"]


def values_of(node, path=()):
    if "value" in node:
        yield ".".join(path), node
        return
    for key, member in node.items():
        if isinstance(member, dict):
            yield from values_of(member, (*path, key))


class NewDevice(SimTestCase):
    def load(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def test_every_value_is_from_the_data_sheet_or_an_estimate_that_names_its_origin(self):
        self.assertIn("from h", self.output(*B100, "--like", "h200"))
        device = self.load("b100.json")
        values = dict(values_of(device))
        given = {key for key, one in values.items() if one["source"].startswith("data sheet, given as --")}
        self.assertEqual(given, {"compute_units", "peak_TFLOPS.bf16", "peak_TFLOPS.fp4", "hbm_peak_GBps", "hbm_capacity_GB"})
        for key in values.keys() - given:
            self.assertRegex(values[key]["source"], "^estimate: value of h200", key)
        self.assertEqual(values["hbm_peak_GBps"], {"value": 8000, "source": "data sheet, given as --hbm-GBps"})
        # H200: 4010 of 4800 GB/s. 8000 * 4010 / 4800 = 6683.33. fp8 goes with bf16: 1979 * 2250 / 989 = 4502.28.
        self.assertEqual(values["hbm_GBps"], {"value": 6683.33, "source": "estimate: value of h200 x 1.667"})
        self.assertEqual(values["peak_TFLOPS.fp8"]["value"], 4502.28)
        self.assertEqual(values["dma.command_us"]["value"], 0.3)
        # One port of 18 links of 50 GB/s; H200's engines and library are scaled by 900 / 397.5.
        group = self.load("b100_8.json")["fabric"][0]
        self.assertEqual((group["type"], group["bandwidth_GBps"]["value"]), ("switch", 900))
        self.assertEqual(values["collective_library.all_gather.bus_GBps"]["value"], round(334.2 * 900 / 397.5, 3))
        # Its measured times become estimates: 512 MiB to 8 GPUs take as much less as the line 23.0 us + bytes / 334.2 GB/s does.
        library = device["collective_library"]
        table, on_bus = library["all_gather"]["by_ranks"]["8"], 7 / 8 * 536870912
        self.assertEqual(table["bytes"][-1], 536870912)
        self.assertAlmostEqual(table["us"][-1], 1394.97 * (23.0 + on_bus / (334.2e3 * 900 / 397.5)) / (23.0 + on_bus / 334.2e3), delta=0.01)
        kernel = library["all_reduce_kernels"]["two_shot"]["by_ranks"]["2"]
        self.assertLess(kernel["us"][-1], 0.7 * 213.099)
        for one in (table, kernel):
            self.assertRegex(one["source"], "^estimate: times of h200, scaled as all_(gather|reduce)'s latency and bus rate$")
        self.assertNotIn('"measured', json.dumps(device))
        # All keys that the shipped device and its calibration have, but energy and kernels that have tables of their own.
        shipped = {}
        for kind in ("devices", "calibrations"):
            text = (ROOT / f"configs/{kind}/h200.json").read_text(encoding="utf-8")
            shipped.update(values_of({key: one for key, one in json.loads(text).items()
                                      if key not in ("gemm", "measured_gemms", "energy", "schema", "attention_prefill", "attention_decode", "moe",
                                                     "expert_exchange")
                                      and isinstance(one, dict)}))
        shipped = {key for key in shipped if ".provenance" not in key}
        self.assertEqual(shipped - values.keys(), set())
        self.assertGreater(len(shipped), 60)

    def test_times_of_collectives_by_number_of_gpus_hold_for_links_of_the_same_type_only(self):
        self.output(*[flag for flag in B100 if flag not in ("--switch", "--links", "18")], "--like", "b300")
        self.assertEqual(self.load("b100_8.json")["fabric"][0]["type"], "full_mesh")
        text = json.dumps(self.load("b100.json"))
        self.assertIn("bus_GBps", text)
        self.assertNotIn("by_ranks", text)
        self.assertIn("candidates", self.result("advise", "--topology", "b100_8.json", "--gemm", "8192x8192x8192"))

    def test_it_runs_at_once_and_results_say_whose_calibration_is_scaled(self):
        self.output(*B100, "--like", "h200")
        result = self.result("--topology", "b100_8.json", *RUN)
        self.assertIn("scaled from those of h200, because b100 has no calibration (estimate)", result["gemm_library"])
        h200 = self.result("--topology", "h200_8", *RUN, "--cost-model", "gemm_tiled")
        # The rate grows by 2250 / 989, memory less: the GEMM is up to that much faster.
        self.assertLess(result["gemm_us"], 0.6 * h200["gemm_us"])
        self.assertGreater(result["gemm_us"], 989 / 2250 * h200["gemm_us"])
        self.result("--topology", "b100_8.json", *RUN, "--dtype", "fp4")
        self.result("--topology", "b100_8.json", *RUN, "--cost-model", "gemm_roofline")
        self.assertIn("candidates", self.result("advise", "--topology", "b100_8.json", "--gemm", "8192x8192x8192"))
        more = self.sim("--topology", "b100_8.json", *RUN, "--what-if", "device.compute_units=1.1x")
        self.assertIn("also moves device.peak_TFLOPS.fp16, ", more.stderr)
        self.assertEqual(more.returncode, 0)

    def test_a_device_without_calibration_and_without_like_takes_the_nearest(self):
        self.output(*B100, "--like", "h200")
        device = self.load("b100.json")
        del device["like"]
        device["compute_units"]["value"] = 132
        device["description"] = "A GPU of NVIDIA."
        self.file("b100.json", device)
        self.assertIn("because b100 has no calibration", self.result("--topology", "b100_8.json", *RUN)["gemm_library"])
        device["like"] = "h20"
        self.file("b100.json", device)
        self.assert_refused(["--topology", "b100_8.json", *RUN], "b100.json: /like: is 'h20'", "did you mean 'h200'?")

    def test_the_nearest_device_is_the_default(self):
        self.assertIn("from mi300x, the nearest", self.output("new", "device", "a", "--platform", "amd", "--units", "304", "--TFLOPS", "bf16=1300",
                                                              "--hbm-GBps", "5300", "--out", "."))
        self.assertIn("from gb200, the nearest", self.output("new", "device", "b", "--platform", "NVIDIA", "--units", "304", "--out", "."))
        mesh = self.load("a_8.json")["fabric"][0]
        self.assertEqual((mesh["type"], mesh["bandwidth_GBps"]["value"]), ("full_mesh", 46.5))
        self.assertEqual(mesh["bandwidth_GBps"]["source"], "estimate: value of mi300x_8")
        self.result("--topology", "a_8.json", *RUN)

    def test_scaled_gemm_parameters_are_as_near_to_fitted_ones_as_the_readme_says(self):
        sheets = {"h100": ("h200", ["--units", "132", "--clock-GHz", "1.98", "--TFLOPS", "bf16=989", "--hbm-GBps", "3350"]),
                  "b200": ("h200", ["--units", "148", "--clock-GHz", "1.98", "--TFLOPS", "bf16=2250", "--hbm-GBps", "7700"]),
                  "mi355x": ("mi300x", ["--units", "256", "--clock-GHz", "2.4", "--TFLOPS", "bf16=2516.6", "--hbm-GBps", "8000"])}
        self.file("t.csv", "m,n,k,dtype\n" + "".join(f"{m},{n},{k},bf16\n" for m in (1024, 4096, 8192, 16384)
                                                     for n in (2560, 7168, 8192) for k in (2048, 8192)))
        readme = " ".join((ROOT / "sim/topology/README.md").read_text(encoding="utf-8").split())
        for device, (like, flags) in sheets.items():
            self.output("new", "device", "like_" + device, "--like", like, *flags, "--out", ".")
            times = [[row["predicted_us"] for row in self.result("cost", "--topology", topology, "--from", "t.csv",
                                                                 "--cost-model", "gemm_tiled")]
                     for topology in (f"like_{device}_8.json", device + "_8")]
            errors = [abs(scaled / fitted - 1) for scaled, fitted in zip(*times)]
            self.assertEqual(len(errors), 24)
            self.assertIn(f"{device.upper()} from {like.upper()} {100 * sum(errors) / 24:.0f} %", readme)

    def test_the_default_folder_is_that_of_the_shipped_configs(self):
        configs = self.folder / "configs"
        for kind in ("devices", "calibrations", "topologies", "workloads", "schedules"):
            (configs / kind).mkdir(parents=True)
            for file in (ROOT / "configs" / kind).glob("*.json"):
                (configs / kind / file.name).symlink_to(file)
        run = lambda *args: subprocess.run([os.environ["SIM"], *args], env={**os.environ, "OVERLAP_CONFIGS": str(configs)},
                                           capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual(run(*B100[:-2]).returncode, 0)
        for args in (["--topology", "b100_8", *RUN], ["explain", "b100"], ["cost", "--device", "b100", "--gemm", "512x512x512"]):
            self.assertEqual(run(*args).returncode, 0, args)

    def test_mistakes_leave_nothing_behind(self):
        refused = lambda *args: self.assert_refused(["new", "device", *args, "--out", "."], *expected)
        for args, expected in [(["B-200"], ["NAME is 'B-200'", "small letters"]),
                               (["h200"], ["'h200', which has a calibration"]),
                               (["x", "--like", "h20"], ["--like is 'h20'", "'h200'"]),
                               (["x", "--TFLOPS", "bf61=3"], ["'bf61' is no data type", "'bf16'"]),
                               (["x", "--TFLOPS", "bf16=fast"], ["expected TYPE=NUMBER"]),
                               (["x", "--like", "h200", "--units", "12.5"], ["/compute_units/value: is 12.5", "whole number"]),
                               (["x", "--units", "-1"], ["--units"]),
                               (["x", "--units", "4"], ["--platform (AMD, NVIDIA) or --like is missing"]),
                               (["x", "--unit", "4"], ["'--unit' is not known here", "'--units'"]),
                               (["x", "--like", "h200", "--link-GBps", "50", "--links", "18"], ["multiple of the 7 peers"]),
                               (["x", "--like", "mi100"], ["--link-GBps is missing"])]:
            refused(*args)
        self.output(*B100)
        before = (self.folder / "b100.json").read_text(encoding="utf-8")
        self.assert_refused([*B100, "--power-W", "1000"], "b100.json: exists already")
        self.assertEqual((self.folder / "b100.json").read_text(encoding="utf-8"), before)


class DeviceMistakes(SimTestCase):
    def test_all_are_told_each_in_a_line(self):
        self.output(*B100, "--like", "h200")
        device = json.loads((self.folder / "b100.json").read_text(encoding="utf-8"))
        del device["board_power_W"]
        device["compute_unit"] = device.pop("compute_units")
        device["colour"] = "red"
        device["dma"]["engine_GBps"]["value"] = -1
        device["dma"]["order"]["value"] = "fifoo"
        device["copy_kernel"]["lunch_us"] = device["copy_kernel"].pop("launch_us")
        self.file("b100.json", device)
        done = self.sim("--topology", "b100_8.json", *RUN)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        lines = done.stderr.splitlines()
        expected = [("/compute_units: is missing", "(found 'compute_unit')"), ("/board_power_W: is missing", ""),
                    ("/dma/engine_GBps/value: is -1", "from 0.001 to 1e+07"), ("/dma/order/value: is 'fifoo'", "'fifo'"),
                    ("/copy_kernel/launch_us: is missing", "'lunch_us'"),
                    ("/copy_kernel/lunch_us: is an unknown key", "'launch_us'"),
                    ("/compute_unit: is an unknown key", "'compute_units'"), ("/colour: is an unknown key", "allowed: ")]
        self.assertEqual(len(lines), len(expected), done.stderr)
        for place, allowed in expected:
            matching = [line for line in lines if line.startswith("sim: ") and f"b100.json: {place}" in line]
            self.assertEqual(len(matching), 1, place)
            self.assertIn(allowed, matching[0])
