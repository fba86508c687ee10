"""sim report from outside: the page, the plots, and what is refused. The page itself: report_page_test."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest
import xml.etree.ElementTree

from sweep_folder import SweepTestCase, points

KINDS = ["heat_map", "losses", "pareto", "speedup"]


class Report(SweepTestCase):
    def test_page_is_in_the_folder_or_where_it_is_wanted(self):
        self.assertEqual(self.output("report", "sweep"), "sweep/report.html\n")
        self.assertEqual(self.output("report", "sweep", "--out", "page.html"), "page.html\n")
        page, other = self.page_data("page.html"), self.page_data("sweep/report.html")
        self.assertEqual(page.pop("made")["command"], "sim report sweep --out page.html")
        self.assertEqual(other.pop("made")["command"], "sim report sweep")
        self.assertEqual(page, other)
        self.assert_needs_nothing("page.html")
        count = len(points())
        failed = sum(row["error"] != "" for row in points())
        self.assertEqual(page["blocks"][1], {"text": f"{count} points of {count} combinations, 12 scenarios, {failed} failed.", "bad": True})
        self.assertEqual((self.folder / "page.html").read_text(encoding="utf-8").count("</script>"), 4)  # texts of the sweep end none

    def test_how_a_page_came_about(self):
        def made(day, *args):
            environment = {**os.environ, "SOURCE_DATE_EPOCH": day}
            done = subprocess.run([os.environ["SIM"], "report", "sweep", *args], cwd=self.folder, env=environment, capture_output=True,
                                  encoding="utf-8", check=False)
            return done.returncode, done.stderr
        name = "it's & <b>.html"
        self.assertEqual(made("1000000000", "--out", name), (0, ""))
        first = (self.folder / name).read_bytes()
        self.assertEqual(self.page_data(name)["made"], {"command": "sim report sweep --out 'it'\\''s & <b>.html'", "date": "2001-09-09",
                                                        "version": self.output("--version").strip()})
        self.assertEqual(made("1000000000", "--out", name), (0, ""))
        self.assertEqual((self.folder / name).read_bytes(), first)
        for wrong in ("yesterday", "-1", "9e9", ""):
            status, said = made(wrong)
            self.assertEqual((status, said.count("\n")), (2, 1), wrong)
            self.assertIn("SOURCE_DATE_EPOCH", said)

    def test_bytes_that_are_no_text(self):
        path = self.folder / "sweep" / "points.csv"
        path.write_bytes(path.read_bytes().replace(b"gate_2", b"gate\xff\xfe2"))
        self.output("report", "sweep")
        self.assertIn("gate\ufffd\ufffd2", (self.folder / "sweep" / "report.html").read_text(encoding="utf-8"))

    def test_a_part_of_a_sweep(self):
        self.write(points()[:20])
        self.output("report", "sweep")

    def test_only_one_point(self):
        self.write(points()[:1])
        self.output("report", "sweep")
        self.assertIn(" 1 scenarios", self.page_data("sweep/report.html")["blocks"][1]["text"])


class ReportRefuses(SweepTestCase):
    def damage(self, old, new):
        path = self.folder / "sweep" / "points.csv"
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def test_folders(self):
        self.assert_refused(["report"], "folder")
        self.assert_refused(["report", "nowhere"], "nowhere: no such folder", "sim sweep")
        (self.folder / "other").mkdir()
        self.assert_refused(["report", "other"], "other: is not the folder of a sweep", "sweep.json")
        (self.folder / "sweep" / "points.csv").unlink()
        self.assert_refused(["report", "sweep"], "points.csv")

    def test_what_was_swept(self):
        path = self.folder / "sweep" / "sweep.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        for key, value, expected in (("schema", 2, "/schema"), ("axes", 3, "/axes"), ("points", "many", "/points")):
            path.write_text(json.dumps({**whole, key: value}), encoding="utf-8")
            self.assert_refused(["report", "sweep"], "sweep.json", expected)
        path.write_text("{", encoding="utf-8")
        self.assert_refused(["report", "sweep"], "sweep.json")

    def test_axes_of_wrong_types(self):
        path = self.folder / "sweep" / "sweep.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        for key, value in (("fields", []), ("fields", [5]), ("values", 5), ("values", {"a": 1})):
            axes = [dict(whole["axes"][0], **{key: value}), *whole["axes"][1:]]
            path.write_text(json.dumps({**whole, "axes": axes}), encoding="utf-8")
            self.assert_refused(["report", "sweep"], "sweep.json: /axes/0/" + key, "expected")
        path.write_text(json.dumps({**whole, "base": 7}), encoding="utf-8")
        self.assert_refused(["report", "sweep"], "sweep.json: /base: is 7, expected an object")

    def test_damaged_rows(self):
        path = self.folder / "sweep" / "points.csv"
        whole = path.read_bytes()
        lines = whole.decode().splitlines(keepends=True)
        columns = lines[0].count(",") + 1
        for damaged, expected in (
                (whole[:-1], [f"points.csv:{len(lines)}", "cut off"]),
                (whole[:-30], [f"points.csv:{len(lines)}"]),
                ("".join([*lines[:4], "1,2\n", *lines[4:]]).encode(), ["points.csv:5", "has 2 cells", str(columns)]),
                (whole + b'"7\n', [f"points.csv:{len(lines) + 1}", "no CSV"]),
                (b"", ["points.csv:1", "no header"])):
            path.write_bytes(damaged)
            self.assert_refused(["report", "sweep"], *expected)

    def test_bad_numbers(self):
        self.damage("2600.0", "26OO.0")
        self.assert_refused(["report", "sweep"], "points.csv:2: makespan", "'26OO.0'", "expected a number")

    def test_missing_column(self):
        self.damage("staging_bytes", "staging_byte")
        self.assert_refused(["report", "sweep"], "points.csv:1", "'staging_bytes'", "did you mean 'staging_byte'")

    def test_nothing_to_show(self):
        failed = [row for row in points() if row["error"]]
        self.assertTrue(failed)
        for rows, expected in (([], "no rows"), (failed, failed[0]["error"])):
            self.write(rows)
            self.assert_refused(["report", "sweep"], "no point has a result", expected)

    def test_where_nothing_can_be_written(self):
        self.assert_refused(["report", "sweep", "--out", "nowhere/page.html"], "nowhere/page.html", "cannot be written")
        self.assert_refused(["report", "sweep", "--out", "sweep"], "sweep", "is a directory")


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class ReportPlots(SweepTestCase):
    def test_a_folder_gets_every_kind(self):
        self.output("report", "sweep", "--plot", "plots")
        found = sorted(path.name for path in (self.folder / "plots").iterdir())
        self.assertEqual(found, [kind + ".svg" for kind in KINDS])
        for name in found:
            root = xml.etree.ElementTree.parse(self.folder / "plots" / name).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertFalse((self.folder / "sweep" / "report.html").exists())

    def texts(self, *args):
        """Texts in a picture, in the order of drawing."""
        self.output("report", "sweep", "--plot", "picture.svg", *args)
        root = xml.etree.ElementTree.parse(self.folder / "picture.svg").getroot()
        return ["".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_labels_have_units_and_cells_have_values(self):
        texts = self.texts("--x", "chunks", "--y", "agent", "--value", "makespan_us", "--scenario",
                           "gate_2, bandwidth_GBps 1x")
        for agent in ("dma", "cu"):
            for chunks in (2, 4, 16):
                best = min(row["makespan_us"] for row in points() if row["workload"] == "gate_2" and not row["error"]
                           and (row["chunks"], row["agent"]) == (chunks, agent)
                           and row["what_if.topology.fabric.0.bandwidth_GBps"] == "1x")
                self.assertIn(f"{best:.0f}", texts)
        for label in ("chunks", "agent", "makespan [us]"):
            self.assertIn(label, texts)
        self.assertIn("makespan [us]", self.texts("--kind", "pareto"))
        self.assertIn("memory for staging [MB]", self.texts("--kind", "pareto", "--against", "staging_bytes"))
        self.assertIn("ideal + losses = makespan [us]", self.texts("--kind", "losses"))
        self.assertIn("speed-up over serial [x]", self.texts("--kind", "speedup"))

    def test_names_that_are_hard_to_draw(self):
        hard = "it's ''two'' \x1b[31m end"
        self.write([{**row, "workload": hard if row["workload"] == "gate_2" else row["workload"]} for row in points()])
        self.assertIn("it\u2019s \u2019\u2019two\u2019\u2019  [31m end", self.texts("--x", "workload", "--y", "chunks"))
        self.output("report", "sweep", "--plot", "plots")

    def test_a_gnuplot_that_fails(self):
        fake = self.folder / "bin" / "gnuplot"
        fake.parent.mkdir()
        for script, expected in (("echo 'no fonts' >&2; exit 3", "gnuplot failed (exit code 3): no fonts"),
                                 ("kill -9 $$", "gnuplot failed (Killed)")):
            fake.write_text("#!/bin/sh\n" + script + "\n", encoding="utf-8")
            fake.chmod(0o755)
            done = subprocess.run([os.environ["SIM"], "report", "sweep", "--plot", "a.svg"], cwd=self.folder, encoding="utf-8",
                                  env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Asim: plots: [^\n]+\n\Z")
            self.assertIn(expected, done.stderr)

    def test_png_and_page_at_once(self):
        self.output("report", "sweep", "--plot", "picture.png", "--kind", "losses", "--out", "page.html")
        head = (self.folder / "picture.png").read_bytes()[:24]
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(min(struct.unpack(">II", head[16:24])), 300)
        self.assertTrue((self.folder / "page.html").exists())

    def test_refused(self):
        def refused(args, *expected):
            self.assert_refused(["report", "sweep", "--plot", *args], *expected)
        refused(["a.pdf"], "a.pdf", ".svg, .png")
        refused(["a.svg", "--kind", "heatmap"], "--kind", "heat_map")
        refused(["a.svg", "--x", "chunk"], "'chunk'", "'chunks'")
        refused(["a.svg", "--x", "chunks", "--y", "chunks"], "two axes")
        refused(["a.svg", "--value", "makespan"], "'makespan'", "makespan_us")
        refused(["a.svg", "--kind", "pareto", "--against", "gemm_us"], "'gemm_us'", "comm_cus")
        refused(["a.svg", "--scenario", "gate_3, bandwidth_GBps 1x"], "gate_2, bandwidth_GBps 1x")
        refused(["nowhere/a.svg"], "nowhere/a.svg", "cannot be written")
        refused([str(pathlib.Path("sweep", "points.csv", "deep"))], "points.csv/deep")
        self.assert_refused(["report", "sweep", "--kind", "losses"], "--plot")

    def test_without_gnuplot(self):
        (self.folder / "empty").mkdir()
        done = subprocess.run([os.environ["SIM"], "report", "sweep", "--plot", "a.svg"], cwd=self.folder,
                              env={**os.environ, "PATH": str(self.folder / "empty")}, capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Asim: [^\n]*gnuplot-nox[^\n]*\n\Z")
