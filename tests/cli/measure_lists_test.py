"""The lists of scripts/measure fit the machine that they are for; shipped ones are what the scripts write; programs are built."""
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import unittest.mock

from measure_case import HIP, ROOT, MeasureTestCase

import as_plans
import first
import lists
import single
from measure import pieces, plans, platforms, programs
from measure.fault import OurFault, UserError

FACTS = {"memory_GiB": 80, "energy_counter": 1}
# GPUs, units of a GPU, GiB for the cases
MACHINES = [(1, 132, 24), (2, 104, 24), (4, 64, 24), (8, 304, 24), (16, 228, 24), (1, 20, 3), (2, 8, 1)]
FILES = {"gemm": "gemm_alone.cpp", "memory": "memory_rate.cpp"}  # others: KIND.cpp


def reach(gpus):
    return [[int(i != j) for j in range(gpus)] for i in range(gpus)]


def keys_of(kind):
    """{key: its own value or ''} of a kind of case, which microbench's source says where it measures the kind."""
    if kind in as_plans.PARTS:
        return as_plans.KEYS[kind]
    text = (HIP / FILES.get(kind, f"{kind}.cpp")).read_text()
    if "gemm_keys" in text:
        text = (HIP / "gemm_case.hpp").read_text() + text
    found = re.findall(r'\{"(\w+)"(?:,\s*Type::\w+(?:,\s*"(\w*)")?)?', text)
    return dict(found)


