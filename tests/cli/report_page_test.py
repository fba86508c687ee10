"""The page of `sim report` in a browser: opened from its file, used with mouse and keyboard, its values compared with
those worked out here from points.csv. Skipped where Chromium or Selenium is missing (scripts/setup --all)."""
import json

from browser import Browser
from sweep_folder import LINK, LOSSES, SweepTestCase, points, read_points

try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    pass  # Browser skips


def number(text):
    return float(text) if text else None


class ReportPage(Browser, SweepTestCase):
    def setUp(self):
        super().setUp()
        self.output("report", "sweep")
        self.rows = read_points(self.folder / "sweep")
        self.ok = [row for row in self.rows if not row["error"]]
        self.url = (self.folder / "sweep" / "report.html").resolve().as_uri()
        self.page.get_log("performance")
        self.page.get(self.url)

    def tearDown(self):
        self.assertEqual([entry for entry in self.page.get_log("browser") if entry["level"] != "INFO"], [])
        messages = [json.loads(entry["message"])["message"] for entry in self.page.get_log("performance")]
        requests = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        # Not those of the browser's own start page.
        urls = {one["request"]["url"] for one in requests if not one["documentURL"].startswith("chrome:")}
        self.assertEqual({url for url in urls if not url.startswith("data:")}, {self.url})

    def pick(self, name, text):
        Select(self.page.find_element(By.NAME, name)).select_by_visible_text(text)

    def texts(self, css):
        return [one.get_attribute("textContent") for one in self.page.find_elements(By.CSS_SELECTOR, css)]

    def table(self, css):
        script = "return [...document.querySelector(arguments[0]).tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"
        return self.page.execute_script(script, css)

    def assert_close(self, shown, value):
        """Figures are shown with at least three and a half digits."""
        self.assertAlmostEqual(number(shown), value, delta=abs(value) * 6e-4 + 1e-9)

    def by_scenario(self):
        found = {}
        for row in self.ok:
            found.setdefault(f"{row['workload']}, bandwidth_GBps {row[LINK]}", []).append(row)
        return found

    def test_best_of_each_scenario(self):
        shown = {cells[0]: cells for cells in self.table("#best table")}
        self.assertEqual(list(shown), list(self.by_scenario()))
        for name, rows in self.by_scenario().items():
            best = min(rows, key=lambda row: row["makespan_us"])
            others = [row for row in rows if row["schedule"] != best["schedule"]]
            second = min(others, key=lambda row: row["makespan_us"])
            cells = shown[name]
            self.assertEqual(cells[1], str(len(rows)))
            self.assertIn(best["schedule"] + (f", chunks {best['chunks']}" if best["chunks"] else ""), cells[2])
            self.assert_close(cells[3], best["makespan_us"])
            self.assert_close(cells[4], best["speedup"])
            self.assertEqual(cells[5], f"{100 * best['ideal_us'] / best['makespan_us']:.1f} %")
            self.assertIn(second["schedule"], cells[7])
            self.assertEqual(cells[8], f"+{100 * (second['makespan_us'] / best['makespan_us'] - 1):.1f} %")
            parts = {loss: second[f"losses_us.{loss}"] - best[f"losses_us.{loss}"] for loss in LOSSES}
            parts["ideal"] = second["ideal_us"] - best["ideal_us"]
            decides = max(parts, key=parts.get)
            self.assertTrue(cells[9].startswith(decides.replace("fill_drain", "fill/drain")), (cells[9], parts))

    def heat_map(self, x, y, value, better, **fixed):
        """Best value by (y, x), worked out here."""
        cells = {}
        for row in self.ok:
            if row[value] != "" and all(row[name] == wanted for name, wanted in fixed.items()):
                at = (row[y], row[x])
                cells[at] = better(cells.get(at, row[value]), row[value])
        return cells

    def assert_heat_map(self, expected, xs, ys):
        """The cells in numbers are those expected, from left to right and top to bottom; the chart has as many, and its axes' names."""
        shown = [cells[:3] for cells in self.table("#heat table")]
        self.assertEqual([tuple(cells[:2]) for cells in shown], [(y or "(none)", x or "(none)") for y in ys for x in xs if (y, x) in expected])
        for y, x, text in shown:
            self.assert_close(text, expected[y.replace("(none)", ""), x.replace("(none)", "")])
        self.assertEqual(len(self.page.find_elements(By.CSS_SELECTOR, "#heat [aria-label=cell] rect")), len(expected))
        for axis, names in (("x", xs), ("y", ys)):
            self.assertEqual(self.texts(f"#heat [aria-label='{axis}-axis tick label'] text"), [name or "(none)" for name in names])

    def test_heat_map_over_any_two_axes(self):
        chunks, links = ["", "2", "4", "16"], ["0.5x", "1x", "2x", "10x"]  # by size
        self.pick("heat-x", "chunks")
        self.pick("heat-y", LINK)
        self.pick("heat-value", "makespan [us]")
        # The best over several operators would mix them: one is chosen, that of the first point.
        first = self.ok[0]["workload"]
        self.assert_heat_map(self.heat_map("chunks", LINK, "makespan_us", min, workload=first), chunks, links)
        self.assertNotIn("any (the best)", self.texts("[name=heat-fixed-workload] option"))
        self.pick("heat-fixed-agent", "cu")
        self.pick("heat-fixed-workload", "gate_10")
        found = self.heat_map("chunks", LINK, "makespan_us", min, agent="cu", workload="gate_10")
        self.assertNotIn(("1x", "16"), found)  # failed
        self.assert_heat_map(found, chunks, links)
        self.pick("heat-value", "overlap efficiency [%]")
        self.pick("heat-x", "schedule")
        found = self.heat_map("schedule", LINK, "overlap_efficiency", max, agent="cu", workload="gate_10")
        self.assert_heat_map({at: 100 * value for at, value in found.items()}, ["hetero_fused_1d", "ring_chunked", "serial"], links)

    def test_a_heat_map_says_what_its_colours_mean(self):
        self.pick("heat-value", "makespan [us]")
        self.assertIn("best makespan [us]", self.texts("#heat [class*=ramp] text"))

    def test_pareto_front_of_a_scenario(self):
        name = "gate_10, bandwidth_GBps 0.5x"
        self.pick("pareto-scenario", name)
        for cost, label, scale in (("comm_cus", "compute units for communication [CU]", 1),
                                   ("staging_bytes", "memory for staging [MB]", 1e-6)):
            self.pick("pareto-cost", label)
            rows = self.by_scenario()[name]
            front = [row for row in rows if not any(
                other[cost] <= row[cost] and other["makespan_us"] < row["makespan_us"] or
                other[cost] < row[cost] and other["makespan_us"] <= row["makespan_us"] for other in rows)]
            expected = sorted({(row[cost] * scale, row["makespan_us"]) for row in front})
            shown = self.table("#pareto table")
            self.assertEqual(len(shown), len(expected))
            for cells, (x, y) in zip(shown, expected):
                self.assert_close(cells[0], x)
                self.assert_close(cells[1], y)
            self.assertEqual(len(self.page.find_elements(By.CSS_SELECTOR, "#pareto [aria-label=dot] > *")), len(rows))

    def test_one_or_two_values_make_no_scale(self):
        for values in ({"cu": 16, "dma": 0}, {"cu": 0, "dma": 0}):
            rows = points()
            for row in rows:
                if not row["error"]:
                    row["comm_cus"] = values[row["agent"]]
            self.write(rows)
            self.output("report", "sweep")
            self.page.get(self.url)
            self.pick("pareto-cost", "compute units for communication [CU]")
            expected = ["0", "16.00"] if values["cu"] else ["0"]
            self.assertEqual(self.texts("#pareto [aria-label='x-axis tick label'] text"), expected)
            self.assertGreater(len(self.table("#pareto table")), 0)

    def test_points_without_a_what_if_stand_where_nothing_changes(self):
        rows = [{**row, LINK: ""} if row[LINK] == "1x" else row for row in points()]
        self.write(rows)
        self.output("report", "sweep")
        self.page.get(self.url)
        self.pick("heat-x", LINK)
        self.assertEqual(self.texts("#heat [aria-label='x-axis tick label'] text"), ["0.5x", "unchanged", "2x", "10x"])

    def test_results_do_not_tell_scenarios_apart(self):
        """Columns that only machines with measured energy fill differ between all points."""
        rows = points()
        for i, row in enumerate(rows):
            row.update({"energy_J.total": 1.5 * i, "losses_us.host": i, "confidence.basis": "fitted" if i % 2 else "estimate"})
        self.write(rows)
        before = self.texts("#best tbody tr td:first-child")
        self.output("report", "sweep")
        self.page.get(self.url)
        self.assertEqual(self.texts("#best tbody tr td:first-child"), before)

    def test_losses_of_a_scenario(self):
        name = 'a, "b" </script>, bandwidth_GBps 2x'
        self.pick("losses-scenario", name)
        best = {}
        for row in self.by_scenario()[name]:
            best[row["schedule"]] = min(best.get(row["schedule"], row), row, key=lambda one: one["makespan_us"])
        expected = sorted(best.values(), key=lambda row: row["makespan_us"])
        shown = self.table("#losses table")
        self.assertEqual([cells[0] for cells in shown], [row["schedule"] for row in expected])
        for cells, row in zip(shown, expected):
            for text, column in zip(cells[2:], ["ideal_us", *(f"losses_us.{loss}" for loss in LOSSES), "makespan_us"]):
                self.assert_close(text, row[column])
        self.assertEqual(len(self.page.find_elements(By.CSS_SELECTOR, "#losses [aria-label=bar] rect")),
                         sum(row[name] != 0 for row in expected for name in ["ideal_us", *(f"losses_us.{loss}" for loss in LOSSES)]))

    def count(self):
        return int(self.page.find_element(By.CSS_SELECTOR, "#points .count").text.split()[0])

    def column(self, name):
        at = self.texts("#points th").index(name)
        return [cells[at] for cells in self.table("#points table")]

    def test_points_are_filtered(self):
        self.assertEqual(self.count(), len(self.rows))
        words = self.page.find_element(By.CSS_SELECTOR, "#points [name=words]")
        words.send_keys("RING 10x")
        expected = [row for row in self.rows if row["schedule"] == "ring_chunked" and row[LINK] == "10x"]
        self.assertEqual(self.column("point"), [row["point"] for row in expected])
        self.pick("only-agent", "cu")
        expected = [row for row in expected if row["agent"] == "cu"]
        self.assertEqual(self.count(), len(expected))
        self.assertEqual(self.column("point"), [row["point"] for row in expected])
        words.clear()
        words.send_keys("nothing like it")
        self.assertEqual((self.count(), self.column("point")), (0, []))

    def test_points_are_sorted(self):
        head = next(one for one in self.page.find_elements(By.CSS_SELECTOR, "#points th") if one.get_attribute("textContent") == "makespan [us]")
        self.pick("only-chunks", "16")
        wanted = [row for row in self.rows if row["chunks"] == "16"]
        failed = sum(row["error"] != "" for row in wanted)
        makespans = sorted(row["makespan_us"] for row in wanted if not row["error"])
        for order in (makespans, makespans[::-1]):
            # Anywhere on the head: here in its upper left corner.
            ActionChains(self.page).move_to_element_with_offset(head, 3 - head.size["width"] // 2, 3 - head.size["height"] // 2).click().perform()
            shown = self.column("makespan [us]")
            for text, value in zip(shown, order):
                self.assert_close(text, value)
            self.assertEqual(shown[len(order):], [""] * failed)  # at the end in either order
        head.send_keys(Keys.ENTER)
        self.assert_close(self.column("makespan [us]")[0], makespans[0])

    def test_all_points_and_figures_can_be_seen(self):
        self.assertEqual(len(self.column("point")), 100)
        self.page.find_element(By.CSS_SELECTOR, "#points .more").click()
        self.assertEqual(self.column("point"), [row["point"] for row in self.rows])
        self.page.find_element(By.NAME, "all-figures").click()
        for text, row in zip(self.column("pattern loss [us]"), self.rows):
            self.assertEqual(number(text), row["losses_us.pattern"] if not row["error"] else None)

    def test_failed_points_are_seen(self):
        self.page.find_element(By.NAME, "failures").click()
        failed = [row for row in self.rows if row["error"]]
        self.assertTrue(failed)
        self.assertEqual(self.column("point"), [row["point"] for row in failed])
        self.assertEqual(self.column("error"), [row["error"] for row in failed])
        self.assertIn(f"{len(failed)} failed", self.texts("p.bad")[0])

    def test_fits_and_can_be_read_in_light_and_dark(self):
        self.assert_fits_and_can_be_read("body", "th", "#points td", ".note", "select", "tr.bad td", "code", "figure text")
