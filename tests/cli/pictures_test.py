"""Pages and pictures as they are seen: in a browser, of sweeps and comparisons with long names, many schedules and wide ranges. No
text is cut off or lies on another one, and no two schedules look alike."""
import shutil
import unittest

from browser import Browser
from sim_case import SMALL, SimTestCase
from sweep_folder import SweepTestCase, points

SCHEDULES = ["serial", "shard_direct", "shard_p2p", "ring_chunked", "uniform_fused_1d", "hetero_fused_1d", "uniform_unfused_1d",
             "hetero_unfused_1d", "uniform_fused_2d", "hetero_fused_2d", "uniform_unfused_2d", "hetero_unfused_2d"]
WHAT_IFS = {"what_if.topology.fabric.0.bandwidth_GBps": ["1x", "2x"], "what_if.device.dma.engine_GBps": ["1x", "4x"],
            "what_if.device.gemm.bf16.peak_TFLOPS": ["1x", "1.5x"], "what_if.device.dma.peer_engines": [14, 4]}
LABELS = ["bandwidth_GBps", "engine_GBps", "peak_TFLOPS", "peer_engines"]
SWEEP = {"schema": 1, "name": "long_labels", "description": "What-ifs with long names that change together.",
         "base": {"topology": "mi300x_8.json", "workload": {
             "collective": "all_gather", "gemm": {"m": 32768, "n": 4096, "k": 8192, "dtype": "bf16"}}},
         "zipped": [WHAT_IFS], "axes": {"schedule": SCHEDULES, "params.chunks": [2], "params.agent": ["dma", "cu"]}}

# Colour and outline of each series of a page's legends.
LEGENDS = """
    return Object.fromEntries([...document.querySelectorAll('[class$="-swatch"]')].filter(one => one.querySelector('svg path')).map(one => {
      const mark = one.querySelector('svg'), look = getComputedStyle(mark.querySelector('path'));
      return [one.textContent.trim(), [mark.getAttribute('fill'), look.fill, mark.querySelector('path').getAttribute('d')].join(' ')]; }));"""
# Colour and outline of each mark of a legend, which is what stands left of a schedule's name at its height.
LOOKS = """
    const looks = {};
    for (const svg of document.querySelectorAll('svg')) {
      const marks = [...svg.querySelectorAll('circle, polygon, rect, use, path')].map(one => [one, one.getBoundingClientRect()]);
      for (const text of svg.querySelectorAll('text')) {
        const name = text.textContent.trim(), box = text.getBoundingClientRect(), middle = (box.top + box.bottom) / 2;
        if (!arguments[0].includes(name)) continue;
        const left = marks.filter(([, at]) => at.right <= box.left + 2 && at.left > box.left - 60 && at.width < 45 &&
          at.height < 20 && at.top < middle && middle < at.bottom);
        if (!left.length) continue;
        const [mark] = left.pop(), shape = mark.getAttribute('points');
        const corners = shape ? shape.trim().split(/\\s+/).map(one => one.split(',').map(Number)) : [];
        looks[name] = [mark.tagName, mark.getAttribute('href') || mark.getAttribute('xlink:href') || '',
          getComputedStyle(mark).fill, getComputedStyle(mark).stroke, mark.getAttribute('fill') || '',
          corners.map(one => one.map((value, i) => Math.round(value - corners[0][i])).join(',')).join(' ')].join(' ');
      }
    }
    return looks;"""


class Legends:
    def assert_legends_differ(self):
        looks = self.page.execute_script(LEGENDS)
        self.assertEqual({name for name in looks} & set(SCHEDULES), set(SCHEDULES))
        self.assertEqual(len(set(looks.values())), len(looks), looks)