class MeasureLists(MeasureTestCase):
    def made(self, gpus, units, arena):
        facts = {**FACTS, "gpus": gpus, "compute_units": units, "peer_access": reach(gpus)}
        return pieces.make(facts, arena, 1, ["{}"] * 20)

    def test_every_case_fits_the_machine(self):
        for gpus, units, arena in MACHINES:
            lines, made, skipped = self.made(gpus, units, arena)
            self.assertEqual(set(lines) & set(skipped), set())
            self.assertEqual(set(lines), {piece.file for piece in made})
            for file in set(lines) - {"replays"}:
                self.assertEqual(len(lines[file]), len(set(lines[file])))
                for line in lines[file]:
                    kind, *words = line.split()
                    keys = dict(word.split("=") for word in words)
                    with self.subTest(machine=(gpus, units, arena), line=line):
                        self.assertLessEqual(set(keys), set(keys_of(kind)))
                        self.assertLessEqual(int(keys.get("blocks", 0)), units)
                        self.assertLessEqual(int(keys.get("units", 0)), units)
                        self.assertLess(int(keys.get("gpu", 0)), gpus)
                        self.assertLessEqual(int(keys.get("gpus", 1)), gpus)
                        self.assertLess(int(keys.get("peers", 0)), gpus)
                        self.assertLess(single.number(keys, "size"), arena << 30)

    def test_the_first_cases_are_of_all_kinds(self):
        lines, made, _ = self.made(4, 132, 24)
        begun = {line.split()[0] for piece in made if piece.stage == "A" and piece.file != "replays"
                 for line in lines[piece.file][piece.begin:piece.end]}
        self.assertEqual(begun, {"gemm", "latency", "local_copy", "memory", "sustained", "interference", "late_copy", "first_served",
                                 "peer_copy", "energy"})

    def test_calibrate_reads_every_kind_of_case(self):
        reader = (ROOT / "sim/calibrate/measurements/measurement_file.cpp").read_text()
        known = set(re.findall(r'"(\w+)"', re.search(r"kinds\{(.*?)\};", reader, re.S).group(1)))
        lines, made, _ = self.made(8, 304, 24)
        for piece in made:
            if piece.file not in ("replays", "residency"):  # read by replay's reader, and by no fit
                with self.subTest(piece=piece.name):
                    self.assertLessEqual({line.split()[0] for line in lines[piece.file]}, known)

    def test_many_units_and_gpus_are_used(self):
        lines, _, _ = self.made(8, 304, 24)
        self.assertIn("memory operation=write blocks=304 size=1GiB", lines["local"])
        self.assertIn("gemm m=1024 n=2560 k=8192 units=288", lines["gemm"])
        self.assertIn("peer_copy gpus=8 pattern=ring size=1GiB", lines["four_gpus"])
        self.assertIn("gemm m=8192 n=7168 k=8192 gpu=7", lines["parts_1"])

    def test_own_values_are_those_of_microbench(self):
        for kind in ("gemm", "peer_copy", "local_copy", "memory", "interference", "late_copy", "sustained", "energy", "residency"):
            given, keys = {**single.GIVEN, **single.OTHER.get(kind, {})}, keys_of(kind)
            for key in set(given) & set(keys):
                with self.subTest(kind=kind, key=key):
                    self.assertIn(keys[key], (given[key], ""))

    def test_first_cases_are_of_the_lists_kinds(self):
        machine = lists.Machine(4, 132)
        for file in ("gemm", "local", "two_gpus", "four_gpus", "beside", "energy"):
            self.assertGreater(len(list(single.singles(getattr(first, file)(machine)))), 0)

    def test_spread_sizes_are_whole_pages_from_half_to_all_of_a_size_and_evenly_so(self):
        size = 64 << 20
        sizes = [as_plans.spread_size(size, number) for number in range(1000)]
        self.assertEqual((sizes[0], as_plans.spread_size(4096, 7)), (size, 4096))
        self.assertEqual({one % 4096 for one in sizes}, {0})
        self.assertTrue(all(size / 2 <= one <= size for one in sizes))
        for tenth in range(5):
            self.assertAlmostEqual(sum(min((one - size // 2) * 10 // size, 4) == tenth for one in sizes), 200, delta=2)
        self.assertAlmostEqual(sum(sizes) / 1000, 0.75 * size, delta=0.001 * size)

    def test_shipped_lists_are_those_of_generate(self):
        shipped = {path.name: path.read_text() for path in (HIP / "cases").glob("*.cases")}
        folder = self.folder / "cases"
        folder.mkdir()
        for name in ("generate.py", "lists.py", "as_plans.py", "single.py"):
            (folder / name).write_text((HIP / "cases" / name).read_text())
        subprocess.run([sys.executable, folder / "generate.py"], check=True)
        written = {path.name: path.read_text() for path in folder.glob("*.cases")}
        self.assertGreater(len(written), 5)
        self.assertEqual(written, {name: shipped[name] for name in written})


class MeasuredByPlans(MeasureTestCase):
    """Copies, beside GEMMs and not, on two H200 by plans and by the programs that plans replaced (traces/h200_2/notes.md)."""
    KEYS = ("agent", "transfer", "pattern", "chunks", "row", "blocks", "size", "detail", "work", "m", "n", "k", "units", "beside", "priority",
            "first", "sizes", "everywhere", "at")
    # Of a kind and quantity: cases; how far the middle one and nine of ten are apart at most, relative to its time (gemm_first: a fraction)
    AGREE = [("peer_copy", "median", 83, 0.007, 0.06), ("interference", "alone_us", 55, 0.001, 0.002),
             ("interference", "median", 54, 0.003, 0.013), ("interference", "copy_us", 55, 0.007, 0.029),
             ("interference", "copy_alone_us", 55, 0.002, 0.01), ("first_served", "gemm_first", 12, 0.001, 0.08),
             ("late_copy", "median", 36, 0.05, 0.25)]

    def medians(self, name):
        found = {}
        with gzip.open(ROOT / "traces/h200_2/microbenchmarks_2026_11" / f"{name}.jsonl.gz", "rt") as file:
            for row in map(json.loads, file):
                case = (row["kind"], *(str(row.get(key)) for key in self.KEYS))
                for quantity in ("median", "alone_us", "copy_us", "copy_alone_us", "gemm_first"):
                    if row.get(quantity) is not None:
                        found.setdefault((case, quantity), []).append(row[quantity])
        return {key: statistics.median(values) for key, values in found.items()}

    def test_old_programs_and_plans_agree(self):
        old, new = self.medians("old_programs"), self.medians("plans")
        for kind, quantity, count, middle, most in self.AGREE:
            with self.subTest(kind=kind, quantity=quantity):
                apart = sorted(abs(new[key] - time) / (1 if quantity == "gemm_first" else time) for key, time in old.items()
                               if key[0][0] == kind and key[1] == quantity)
                self.assertEqual(len(apart), count)
                self.assertLessEqual(statistics.median(apart), middle)
                self.assertLessEqual(apart[9 * count // 10], most)


class MeasurePlans(MeasureTestCase):
    def test_shipped_plans_are_those_of_the_simulator(self):
        for gpus, count in plans.COUNTS.items():
            lines = plans.shipped(gpus)
            configs = plans.configs(gpus, count, plans.TOPOLOGY.format(gpus))
            self.assertEqual((len(lines), len(configs)), (count, count))
            step = 1 if os.environ.get("OVERLAP_ALL") else 29
            for line, config in list(zip(lines, configs))[::step]:
                with self.subTest(gpus=gpus, config=config):
                    self.assertEqual(plans.plan(os.environ["SIM"], config), line)

    def test_plans_are_of_every_kind(self):
        for gpus in plans.COUNTS:
            configs = [json.loads(line)["config"] for line in plans.shipped(gpus)]
            self.assertGreater(len({config["schedule"] for config in configs}), 8)
            self.assertEqual({config["workload"]["collective"] for config in configs}, {"all_gather", "reduce_scatter"})
            self.assertEqual({config["params"].get("agent") for config in configs} - {None}, {"cu", "dma"})

    def test_a_machine_gets_the_most_gpus_that_there_are_plans_for(self):
        for gpus, largest in [(2, 2), (3, 2), (4, 4), (7, 4), (8, 8), (16, 8)]:
            self.assertEqual(plans.for_machine(gpus), plans.shipped(largest))
        self.assertEqual(plans.for_machine(1), "needs 2 GPUs")


class MeasureBuild(MeasureTestCase):
    """By a compiler that only writes down how it is called."""
    COMPILER = '''#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0"; exit; fi
if [ -e "$CALLS.fail" ]; then echo 'gemm.hpp(3): error: no such thing'; exit 1; fi
echo "$*" >> "$CALLS"
while [ "$1" != -o ]; do shift; done
echo program > "$2"
'''

    def setUp(self):
        super().setUp()
        self.toolkit = self.folder / "lib" / "python3.12" / "site-packages" / "nvidia" / "cu13"
        for name in ("bin/nvcc", "include/cublasLt.h", "lib/libcublasLt.so.13", "lib/libcudart_static.a"):
            (self.toolkit / name).parent.mkdir(parents=True, exist_ok=True)
            (self.toolkit / name).write_text(self.COMPILER)
            (self.toolkit / name).chmod(0o755)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "sh").symlink_to("/bin/sh")
        self.calls = self.folder / "calls"
        changed = unittest.mock.patch.dict(os.environ, {"PATH": f"{self.folder}/bin:/bin", "CUDA_HOME": str(self.toolkit),
                                                        "CALLS": str(self.calls)})
        changed.start()
        self.addCleanup(changed.stop)

    def build(self):
        # A toolkit of this machine comes after CUDA_HOME.
        platform = platforms.Platform("nvidia", ("sm_90",), self.toolkit / "bin" / "nvcc")
        return programs.build(platform, self.folder / "built", lambda text: None, 2)

    def test_compiles_every_source_once(self):
        built = self.build()
        self.assertEqual({name: path.read_text() for name, path in built.items()}, dict.fromkeys(("microbench", "replay"), "program\n"))
        calls = self.calls.read_text().splitlines()
        sources = [*HIP.glob("*.cpp"), *HIP.glob("replay/*.cpp")]
        self.assertEqual(len(calls), len(sources) + 2)
        for source in sources:
            self.assertEqual(sum(f" -c {source} " in call for call in calls), 1, source)
        self.assertEqual(self.build(), built)
        self.assertEqual(self.calls.read_text().splitlines(), calls)

    def test_finds_libraries_of_python_packages(self):
        self.build()
        calls = self.calls.read_text().splitlines()
        self.assertTrue(all("arch=compute_90,code=sm_90" in call for call in calls))
        self.assertIn(f" -I{self.toolkit}/include ", calls[0])
        for call in calls[-2:]:
            self.assertIn(f"-Xlinker -rpath={self.toolkit}/lib ", call)
            self.assertIn(f"-Xlinker {self.toolkit}/lib/libcublasLt.so.13 ", call)

    def test_finds_toolkits_of_an_environment_that_is_not_active(self):
        self.assertIn(self.toolkit, platforms.cuda_folders())
        del os.environ["CUDA_HOME"]
        self.assertIn(self.toolkit, platforms.cuda_folders())

    def test_says_what_the_compiler_says(self):
        self.calls.with_name("calls.fail").touch()
        with self.assertRaisesRegex(OurFault, r"^the build failed: gemm.hpp\(3\): error: no such thing \(all of it: .*build.log\)$"):
            self.build()

    def test_architectures(self):
        for version, name in [(90402, "gfx942"), (90010, "gfx90a"), (90500, "gfx950"), (90008, "gfx908"), (110000, "gfx1100")]:
            self.assertEqual(platforms.gfx_name(version), name)
        for wrong in ("sm_90,gfx942", "h100", ""):
            with self.assertRaises(UserError):
                platforms.find([wrong] if wrong != "sm_90,gfx942" else wrong.split(","))
