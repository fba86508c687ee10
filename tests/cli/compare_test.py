"""sim compare and sim import from outside: what they print, write and refuse."""
import csv
import gzip
import io
import json

from sim_case import ROOT, SMALL, SimTestCase


class Compare(SimTestCase):
    def measured(self, factor, **more):
        """A case that took `factor` times what is predicted for it."""
        predicted = self.result("--config", self.file("config.json", {"host": "replay", **SMALL}))["makespan_us"]
        return {"schema": 1, "system": "made_up", "scenario": SMALL, "samples_us": [predicted * factor], **more}

    def test_formats_agree(self):
        self.file("one.json", self.measured(1.25))
        report = json.loads(self.output("compare", "one.json", "--format", "json"))
        self.assertAlmostEqual(report["cases"][0]["error"], -0.2, places=9)
        self.assertAlmostEqual(report["all"]["mean_abs"], 0.2, places=9)
        rows = list(csv.DictReader(io.StringIO(self.output("compare", "one.json", "--format", "csv"))))
        self.assertEqual(float(rows[0]["error"]), report["cases"][0]["error"])
        self.assertEqual((rows[0]["gemm_library"], rows[0]["basis"]), ("cuBLASLt 13.1.0", report["cases"][0]["basis"]))
        self.assertIn("20.0 %", self.output("compare", "one.json"))

    def test_page_needs_nothing_else(self):
        self.file("one.json", self.measured(1.25))
        self.output("compare", "one.json", "--html", "page.html")
        blocks = self.page_data("page.html")["blocks"]
        prices = blocks[[block.get("heading") for block in blocks].index("How sure") + 1]["list"]
        self.assertRegex("\n".join(prices), r"(?m)^GEMM bf16 of cuBLASLt [\d.]+ (measured|fitted).*: \d+ cases$")
        self.assertEqual([block["chart"] for block in blocks if "chart" in block], ["scatter", "histogram"])
        self.assert_needs_nothing("page.html")

    def test_what_another_device_ran_is_predicted_only_as_said(self):
        scenario = {**SMALL, "topology": "h200_2.json", "schedule": "serial"}
        scenario.pop("params", None)
        facts = {"kind": "machine", "device": "NVIDIA H100 80GB HBM3", "compute_units": 132, "memory_GiB": 79.18}
        on_h100 = self.result("--config", self.file("config.json", {**scenario, "topology": "h100_2"}))["makespan_us"]
        case = {"schema": 1, "system": "h200_2", "scenario": scenario, "samples_us": [on_h100]}
        (self.folder / "replays.jsonl").write_text(f"{json.dumps(facts)}\n{json.dumps(case)}\n", encoding="utf-8")
        self.assert_refused(("compare", "replays.jsonl"), "replays.jsonl:2: /scenario/topology: is 'h200_2.json' of h200, but "
                            "'NVIDIA H100 80GB HBM3' with 79.18 GiB ran; --device NAME")
        report = json.loads(self.output("compare", "replays.jsonl", "--device", "h100", "--format", "json"))
        self.assertEqual((report["cases"][0]["system"], report["cases"][0]["predicted_us"]),
                         ("h100_2", on_h100))

    def test_an_archive_is_predicted_as_the_device_that_it_is_of(self):
        archive = str(ROOT / "traces/h100_2/tenth.tar.gz")
        cases = json.loads(self.output("compare", archive, "--format", "json"))["cases"]
        self.assertEqual({(case["system"], case["origin"].rpartition(":")[0]) for case in cases},
                         {("h100_2", archive + "/replays.jsonl")})
        self.assertEqual(len(cases), 150)
        self.assert_refused(("compare", str(ROOT / "traces/h100_1/spread.tar.gz")), "has no measured schedule in it")

    def test_compressed_lines_are_read_as_they_are(self):
        lines = json.dumps(self.measured(1.25)).encode()
        for name, content in (("one.jsonl", lines), ("one.jsonl.gz", gzip.compress(lines))):
            (self.folder / name).write_bytes(content)
        plain, packed = (self.output("compare", name, "--format", "csv") for name in ("one.jsonl", "one.jsonl.gz"))
        self.assertEqual(packed.replace(".jsonl.gz", ".jsonl"), plain)
        (self.folder / "cut.jsonl.gz").write_bytes(gzip.compress(lines)[:-20])
        self.assert_refused(("compare", "cut.jsonl.gz"), "cut.jsonl.gz")

    def test_exit_codes_of_claims(self):
        enforced = {"metric": "mean_abs_pct", "asked": 10, "status": "enforced"}
        gap = {**enforced, "status": "known_gap", "reached": 20, "reason": "why"}
        self.file("one.json", self.measured(1.25))  # 20 % off
        for claim, code, word in ((enforced, 3, "OUTSIDE"), ({**enforced, "asked": 25}, 0, "ok"), (gap, 0, "known gap"),
                                  ({**gap, "asked": 25}, 3, "NO GAP ANY MORE"), ({**gap, "reached": 18}, 3, "NOT AS REACHED"),
                                  ({**enforced, "asked": 25, "reached": 22}, 3, "NOT AS REACHED")):
            self.file("claims.json", {"schema": 2, "claims": [claim]})
            done = self.sim("compare", "one.json", "--tolerances", "claims.json")
            self.assertEqual((done.returncode, done.stderr), (code, ""), claim)
            # Asked, reached (where it is known) and now stand beside each other.
            numbers = [f"<= {claim['asked']}", *([str(claim["reached"])] if "reached" in claim else []), "20.00"]
            self.assertRegex(done.stdout, rf"(?m)^  {word} +{' +'.join(numbers)}  mean_abs_pct")

    def test_a_measured_host_takes_the_place_of_its_name(self):
        shipped = json.loads((ROOT / "configs/hosts/pytorch_eager.json").read_text(encoding="utf-8"))
        scenario = {**SMALL, "topology": "h200_2", "schedule": "async_tp", "host": "pytorch_eager"}
        scenario.pop("params", None)
        self.file("one.json", {"schema": 1, "system": "made_up", "scenario": scenario, "samples_us": [1000]})
        shipped["operators_us"]["async_tp_all_gather"]["value"] += 1000  # µs
        self.file("mine.json", shipped)
        spans = [json.loads(self.output("compare", "one.json", "--format", "json", *more))["cases"][0]["predicted_us"]
                 for more in ((), ("--host", "mine.json"))]
        self.assertAlmostEqual(spans[1] - spans[0], 1000, places=6)
        self.file("other.json", {**shipped, "name": "elsewhere"})
        done = self.sim("compare", "one.json", "--host", "other.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/name: is 'elsewhere', which is the host of no measured case", done.stderr)

    def test_claims_of_the_format_before(self):
        self.file("one.json", self.measured(1.25))
        self.file("old.json", {"schema": 1, "claims": [{"metric": "mean_abs_pct", "limit": 10, "status": "enforced"}]})
        done = self.sim("compare", "one.json", "--tolerances", "old.json")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, r"(?m)<= 10 +20.00  mean_abs_pct")

    def test_exit_codes_of_single_cases(self):
        for tolerance, code in (({"error_pct": 25, "status": "enforced"}, 0),
                                ({"error_pct": 15, "status": "enforced"}, 3),
                                ({"error_pct": 15, "status": "known_gap", "reason": "why"}, 0)):
            self.file("one.json", self.measured(1.25, tolerance=tolerance))
            self.assertEqual(self.sim("compare", "one.json").returncode, code, tolerance)

    def test_what_cannot_be_predicted(self):
        bad = self.measured(1)
        bad["scenario"] = {**SMALL, "schedule": "hetero_fussed_1d"}
        self.file("bad.json", bad)
        done = self.sim("compare", "bad.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("hetero_fused_1d", done.stderr)

    def test_off_by_a_factor_that_no_model_error_explains(self):
        for factor, code in ((4, 0), (0.25, 0), (6, 3), (1 / 6, 3), (1000, 3)):
            self.file("one.json", self.measured(factor))
            done = self.sim("compare", "one.json")
            self.assertEqual((done.returncode, done.stderr), (code, ""), factor)
            self.assertEqual("is the scenario what was measured" in done.stdout, code == 3, factor)
        for factor, flagged in ((1.4, False), (1.9, False), (2.1, True), (0.7, False), (0.6, True)):
            self.file("one.json", self.measured(factor))  # predicted / measured - 1: -29, -47, -52, +43, +67 %
            self.assertEqual("probably not the same scenario" in self.output("compare", "one.json"), flagged, factor)
        self.file("one.json", self.measured(6, tolerance={"error_pct": 90, "status": "enforced"}))
        self.assertEqual(self.sim("compare", "one.json").returncode, 0)

    def test_a_trace_is_no_case(self):
        for trace in (ROOT / "traces" / "h200_4" / "profiler", ROOT / "traces" / "h200_2" / "profiler" / "rank0.json"):
            self.assert_refused(["compare", str(trace)], "rank0.json: is a Chrome trace", "sim import", "--scenario")

    def test_refused(self):
        self.assert_refused(["compare", "nowhere.json"], "nowhere.json", "no such file")
        self.assert_refused(["compare", self.file("x.json", {"schema": 1})], "x.json", "/system")
        self.assert_refused(["compare", self.file("y.json", self.measured(1)), "--tolerances", "none.json"],
                            "none.json")


# How it was where these were measured (traces/h100_2/notes.md, "Which of two kernels is first").
GEMMS_FIRST = ("--what-if", "device.launch.gemm_first=1")


class MeasuredTestCase(SimTestCase):
    """The claims of README on overlap schedules that were measured, by the command that is given there."""

    def claims_hold(self, folders, claims, *args):
        """The report of the cases in `folders` of traces, whose claims hold."""
        done = self.sim("compare", *(str(ROOT / "traces" / folder) for folder in folders),
                        "--tolerances", str(ROOT / "configs" / "tolerances" / claims), "--format", "json", *args)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0, report["verdicts"])  # standard error may show progress
        return report

    def h200_claims_hold(self, day, claims, *args):
        report = self.claims_hold([f"h200_4/{day}overlap", f"h200_2/{day}overlap"], claims, *args)
        self.assertEqual(len(report["cases"]), 1306)
        # What was asked for, of whatever cases; what was reached may follow the program, this may not.
        asked = {"mean_abs_pct": 5, "p90_abs_pct": 12, "bias_abs_pct": 2, "best_within_2pct": 85, "mean_regret_pct": 1.5}
        for verdict in report["verdicts"]:
            self.assertEqual(verdict["asked"], asked[verdict["claim"].split()[-1]], verdict)
            self.assertIsNotNone(verdict["reached"], verdict)
        self.assertLessEqual(set(asked), {verdict["claim"] for verdict in report["verdicts"]})
        return report