class Pictures(Browser, Legends, SweepTestCase):
    def open(self, name):
        self.page.get((self.folder / name).resolve().as_uri())

    def sweep(self):
        self.output("sweep", self.file("long.json", SWEEP), "--out", "long")

    def assert_looks_differ(self, names):
        looks = self.page.execute_script(LOOKS, names)
        self.assertEqual(sorted(looks), sorted(names))
        self.assertEqual(len(set(looks.values())), len(names), looks)

    def test_long_labels_leave_room_for_values(self):
        self.sweep()
        self.output("report", "long")
        self.open("long/report.html")
        self.page.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
        right, width = self.page.execute_script("""return [Math.max(...[...document.querySelectorAll('dd, dt, .pickers *, caption, p')]
            .map(one => one.getBoundingClientRect().right)), window.innerWidth]""")
        self.assertLessEqual(right, width)
        # At least half of the page is for the values, and of a heat map's width for its cells.
        for values, whole in (("dd", "dl"), ("#heat [aria-label=cell] rect", "#heat")):
            self.page.execute_script("""for (const [name, value] of arguments[0]) {
                const select = document.querySelector(`[name=${name}]`);
                select.value = value; select.dispatchEvent(new Event('change')); }""",
                                     [["heat-x", "agent"], ["heat-y", list(WHAT_IFS)[0]]])
            left, from_, to = self.page.execute_script("""
                const whole = document.querySelector(arguments[1]).getBoundingClientRect();
                return [document.querySelector(arguments[0]).getBoundingClientRect().left, whole.left, whole.right]""", values, whole)
            self.assertLess(left, (from_ + to) / 2, values)
        self.assert_drawings_can_be_read()
        self.assert_legends_differ()
        self.assert_fits_and_can_be_read()

    def test_scenarios_name_every_what_if(self):
        self.sweep()
        self.output("report", "long")
        self.open("long/report.html")
        names = self.page.execute_script(
            "return [...document.querySelectorAll('#best tbody tr')].map(row => row.cells[0].textContent)")
        expected = [", ".join(f"{label} {value}" for label, value in zip(LABELS, values)) for values in zip(*WHAT_IFS.values())]
        self.assertEqual(names, expected)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_plots_of_long_labels(self):
        self.sweep()
        self.output("report", "long", "--plot", "plots")
        for kind in ("heat_map", "losses", "pareto", "speedup"):
            with self.subTest(kind=kind):
                self.open(f"plots/{kind}.svg")
                self.assert_drawings_can_be_read()
        self.open("plots/pareto.svg")
        self.assert_looks_differ(SCHEDULES)
        for axis in WHAT_IFS:
            with self.subTest(axis=axis):
                self.output("report", "long", "--plot", "map.svg", "--x", "schedule", "--y", axis, "--value", "exposed_comm_us")
                self.open("map.svg")
                self.assert_drawings_can_be_read()

    def wide(self):
        """A sweep whose first scenario has makespans from 1 us to 10 s."""
        rows = points()
        for i, row in enumerate(rows):
            if not row["error"]:
                row["makespan_us"] = 10.0 ** (i % 8)
        self.write(rows)

    def test_ticks_of_seven_decades(self):
        self.wide()
        self.output("report", "sweep")
        self.open("sweep/report.html")
        self.assert_drawings_can_be_read()

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_plotted_ticks_of_seven_decades(self):
        self.wide()
        self.output("report", "sweep", "--plot", "wide.svg", "--kind", "pareto")
        self.open("wide.svg")
        self.assert_drawings_can_be_read()


class ComparisonPage(Browser, Legends, SimTestCase):
    def test_many_schedules_and_a_wide_range(self):
        cases = []
        for i, schedule in enumerate(SCHEDULES):
            params = {"params": {"chunks": 2}} if "_1d" in schedule or "_2d" in schedule else {"params": {}}
            cases.append({"schema": 1, "system": "made_up", "scenario": {**SMALL, "schedule": schedule, **params},
                          "samples_us": [10.0 ** (i % 7)]})
        for i, case in enumerate(cases):
            self.file(f"{i}.json", case)
        done = self.sim("compare", *[f"{i}.json" for i in range(len(cases))], "--html", "page.html")
        self.assertEqual((done.returncode, done.stderr), (3, ""))  # measured times as far apart as these are no runs
        self.page.get((self.folder / "page.html").resolve().as_uri())
        self.assert_drawings_can_be_read()
        self.assert_legends_differ()
        self.assert_fits_and_can_be_read("body", "td", "th", ".note", "code", "figure text")
        self.assert_no_column_is_hidden("#cases", "#errors")


class ModelPage(Browser, SimTestCase):
    def test_bars_of_four_steps(self):
        self.output("model", "llama3_8b", "--topology", "h200_4", "--sequence-parallel", "--tokens", "512,4096,32768,262144",
                    "--html", "page.html")
        self.page.get((self.folder / "page.html").resolve().as_uri())
        self.assert_fits_and_can_be_read("body", "td", "th", ".note", "code", "figure text")
        self.assert_no_column_is_hidden("#steps", "#operators")
