"""What a run says beside its numbers: whose GEMMs are priced, and which change of a what-if is not what it seems."""
import csv
import io
import json

from sim_case import SimTestCase

RUN = ["--topology", "mi300x_8", "--schedule", "serial", "--gemm", "8192x8192x8192"]


class Remarks(SimTestCase):
    def test_the_library_of_gemms_is_in_every_form_of_output(self):
        library = "hipBLASLt, tensor-wise (row-wise fp8 of aiter at hipBLASLt's rate)"
        shape = ["--gemm", "8192x8192x8192", "--dtype", "fp8"]
        run = ["--topology", "mi355x_8", "--schedule", "serial", *shape]
        self.assertEqual(self.result(*run)["gemm_library"], library)
        text = f"GEMM fp8 of {library} derived"
        self.assertIn("confidence " + text, " ".join(self.output(*run).split()))
        self.assertIn("gemm_library    " + library, self.output("cost", "--device", "mi355x", *shape))
        self.assertIn(text, self.output("cost", "--device", "mi355x", *shape))
        advice = ["advise", "--topology", "mi355x_8", "--top", "1", *shape]
        self.assertIn(text, " ".join(self.output(*advice).split()))
        model = ["model", "llama3_8b", "--topology", "mi355x_8", "--tokens", "1024", "--dtype", "fp8"]
        self.assertIn(text, " ".join(self.output(*model).split()))
        self.assertEqual(self.result(*model)["gemm_library"], library)
        for command in (run, advice, model):
            rows = list(csv.DictReader(io.StringIO(self.output(*command, "--format", "csv"))))
            self.assertEqual(rows[0]["gemm_library"], library)
            self.assertIn(rows[0]["confidence.basis"], ("derived", "estimate"))
        cost = self.result("cost", "--device", "mi355x", *shape)
        self.assertEqual(cost["gemm_library"], library)
        self.file("t.csv", "m,n,k,dtype\n64,64,64,fp8\n64,64,64,bf16\n")
        rows = self.result("cost", "--device", "mi355x", "--from", "t.csv")
        self.assertEqual(rows[0]["gemm_library"], library)
        self.assertEqual(rows[1]["gemm_library"], "hipBLASLt (aiter)")
        self.assertIn('/gemm_libraries/torch/fp8/library = "' + library + '"', self.output("explain", "mi355x"))
        mixed = self.result(*run, "--what-if", "device.gemm_library=ck_blockscale")
        self.assertEqual(mixed["gemm_library"], "Composable Kernel, block-scaled (aiter)")
        roofline = self.result(*run, "--cost-model", "gemm_roofline")
        self.assertIsNone(roofline["gemm_library"])
        config = json.dumps({"topology": "mi355x_8", "schedule": "serial", "workload": "llama3_70b_mlp_layer"})
        self.assertEqual("hipBLASLt (aiter)", json.loads(self.output("batch", "-", stdin=config))["gemm_library"])

    def test_a_what_if_that_misleads_is_told_in_text_json_and_on_standard_error(self):
        for change, expected in [("device.board_power_W=900", "is information only"),
                                 ("device.copy_kernel.launch_us=3x", "changes nothing in this run's makespan"),
                                 ("device.dma.engine_GBps=2", 'did you mean "2x"?'),
                                 ("device.compute_units=365", "also moves device.peak_TFLOPS")]:
            with self.subTest(change=change):
                done = self.sim(*RUN, "--what-if", change, "--format", "json")
                self.assertEqual(done.returncode, 0)
                notes = json.loads(done.stdout)["notes"]
                self.assertIn(expected, notes[0])
                self.assertEqual(len(done.stderr.splitlines()), len(notes))
                self.assertIn(notes[0], done.stderr)
                text = self.sim(*RUN, "--what-if", change).stdout
                self.assertIn("note       what-if " + change, text)
        self.assertEqual(self.result(*RUN)["notes"], [])

    def test_what_limits_a_rate_that_was_raised_is_named(self):
        run = ["--topology", "mi300x_8", "--schedule", "serial"]
        links = "topology.fabric.0.bandwidth_GBps"
        notes = json.loads(self.sim(*run, "--what-if", links + "=2x", "--format", "json").stdout)["notes"]
        self.assertEqual(notes, [f"what-if {links}=2x: more of it changes nothing, because device.dma.engine_GBps limits"])
        slower = self.sim(*run, "--what-if", links + "=0.5x", "--format", "json")
        self.assertEqual(json.loads(slower.stdout)["notes"], [])

    def test_a_key_that_files_leave_out_changes_from_its_default(self):
        run = ["--topology", "mi300x_8", "--schedule", "shard_p2p"]
        changed = json.loads(self.sim(*run, "--what-if", "device.dma.switch_us=3", "--format", "json").stdout)
        self.assertEqual(changed["config"]["what_if"], {"device.dma.switch_us": 3})
        for off in ("device.copy_kernel.cache_GBps=0", "device.copy_kernel.large_tile_elements=0", "device.copy_kernel.sum_GBps_per_cu=0", "device.dma.poll_us=0"):
            with self.subTest(off=off):
                self.assertEqual(self.sim("--topology", "h200_4", "--schedule", "serial", "--what-if", off).returncode, 0)
        self.assert_refused([*run, "--what-if", "device.copy_kernel.large_tile_elements=0.5"], "expected 0, the default, or a number from 1 to 1")
        self.assert_refused([*run, "--what-if", "device.dma.switch_uss=3"], "'switch_us'")

    def test_every_output_of_every_command_says_what_was_changed(self):
        change = ["--what-if", "device.dma.peer_engines=2x"]
        case = {"schema": 1, "system": "s", "scenario": {"topology": "h200_2", "schedule": "serial", "workload": "llama3_8b_mlp_layer"},
                "source": "none", "makespan_us": 900}
        commands = {
            "run": (RUN, ["text", "json", "csv"]),
            "advise": (["advise", "--topology", "h200_2", "--gemm", "4096x4096x4096", "--top", "1"], ["text", "json", "csv"]),
            "model": (["model", "llama3_8b", "--topology", "h200_2", "--tokens", "1024"], ["text", "json", "csv", "md"]),
            "cost": (["cost", "--device", "h200", "--gemm", "4096x4096x4096"], ["text", "json"]),
            "cost of a table": (["cost", "--device", "h200", "--from", self.file("t.csv", "m,n,k,dtype\n512,512,512,bf16\n")], ["csv", "json"]),
            "reproduce": (["reproduce", "iris"], ["text", "json", "csv", "markdown"]),
            "sensitivity": (["sensitivity", *RUN, "--only", "hardware"], ["text", "json", "csv"])}
        for name, (command, formats) in commands.items():
            for form in formats:
                with self.subTest(command=name, format=form):
                    done = self.sim(*command, *change, "--format", form)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("device.dma.peer_engines", done.stdout)
                    # A table has the columns of its input and of the prices, no place for a sentence.
                    told = done.stderr if name == "cost of a table" else done.stdout
                    self.assertIn("changes nothing", " ".join(told.split()))
        self.sim(*commands["model"][0], *change, "--html", "page.html")
        self.assertIn("device.dma.peer_engines", (self.folder / "page.html").read_text(encoding="utf-8"))

    def test_a_swept_what_if_that_misleads_is_told_before_the_sweep(self):
        sweep = {"schema": 1, "name": "s", "base": {"topology": "mi300x_8", "schedule": "serial",
                 "workload": "llama3_70b_qkv_forward"}, "axes": {"what_if.device.board_power_W": ["1x", "2x"]}}
        done = self.sim("sweep", self.file("s.json", sweep), "--out", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("is information only"), 1)
        sweep["axes"] = {"what_if.topology.fabric.0.bandwidth_GBps": ["1x", "0.5x"]}
        self.assertEqual(self.sim("sweep", self.file("s.json", sweep), "--out", "other").stderr, "")
        sweep["axes"] = {"what_if.device.copy_kernel.launch_us": ["1x", "2x"]}
        done = self.sim("sweep", self.file("s.json", sweep), "--out", "third")
        self.assertIn("what-if device.copy_kernel.launch_us: changes nothing in 2 points that were tried", done.stderr)

    def test_a_schedule_by_a_kernel_of_ones_own_says_so(self):
        run = ["--topology", "h200_4", "--workload", "llama3_70b_down_forward", "--schedule"]
        self.assertTrue(self.result(*run, "flag_gated")["own_kernel"])
        self.assertFalse(self.result(*run, "hetero_fused_1d")["own_kernel"])
        self.assertIn("(own kernel)", self.output(*run, "flag_gated"))
        self.assertNotIn("(own kernel)", self.output(*run, "hetero_fused_1d"))

    def test_a_reproduction_of_another_machine_claims_nothing(self):
        changed = self.sim("reproduce", "concc", "--what-if", "device.dma.engine_GBps=0.5x", "--format", "json")
        self.assertEqual(changed.returncode, 2)
        changed = self.sim("reproduce", "conccl", "--what-if", "device.dma.engine_GBps=0.5x", "--format", "json")
        self.assertEqual(changed.returncode, 0, changed.stderr)
        result = json.loads(changed.stdout)
        self.assertEqual(result["what_if"], {"device.dma.engine_GBps": "0.5x"})
        self.assertNotEqual(result["experiments"], self.result("reproduce", "conccl")["experiments"])

    def test_fractions_of_counts_are_refused(self):
        for key in ("device.compute_units", "device.gemm.bf16.compute_units"):
            self.assert_refused([*RUN, "--what-if", key + "=364.8"], "compute_units/value: is 364.8",
                                "must be a whole number (364 or 365)")
