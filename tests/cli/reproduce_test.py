"""`sim reproduce`: published figures against predictions, and what is said where one isn't as stated."""
import copy
import csv
import hashlib
import io
import json

from sim_case import ROOT, SimTestCase

GIB = 1 << 30
KINDS = ["independent", "same_source", "fitted", "qualitative"]
# 7 GiB leave every GPU of the mesh over its 7 links.
EXPERIMENT = {
    "schema": 2, "name": "mine", "description": "An all-to-all by DMA and by kernels.", "source": "nobody",
    "scenarios": {
        "base": {"topology": "mi300x_8.json", "schedule": "serial",
                 "workload": {"operators": [{"name": "c", "type": "collective", "collective": "all_to_all",
                                             "bytes": 8 * GIB, "dtype": "bf16", "needs": []}]}},
        "axes": {"workload.operators.0.bytes": [8 * GIB, 16 * GIB]}},
    "variants": {"dma": {}, "cu": {"params.agent": "cu"}},
    "cases": [{"name": "rate", "kind": "independent", "where": f"workload.operators.0.bytes == {8 * GIB}", "value": f"{7 * GIB} / dma.makespan_us",
               "published": 320500, "unit": "B/us", "tolerance": {"relative_pct": 2}, "status": "enforced"},
              {"name": "twice the bytes", "kind": "same_source", "value": "dma.makespan_us / 2", "over": "max", "published": 23000, "unit": "us",
               "tolerance": {"range": [22000, 24000]}, "status": "enforced"},
              {"name": "sizes at which both take as long within 1 %", "kind": "qualitative",
               "value": "max(dma.makespan_us / cu.makespan_us, 1) < 1.01",
               "over": "count", "published": 2, "tolerance": {"absolute": 0.5}, "status": "enforced"}]}


def changed(**case):
    """EXPERIMENT with only its first case, and that with these fields."""
    experiment = copy.deepcopy(EXPERIMENT)
    experiment["cases"] = [{**experiment["cases"][0], **case}]
    return experiment