class MeasuredOverlap(MeasuredTestCase):
    def test_h200(self):
        self.h200_claims_hold("", "h200_overlap.json")

    def test_h100(self):
        self.claims_hold(["h100_2/overlap"], "h100_overlap.json", *GEMMS_FIRST)

    def test_operators_drawn_afresh(self):
        for device in ("h100", "h200"):
            for cases, claims in (("cases", "fresh"), ("second", "second"), ("third", "third"), ("fourth", "fourth"), ("fifth", "fifth")):
                report = self.claims_hold([f"{device}_2/fresh/{cases}.jsonl.gz"], f"{device}_{claims}.json")
                self.assertEqual(report["all"]["count"], 2400)
                if cases == "third":  # nothing was decided on it
                    self.is_shipped(report, device)

    def test_h200_that_no_fit_saw(self):
        report = self.claims_hold(["h200_2/stream_order/overlap"], "h200_stream_order.json")
        self.assertEqual(report["all"]["count"], 150)

    def is_shipped(self, report, device):
        """The validation that the calibration file of `device` states is that of the report."""
        shipped = json.loads((ROOT / f"configs/calibrations/{device}.json").read_text())["validation"]
        errors, ranking = report["all"], report["ranking"]
        self.assertEqual(shipped["schedules"]["cases"], errors["count"])
        self.assertEqual(shipped["choices"]["operators"], ranking["scenarios"])
        for stated, found in ((shipped["schedules"]["mean_error_pct"], errors["mean_abs"]),
                              (shipped["schedules"]["p90_error_pct"], errors["p90_abs"]),
                              (shipped["schedules"]["bias_pct"], errors["bias"]),
                              (shipped["choices"]["best_within_2pct"], ranking["best_within_2pct"]),
                              (shipped["choices"]["mean_regret_pct"], ranking["mean_regret"])):
            self.assertAlmostEqual(stated, 100 * found, delta=0.006)
        for number in (f"{100 * errors['mean_abs']:.1f} %", f"p90 {100 * errors['p90_abs']:.1f}", str(errors["count"])):
            self.assertIn(number, shipped["sentence"])

    def test_published(self):
        done = self.sim("compare", str(ROOT / "traces" / "published"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)


class MeasuredOverlapAll(MeasuredTestCase):
    def test_h200_the_next_day(self):
        self.h200_claims_hold("next_day/", "h200_overlap_next_day.json")

    def test_h200_without_measured_gemms(self):
        self.h200_claims_hold("", "h200_overlap_gemm_tiled.json", "--cost-model", "gemm_tiled")


class Import(SimTestCase):
    TRACE = {"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "nvjet_tst_64x8", "ts": 5.0, "dur": 10.0,
         "args": {"device": 0, "stream": 7}},
        {"ph": "X", "cat": "kernel", "name": "odd", "ts": 5.0, "dur": 1.0, "args": {"device": 0, "stream": 7}}]}

    def test_a_pytorch_trace_becomes_a_case(self):
        self.file("torch.json", self.TRACE)
        self.file("config.json", SMALL)
        text = self.output("import", "torch.json", "--out", "case.json", "--scenario", "config.json")
        self.assertIn("2 spans of 1 GPU", text)
        self.assertIn("1 x odd", text)
        self.assertIn("one run of the scenario has 3 a GPU", text)
        case = json.loads((self.folder / "case.json").read_text(encoding="utf-8"))
        self.assertEqual(case["makespan_us"], 10.0)
        done = self.sim("compare", "case.json", "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (3, ""))  # 10 us were never a whole run
        self.assertEqual(json.loads(done.stdout)["cases"][0]["tasks"]["only_measured"], 2)

    def test_compressed_traces_are_read_as_they_are(self):
        (self.folder / "ranks").mkdir()
        packed = gzip.compress(json.dumps(self.TRACE).encode())
        (self.folder / "ranks" / "rank0.json.gz").write_bytes(packed)
        self.file("plain.json", self.TRACE)
        for given, out in (("ranks", "a.json"), ("ranks/rank0.json.gz", "b.json"), ("plain.json", "c.json")):
            self.assertIn("2 spans of 1 GPU", self.output("import", given, "--out", out))
        written = [(self.folder / out).read_text(encoding="utf-8") for out in ("a.json", "b.json", "c.json")]
        self.assertEqual(len(set(written)), 1)
        for content in (packed[:-20], packed[:5], b"", gzip.compress(b'{"traceEvents": [')):
            (self.folder / "bad.json.gz").write_bytes(content)
            self.assert_refused(["import", "bad.json.gz", "--out", "bad.json"], "bad.json.gz")
            self.assertFalse((self.folder / "bad.json").exists())

    def profiler(self, folder, scenario, *more):
        """What import prints of a shipped recording, and what compare says of the case that it makes."""
        workload = {"collective": "all_gather", "gemm": {"m": 8192, "n": 2560, "k": 8192, "dtype": "bf16"}}
        self.file("scenario.json", {"workload": workload, **scenario})
        text = self.output("import", str(ROOT / "traces" / folder), "--scenario", "scenario.json", "--out", "case.json",
                           *more)
        return text, json.loads(self.sim("compare", "case.json", "--format", "json").stdout)["cases"][0]

    def test_recordings_of_several_runs_are_taken_run_by_run(self):
        library = {"schedule": "serial", "params": {"algorithm": "library"}}
        for folder, scenario, runs in (("h200_4/profiler", {"topology": "h200_4", **library}, 3),
                                       ("h200_2/profiler", {"topology": "h200_2", **library}, 3),
                                       ("h200_2/profiler_symm_mem", {"topology": "h200_2", "schedule": "async_tp"}, 4)):
            text, case = self.profiler(folder, scenario)
            self.assertIn(f"measured case of {runs} runs", text)
            self.assertIn("start skew", text)  # clipped, so that no run is left out
            self.assertNotIn("left out", text)
            self.assertLess(abs(case["error"]), 0.1, folder)
            written = json.loads((self.folder / "case.json").read_text(encoding="utf-8"))
            self.assertEqual(len(written["samples_us"]), runs)
            self.assertEqual(written["recorded_makespan_us"], max(span["end_us"] for span in written["spans"]))

    def test_the_scenario_is_recognised(self):
        # Decided on two GPUs, reported on four. The recordings have no shapes.
        for folder, what, error in (("h200_2/profiler", "all_gather by a library's kernel, then a GEMM", 0.02),
                                    ("h200_2/profiler_symm_mem", "async_tp", 0.08),
                                    ("h200_4/profiler", "all_gather by a library's kernel, then a GEMM", 0.04)):
            text = self.output("import", str(ROOT / "traces" / folder), "--gemm", "8192x2560x8192", "--out", "case.json",
                               "--out-scenario", "scenario.json")
            self.assertIn(f"recognised  {what}", text)
            self.assertIn("start skew", text)
            scenario = json.loads((self.folder / "scenario.json").read_text(encoding="utf-8"))
            self.assertEqual(scenario["topology"], folder.split("/")[0])
            case = json.loads(self.sim("compare", "case.json", "--format", "json").stdout)["cases"][0]
            self.assertLess(abs(case["error"]), error, folder)
            self.assertTrue(case["tasks"]["by_kind"]["gemm"], folder)  # span by span

    def test_a_shape_that_is_not_in_the_trace_is_guessed(self):
        # By what the collective moves and by the GEMM's time. Decided on none of these recordings.
        for folder in ("h200_2/profiler", "h200_2/profiler_symm_mem", "h200_4/profiler"):
            text = self.output("import", str(ROOT / "traces" / folder), "--out", "case.json", "--out-scenario", "scenario.json")
            self.assertIn("GEMM 8192x2560x8192 bf16 guessed: 67108864 elements", text)
            scenario = json.loads((self.folder / "scenario.json").read_text(encoding="utf-8"))
            self.assertEqual(scenario["workload"]["gemm"], {"m": 8192, "n": 2560, "k": 8192, "dtype": "bf16"})
            case = json.loads(self.sim("compare", "case.json", "--format", "json").stdout)["cases"][0]
            self.assertLess(abs(case["error"]), 0.01, folder)
        unknown = self.folder / "unknown"  # a device without a topology: no time to compare with
        unknown.mkdir()
        for rank in ("rank0.json", "rank1.json"):
            trace = (ROOT / "traces" / "h200_2/profiler" / rank).read_text(encoding="utf-8")
            (unknown / rank).write_text(trace.replace("NVIDIA H200", "Foo"), encoding="utf-8")
        self.assertIn("recognised  nothing: the GEMM's shape is not in the trace", self.output("import", "unknown", "--out", "case.json"))

    def test_one_run_or_all_on_demand(self):
        serial = {"topology": "h200_4", "schedule": "serial", "params": {"algorithm": "library"}}
        text, case = self.profiler("h200_4/profiler", serial, "--iteration", "1")
        self.assertIn("measured case of 1 run, 775.7 us", text)
        text, case = self.profiler("h200_4/profiler", serial, "--iteration", "all")
        self.assertIn("measured case of 1 run, 681250", text)
        self.assertLess(case["error"], -0.99)
        self.assertEqual(self.sim("compare", "case.json").returncode, 3)
        recording = str(ROOT / "traces" / "h200_4" / "profiler")
        (self.folder / "case.json").unlink()
        self.assertIn("may be parts of one run", self.output("import", recording, "--out", "case.json"))
        self.output("import", recording, "--out", "steady.json", "--iteration", "steady")
        for wrong in ("3", "-1", "first"):
            self.assert_refused(["import", recording, "--out", "o.json", "--iteration", wrong], f"'{wrong}'", "0 to 2")
        self.file("two.json", {"topology": "h200_4", "schedule": "hetero_fused_1d", "params": {"chunks": 1}})
        self.assert_refused(["import", recording, "--out", "o.json", "--scenario", "two.json"], "GPUs ran 3 GEMMs", "has 2")

    def test_kernels_of_ones_own(self):
        self.file("t.json", self.TRACE)
        self.file("own.json", {"schema": 1, "kernels": [{"is": "memory_bound", "names": ["ODD"]}]})
        self.assertIn("not mapped  1 x odd, 9.1 % of the time", self.output("import", "t.json", "--out", "o.json"))
        text = self.output("import", "t.json", "--out", "o.json", "--kernels", "own.json")
        self.assertIn("2 spans", text)
        self.assertNotIn("not mapped", text)

    def test_folders(self):
        self.assert_refused(["import", ".", "--out", "o.json"], "has no trace in it")
        (self.folder / "ranks").mkdir()
        for name in ("ranks/a.json", "ranks/README.md", "ranks/notes.json"):
            self.file(name, self.TRACE if name.endswith("a.json") else {"what": "else"})
        self.file("ranks/case.json", {"schema": 1, "system": "x", "makespan_us": 1})
        self.assertIn("2 spans of 1 GPU", self.output("import", "ranks", "--out", "o.json"))
        self.file("ranks/1_kernel_trace.csv", "Kernel_Name,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp\n")
        self.assert_refused(["import", "ranks", "--out", "o.json"], "several formats", "a.json", "kernel_trace.csv")

    def test_refused(self):
        self.assert_refused(["import", "none.json", "--out", "o.json"], "none.json")
        self.assert_refused(["import", self.file("a.txt", "?"), "--out", "o.json"], "a.txt", "kineto", "nsight")
        self.assert_refused(["import", self.file("t.json", self.TRACE), "--out", "o.json", "--format", "kinetto"],
                            "'kineto'")
        self.assert_refused(["import", "t.json", "--out", "nowhere/o.json"], "nowhere/o.json")
        self.assert_refused(["import", "t.json", "--out", "o.json", "--scenario", "none.json"], "none.json")
