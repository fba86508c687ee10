"""`sim model --enable-two-batch-overlap`: a layer with experts as two half batches, each beside the all-to-alls of the other."""
import json

from sim_case import SimTestCase

MODEL = ["model", "deepseek_v3", "--topology", "h200_8", "--ep", "8", "--dtype", "fp8", "--layers", "8"]
HALVES = [*MODEL, "--tokens", "65536", "--sequence", "4096", "--all-to-all", "deepep", "--enable-two-batch-overlap"]
LONG = 10_000  # us, beside which launches are short


class TwoBatches(SimTestCase):
    def report(self, *args):
        return json.loads(self.output(*args, "--format", "json"))

    def timed(self, computation, exchange):
        """Makespan of a layer's list whose attention and experts take `computation`, all-to-alls `exchange` us, all else nothing."""
        work = json.loads((self.folder / "layer.json").read_text(encoding="utf-8"))
        long = {"attention": computation, "expert_gate_up": computation, "dispatch": exchange, "combine": exchange}
        for place, op in enumerate(work["operators"]):
            half, name = op["name"].split("_", 1)
            self.assertIn(half, ("a", "b"))
            stream = "exchange" if name in ("dispatch", "combine") else "compute"
            work["operators"][place] = {"name": op["name"], "type": "memory_bound", "read_bytes": 1, "write_bytes": 1, "stream": stream,
                                        "recorded_us": long.get(name, 1e-3), "gap_us": 0, "needs": op["needs"]}
        run = {"topology": "h200_8", "workload": work, "schedule": "concurrent"}
        return self.result("--config", self.file("run.json", run))["makespan_us"]

    def test_closed_forms(self):
        self.report(*HALVES, "--write", "layer.json")
        written = json.loads((self.folder / "layer.json").read_text(encoding="utf-8"))
        self.assertEqual(written["order"], "data")
        # Computation takes nothing: the step is the communication, a dispatch and a combine of each half.
        self.assertAlmostEqual(self.timed(1e-3, LONG) / (4 * LONG), 1, delta=0.01)
        # Communication takes nothing: the step is the computation, attention and experts of each half. Nothing is gained.
        self.assertAlmostEqual(self.timed(LONG, 1e-3) / (4 * LONG), 1, delta=0.01)
        # All alike: of a a b b | a b a b only the last combine is not beside the other half's computation, and nothing is
        # beside the first attention: 5 of 8.
        self.assertAlmostEqual(self.timed(LONG, LONG) / (5 * LONG), 1, delta=0.01)

    def test_step(self):
        report = self.report(*HALVES)
        step = report["steps"][0]
        layer = next(one for one in step["lists"] if one["name"] == "experts_layer")
        names = [row["name"] for row in layer["operators"]]
        self.assertEqual([name[2:] for name in names if name.startswith("a_")],
                         [name[2:] for name in names if name.startswith("b_")])
        # Halves wait for one another's tokens less than they lose by smaller kernels.
        self.assertLess(step["overlapped_us"], step["one_batch"]["overlapped_us"])
        # What a whole batch takes is a run without the flag.
        alone = self.report(*[flag for flag in HALVES if flag != "--enable-two-batch-overlap"])["steps"][0]
        self.assertEqual(alone["overlapped_us"], step["one_batch"]["overlapped_us"])
        self.assertNotIn("one_batch", alone)
        dense = next(one for one in step["lists"] if one["name"] == "dense_layer")
        self.assertEqual(dense["overlapped_us"], next(one for one in alone["lists"] if one["name"] == "dense_layer")["overlapped_us"])
        self.assertIn("  in one batch", self.output(*HALVES))

    def test_decode(self):
        flags = [*MODEL, "--phase", "decode", "--all-to-all", "deepep_low_latency", "--enable-two-batch-overlap"]
        step = self.report(*flags, "--tokens", "4096")["steps"][0]
        self.assertGreater(step["one_batch"]["serial_us"], 0)
        self.assert_refused([*flags, "--tokens", "1032"], "an even number of sequences on each GPU, not 129")

    def test_training(self):
        training = ["--phase", "training", "--global-batch", "64", "--micro-batch", "2", "--sequence", "4096"]
        self.report(*MODEL, *training, "--all-to-all", "deepep", "--enable-two-batch-overlap", "--write", "layer.json")
        operators = {op["name"]: op for op in json.loads((self.folder / "layer.json").read_text(encoding="utf-8"))["operators"]}
        # No half begins its backward pass before the forward pass of both has ended: other layers lie between.
        for half in ("a", "b"):
            self.assertLessEqual({"a_residual", "b_residual"}, set(operators[f"{half}_residual_grad"]["needs"]))
        # Weights are one: gradients are summed once.
        self.assertEqual([name for name in operators if "adam" in name], ["adam"] if "adam" in operators else [])
        self.assert_refused([*MODEL, *training[:4], "--sequence", "4096", "--enable-two-batch-overlap"],
                            "an even number of sequences on each GPU, not 4096 tokens in sequences of 4096 (--micro-batch)")

    def test_directions_of_dualpipe(self):
        # Forward and backward passes of two micro-batches: the all-to-alls of one are beside the other's computation.
        report = self.report("model", "deepseek_v3", "--topology", "h200_8", "--tp", "1", "--pp", "2", "--ep", "4", "--layers", "8", "--dtype",
                             "fp8", "--phase", "training", "--pipeline", "dualpipe", "--global-batch", "32", "--sequence", "4096",
                             "--all-to-all", "deepep")
        lists = {one["name"]: one for one in report["steps"][0]["lists"]}
        together, both = lists["experts_layer of two micro-batches"], lists["experts_layer"]
        self.assertLess(together["overlapped_us"], both["overlapped_us"])
        self.assertGreater(report["steps"][0]["pipeline"]["gain_overlapped_us"], 0)

    def test_best_sms(self):
        flags = [*MODEL, "--tokens", "32768", "--all-to-all", "deepep"]
        best = self.report(*flags, "--sms", "best")["steps"][0]
        times = best["overlapped_us_by_sms"]
        self.assertEqual(list(times), ["4", "8", "12", "16", "20", "24"])
        self.assertEqual(best["overlapped_us"], min(times.values()))
        self.assertEqual(times[str(best["sms"])], best["overlapped_us"])
        self.assertEqual(self.report(*flags, "--sms", str(best["sms"]))["steps"][0]["overlapped_us"], best["overlapped_us"])
        self.assertIn("  by SMs (--sms best)", self.output(*flags, "--sms", "best"))

    def test_refusals(self):
        self.assert_refused([*MODEL, "--all-to-all", "deepep", "--sms", "some"], "--sms")
        self.assert_refused([*MODEL, "--all-to-all", "deepep_low_latency", "--sms", "best"], "--sms is for --all-to-all deepep")
        self.assert_refused(["model", "deepseek_v3", "--topology", "h200_8", "--tp", "8", "--enable-two-batch-overlap"], "--ep above 1")
        self.assert_refused([*MODEL, "--tokens", "65536", "--sequence", "8192", "--enable-two-batch-overlap"],
                            "not 8192 tokens in sequences of 8192 (--tokens, --sequence)")