class Reproduce(SimTestCase):
    reproduced = None

    def shipped(self):
        """What ships, run once for all tests."""
        if Reproduce.reproduced is None:
            Reproduce.reproduced = json.loads(self.output("reproduce", "--format", "json"))
        return Reproduce.reproduced

    def test_all_that_ship_are_as_stated(self):
        done = self.shipped()
        self.assertEqual((done["enforced"], done["known_gaps"], done["not_as_stated"]), (203, 105, 0))
        self.assert_kinds_add_up(done)
        for experiment in done["experiments"]:
            for case in experiment["cases"]:
                with self.subTest(system=experiment["system"], case=case["name"]):
                    inside = case["low"] <= case["predicted"] <= case["high"]
                    self.assertEqual(inside, case["status"] == "enforced")
                    self.assertEqual(bool(case["reason"]), case["status"] == "known_gap")
                    if case["low_p90"] is not None:
                        self.assertLess(case["low_p90"], case["high_p90"])
                        self.assertEqual(case["inside_p90"], case["low_p90"] <= case["published"] <= case["high_p90"])
                    if case["published"] > (5 if case["unit"] in ("%", "points") else 0):
                        self.assertLessEqual(case["high"], 2 * case["low"], "accepts nearly anything")

    def test_nine_of_ten_published_figures_are_where_they_are_expected(self):
        """Of the figures that had no say in the widths (scripts/accuracy), and of all."""
        done = self.shipped()
        judged = [(hashlib.sha256((e["system"] + e["name"] + c["name"]).encode()).digest()[0] % 2, c["inside_p90"])
                  for e in done["experiments"] for c in e["cases"] if c["kind"] == "independent" and c["inside_p90"] is not None]
        for half in (judged, [one for one in judged if one[0] == 1]):
            self.assertGreater(len(half), 60)
            share = sum(inside for _, inside in half) / len(half)
            self.assertTrue(0.85 <= share <= 0.97, share)
        without = [c["name"] for e in done["experiments"] for c in e["cases"]
                   if c["kind"] == "independent" and c["inside_p90"] is None and c["unit"] not in ("blocks", "CUs")]
        self.assertEqual(without, [])

    def test_missed_figures_are_those_that_runs_name(self):
        """configs/accuracy.json has each known gap with its device and kind of run."""
        done = self.shipped()
        missed = [(e["system"] + "/" + e["name"], c["name"], c["device"], c["run_kind"], float(f"{c['predicted']:.4g}")) for e in done["experiments"]
                  for c in e["cases"] if c["status"] == "known_gap" and c["kind"] != "qualitative" and c["run_kind"] and c["device"]]
        accuracy = json.loads((ROOT / "configs/accuracy.json").read_text())
        self.assertEqual([(m["experiment"], m["figure"], m["device"], m["kind"], m["predicted"]) for m in accuracy["missed"]], missed)

    def assert_kinds_add_up(self, done):
        """The counts of kinds are those of the cases, and of all of them."""
        cases = [case for experiment in done["experiments"] for case in experiment["cases"]]
        inside = [case for case in cases if case["low"] <= case["predicted"] <= case["high"]]
        self.assertEqual(list(done["kinds"]), KINDS)
        for kind, counts in done["kinds"].items():
            some = [case for case in cases if case["kind"] == kind]
            self.assertEqual(counts, {"within_tolerance": sum(case["kind"] == kind for case in inside), "of": len(some),
                                      "inside_p90": sum(case["inside_p90"] is True for case in some),
                                      "judged": sum(case["inside_p90"] is not None for case in some)}, kind)
        self.assertEqual(sum(counts["of"] for counts in done["kinds"].values()), len(cases))

    def test_table_of_experiments_adds_up(self):
        """Each column of the table of experiments sums to its last row, which is what JSON says."""
        table = self.output("reproduce", "rocm", "--format", "markdown").split("\n\n")[0]
        heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        self.assertEqual(heading[2:], [kind.replace("_", " ") for kind in KINDS] + ["known gaps", "conclusions right"])
        self.assertGreater(len(rows), 1)
        done = json.loads(self.output("reproduce", "rocm", "--format", "json"))
        self.assert_kinds_add_up(done)
        for column, kind in enumerate(KINDS, 2):
            counted = [sum(numbers) for numbers in zip(*(map(int, row[column].split(" of ")) for row in rows[:-1] if row[column]))]
            said = done["kinds"][kind]
            self.assertEqual(counted or [0, 0], [said["within_tolerance"], said["of"]])
            self.assertEqual(rows[-1][column], f"{counted[0]} of {counted[1]}" if counted else "")

    def test_one_system(self):
        done = json.loads(self.output("reproduce", "rccl", "--format", "json"))
        self.assertEqual({experiment["system"] for experiment in done["experiments"]}, {"rccl"})

    def test_values_and_formats(self):
        name = self.file("mine.json", EXPERIMENT)
        cases = json.loads(self.output("reproduce", name, "--format", "json"))["experiments"][0]["cases"]
        single = json.loads(self.file_text(name))["scenarios"]["base"]
        config = self.file("run.jsonl", json.dumps(single))
        makespan = json.loads(self.output("batch", config))["makespan_us"]
        self.assertEqual([case["scenarios"] for case in cases], [1, 2, 2])
        self.assertAlmostEqual(cases[0]["predicted"], 7 * GIB / makespan, delta=1e-6 * makespan)
        self.assertAlmostEqual(cases[1]["predicted"], makespan, delta=1e-3 * makespan)  # latencies apart
        self.assertEqual(cases[2]["predicted"], 2)
        rows = list(csv.DictReader(io.StringIO(self.output("reproduce", name, "--format", "csv"))))
        self.assertEqual([float(row["predicted"]) for row in rows], [case["predicted"] for case in cases])
        self.assertIn("| rate |", self.output("reproduce", name, "--format", "markdown"))
        self.assertEqual([row["kind"] for row in rows], [case["kind"] for case in cases])
        self.assertEqual([case["kind"] for case in cases], ["independent", "same_source", "qualitative"])
        self.assertTrue(self.output("reproduce", name).endswith(
            "independent: 1 of 1 within tolerance; same source: 1 of 1 within tolerance; "
            "qualitative: 1 of 1 within tolerance\n"
            "in the interval meant to hold nine of ten: independent: 1 of 1; same source: 1 of 1; qualitative: 1 of 1\n3 enforced, 0 known gaps, 0 not as stated\n"))

    def test_fastest_of_variants(self):
        experiment = {**EXPERIMENT, "fastest_of": {"best": ["cu", "dma"]},
                      "cases": [{"name": "least", "kind": "qualitative", "value": "best.makespan_us - min(dma.makespan_us, cu.makespan_us)", "over": "max",
                                 "published": 0, "tolerance": {"absolute": 1e-6}, "status": "enforced"},
                                {"name": "whose", "kind": "qualitative", "value": "dma.makespan_us < cu.makespan_us ? best.comm_cus == dma.comm_cus : "
                                 "best.comm_cus == cu.comm_cus", "over": "count", "published": 2, "tolerance": {"absolute": 0.5},
                                 "status": "enforced"},
                                {"name": "are different", "kind": "qualitative", "value": "cu.comm_cus - dma.comm_cus", "over": "min", "published": 56,
                                 "tolerance": {"absolute": 0.5}, "status": "enforced"},
                                {"name": "on 7 streams", "kind": "qualitative", "value": "cu.comm_cus / cu.params.copy_cus", "over": "max", "published": 7,
                                 "tolerance": {"absolute": 1e-9}, "status": "enforced"}]}
        self.assertIn("4 enforced, 0 known gaps, 0 not as stated", self.output("reproduce", self.file("mine.json", experiment)))
        experiment["cases"][0]["value"] = "best.params.copy_cus"  # which only one of its members has
        self.assert_refused(["reproduce", self.file("mine.json", experiment)], "/cases/0/value", "'best.params.copy_cus'")
        for groups, *expected in [({"best": ["cu", "dmaa"]}, "/fastest_of/best", "did you mean 'dma'"),
                                  ({"dma": ["cu"]}, "/fastest_of/dma", "name of a variant"),
                                  ({"best": []}, "/fastest_of/best", "no variant"), ({"a b": ["cu"]}, "/fastest_of/a b")]:
            self.assert_refused(["reproduce", self.file("mine.json", {**EXPERIMENT, "fastest_of": groups})], *expected)

    def file_text(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def test_exit_codes(self):
        gap = {"status": "known_gap", "reason": "nobody knows"}
        for case, code, word in [({}, 0, "enforced"), ({"published": 500000}, 3, "OUTSIDE"),
                                 ({"published": 500000, **gap}, 0, "known gap"), (gap, 3, "CLOSED GAP")]:
            with self.subTest(case=case):
                done = self.sim("reproduce", self.file("mine.json", changed(**case)))
                self.assertEqual((done.returncode, done.stderr), (code, ""))
                self.assertIn(word, done.stdout)

    def test_kind_is_required(self):
        unkind = changed()
        del unkind["cases"][0]["kind"]
        self.assert_refused(["reproduce", self.file("mine.json", unkind)], "mine.json", "/cases/0/kind", "missing")
        old = json.loads(self.output("reproduce", self.file("mine.json", {**unkind, "schema": 1}), "--format", "json"))
        self.assertEqual(old["experiments"][0]["cases"][0]["kind"], "same_source")  # all that an old file can claim
        self.assert_refused(["reproduce", self.file("mine.json", changed(kind="fited"))], "mine.json", "/cases/0/kind", "'fited'",
                            "did you mean 'fitted'")

    def test_conclusions(self):
        """A conclusion holds where its number is above 0; what its file says of that is checked."""
        def with_conclusion(**conclusion):
            return {**EXPERIMENT, "conclusions": [{"name": "DMA is slower", "over": "mean", "value": "dma.makespan_us / cu.makespan_us - 2",
                                                   "status": "reversed", "reason": "both fill the links", **conclusion}]}

        def of_file(experiment, *flags):
            return self.sim("reproduce", self.file("mine.json", experiment), *flags)

        done = of_file(with_conclusion())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("reversed        DMA is slower\n             because both fill the links\n", done.stdout)
        self.assertIn("\nconclusions: 0 right, 1 reversed, 0 not expressible\n3 enforced", done.stdout)
        known = json.loads(of_file(with_conclusion(), "--format", "json").stdout)
        self.assertEqual(known["conclusions"], {"right": 0, "reversed": 1, "not_expressible": 0})
        self.assertEqual(known["experiments"][0]["conclusions"][0]["holds"], False)
        self.assertIn("| DMA is slower | reversed: both fill the links |", of_file(with_conclusion(), "--format", "markdown").stdout)
        self.assertIn("DMA is slower,conclusion,", of_file(with_conclusion(), "--format", "csv").stdout)
        for status, value, code, word in [("right", "1", 0, "right "), ("right", "0", 3, "REVERSED"), ("reversed", "1", 3, "HOLDS")]:
            with self.subTest(status=status, value=value):
                done = of_file(with_conclusion(status=status, value=value))
                self.assertEqual(done.returncode, code)
                self.assertIn(word, done.stdout)
        nothing = with_conclusion(status="not_expressible")
        self.assert_refused(["reproduce", self.file("mine.json", nothing)], "/conclusions/0/status", "so there is no 'value'")
        del nothing["conclusions"][0]["value"]
        self.assertIn("0 right, 0 reversed, 1 not expressible", of_file(nothing).stdout)
        del nothing["conclusions"][0]["reason"]
        self.assert_refused(["reproduce", self.file("mine.json", nothing)], "/conclusions/0/status", "needs 'reason'")
        for changed_to, *expected in [({"status": "revered"}, "did you mean 'reversed'"), ({"where": "0 > 1"}, "holds for no scenario"),
                                      ({"over": "only"}, "2 scenarios"), ({"value": "dma.makespn_us"}, "did you mean 'dma.makespan_us'")]:
            self.assert_refused(["reproduce", self.file("mine.json", with_conclusion(**changed_to))], "mine.json: /conclusions/0/", *expected)

    def test_refused(self):
        for experiment, *expected in [
                (changed(value="dma.makespn_us"), "/cases/0/value", "'dma.makespn_us'", "did you mean 'dma.makespan_us'"),
                (changed(value="\"text\""), "/cases/0/value", "expected a finite number"),
                (changed(value="1 / (dma.makespan_us * 0)"), "/cases/0/value", "expected a finite number"),
                (changed(where="workload.operators.0.bytes == 1"), "/cases/0/where", "holds for no scenario"),
                (changed(where="dma.makespan_us > 0"), "/cases/0/over", "2 scenarios"),
                (changed(tolerance={}), "/cases/0/tolerance", "'relative_pct'"),
                (changed(tolerance={"range": [2, 1]}), "/cases/0/tolerance/range"),
                (changed(status="known_gap"), "/cases/0/reason", "missing"),
                (changed(status="enforcd"), "/cases/0/status", "did you mean 'enforced'"),
                ({**EXPERIMENT, "variants": {}}, "/variants", "no variant"),
                ({**EXPERIMENT, "variants": {"a b": {}}}, "/variants/a b"),
                ({**EXPERIMENT, "variants": {"a": {"params.agnt": "cu"}}}, "/variants/a", "did you mean 'params.agent'"),
                ({**EXPERIMENT, "variants": {"a": {"params.agent": "cpu"}}}, "/variants/a", "'cpu'"),
                ({**EXPERIMENT, "cases": []}, "/cases", "no case"),
                ({**EXPERIMENT, "scenarios": {"base": {"topology": "mi300x_9", "schedule": "serial"}}}, "mi300x_9")]:
            self.assert_refused(["reproduce", self.file("mine.json", experiment)], "mine.json", *expected)
        self.assert_refused(["reproduce", "fico"], "'fico'", "did you mean 'ficco'")
