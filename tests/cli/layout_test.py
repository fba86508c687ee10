"""The repository keeps its shape: what lies where, who may include whom, and how large a file gets."""
import graphlib
import re
import shutil
import subprocess
import unittest

from sim_case import ROOT

TOP_LEVEL = {"CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md",
             "configs", "models", "scripts", "sim", "tests", "traces"}

# `sim/commands` and main.cpp see everything. A folder without a line of its own follows that of the folder above.
MAY_INCLUDE = {
    "sim/core": ["sim/core/"],
    "sim/topology": ["sim/core/", "sim/topology/"],
    "sim/workload": ["sim/core/", "sim/workload/"],
    "sim/chakra": ["sim/core/", "sim/workload/", "sim/chakra/"],
    "sim/collectives": ["sim/core/", "sim/topology/", "sim/workload/", "sim/collectives/"],
    "sim/schedules": ["sim/core/", "sim/topology/", "sim/workload/", "sim/collectives/", "sim/schedules/"],
    "models": ["sim/core/", "sim/topology/", "models/", "overlap_"],
    "sim/pricing": ["sim/core/", "sim/topology/", "sim/workload/", "models/", "sim/engine/", "sim/pricing/"],
    "sim/calibrate": ["sim/core/", "sim/topology/", "models/", "sim/calibrate/"],
    "sim/calibrate/problems": ["sim/core/", "sim/topology/", "models/", "sim/engine/", "sim/pricing/", "sim/run/config_folder.hpp",
                               "sim/calibrate/"],
    "sim/calibrate/command": ["sim/", "models/"],
    "sim/confidence": ["sim/core/", "sim/topology/", "models/", "sim/schedules/host.hpp", "sim/report/text_format.hpp", "sim/confidence/"],
    "sim/engine": ["sim/core/", "sim/topology/", "models/", "sim/engine/"],
    "sim/quotient": ["sim/core/", "sim/topology/", "models/", "sim/quotient/"],
    "sim/plan": ["sim/core/", "sim/topology/", "sim/workload/", "sim/schedules/", "sim/plan/"],
    "sim/run": ["sim/core/", "sim/topology/", "sim/workload/", "sim/chakra/", "sim/collectives/", "sim/schedules/", "models/", "sim/engine/",
                "sim/pricing/", "sim/quotient/", "sim/plan/", "sim/confidence/", "sim/report/run/", "sim/run/"],
    "sim/compare": ["sim/core/", "sim/run/", "sim/report/comparison/", "sim/compare/"],
    "sim/advise": ["sim/core/", "sim/topology/", "sim/workload/", "sim/schedules/", "models/", "sim/run/", "sim/compare/",
                   "sim/report/", "sim/advise/"],
    "sim/search": ["sim/core/", "sim/topology/", "sim/workload/", "sim/schedules/", "models/", "sim/plan/", "sim/confidence/", "sim/run/", "sim/report/", "sim/advise/",
                   "sim/search/"],
    "sim/sensitivity": ["sim/core/", "sim/run/", "sim/report/", "sim/sensitivity/"],
    "sim/transformer": ["sim/core/", "sim/topology/device_library.hpp", "sim/workload/", "sim/schedules/", "sim/confidence/confidence.hpp", "sim/run/", "sim/report/", "sim/advise/",
                        "sim/transformer/"],
    "sim/importers": ["sim/core/", "sim/importers/"],
    "sim/sweep": ["sim/core/", "sim/topology/", "sim/workload/", "sim/chakra/", "sim/schedules/", "sim/run/", "sim/report/", "sim/transformer/", "sim/sweep/"],
    "sim/python": ["sim/core/", "sim/run/", "sim/sweep/", "sim/commands/command_line.hpp"],
    "sim/reproduce": ["sim/core/", "sim/run/", "sim/report/", "sim/sweep/", "sim/reproduce/"],
    "sim/report": ["sim/core/", "models/resources.hpp", "sim/confidence/confidence.hpp", "sim/report/"],
}

HAVE_README = ["sim", "sim/schedules", "sim/topology", "sim/transformer", "sim/engine", "sim/quotient", "sim/python", "scripts/package", "models", "models/calibration", "models/calibration/hip",
               "sim/advise", "configs/experiments", "configs/sweeps", "tests", "traces"]


def sources(*folders):
    """C++ files below `folders`, by path from the root."""
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return found


def includes(text):
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"]+)[>"]', text, re.M)


class Layout(unittest.TestCase):
    def tracked(self):
        if shutil.which("git") is None or not (ROOT / ".git").exists():
            self.skipTest("not a git checkout")
        done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True,
                              encoding="utf-8", check=True)
        return [name for name in done.stdout.split("\0") if name]

    def test_top_level(self):
        names = {name.split("/")[0] for name in self.tracked()}
        self.assertEqual({name for name in names if not name.startswith(".")} - TOP_LEVEL, set())
        self.assertIn("sim", names)

    def test_readme_is_two_screens(self):
        text = (ROOT / "README.md").read_bytes()
        self.assertLessEqual(len(text), 9000)
        self.assertLessEqual(len(text.splitlines()), 110)

    def test_folders_say_what_they_are(self):
        for folder in HAVE_README:
            self.assertTrue((ROOT / folder / "README.md").exists(), folder)
        tracked = self.tracked()
        # One README for all that was measured on one kind of machine.
        for folder in {"/".join(name.split("/")[:2]) for name in tracked if name.startswith("traces/") and name.count("/") > 1}:
            self.assertIn(f"{folder}/README.md", tracked)

    def test_readmes_can_be_read(self):
        # What somebody who is new has to read; notes.md beside them are records.
        texts = [(ROOT / name).read_text(encoding="utf-8") for name in self.tracked() if name.endswith("README.md")]
        self.assertLessEqual(len(texts), 40)
        self.assertLessEqual(sum(len(text.split()) for text in texts), 30000)

    def test_design_is_cited_where_it_is(self):
        # In sim/README.md; a file of this name is not in the repository.
        elsewhere = re.compile(r"\b" + "ARCHI" + r"TECTURE\b")
        for name in self.tracked():
            if name.endswith((".cpp", ".hpp", ".md", ".json", ".txt", ".in")):
                text = (ROOT / name).read_text(encoding="utf-8")
                self.assertIsNone(elsewhere.search(text), name)

    def test_scripts_can_be_started(self):
        for path in [*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]:
            if path.is_file() and path.read_bytes().startswith(b"#!"):
                self.assertTrue(path.stat().st_mode & 0o100, path)

    def test_sources_are_formatted(self):
        program = next((name for name in ("clang-format-14", "clang-format") if shutil.which(name)), None)
        version = program and subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if program is None or not re.search(r"version 14\.", version):
            self.skipTest("no clang-format 14, which is Debian 12's")
        names = [name for name in self.tracked() if name.startswith(("sim/", "models/", "tests/")) and name.endswith((".cpp", ".hpp"))]
        done = subprocess.run([program, "--dry-run", "-Werror", *names], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[:2000])

    def test_no_code_names_a_device(self):
        # Comments may say where a value was seen. Everything that depends on the device is data.
        devices = "|".join(sorted(file.stem for file in (ROOT / "configs/devices").glob("*.json")))
        named = re.compile(rf"(?<![a-z])({devices})", re.IGNORECASE)
        self.assertTrue(named.search('"NVIDIA H200"') and named.search("h200_8"))
        code = {name: re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
                for name, text in sources("sim", "models").items()}
        self.assertEqual([name for name, text in code.items() if named.search(text)], [])

    def test_only_the_engine_knows_simgrid(self):
        users = [name for name, text in sources("sim", "models", "tests").items()
                 if any(include.startswith("<simgrid/") for include in includes(text))]
        self.assertEqual(users, ["sim/engine/simgrid_simulation.cpp"])

    def test_arrows_go_one_way(self):
        ruled = set()
        for name, text in sources("sim", "models").items():
            folder = name.rsplit("/", 1)[0]
            while folder and folder not in MAY_INCLUDE:
                folder = folder.rpartition("/")[0]
            if not folder:
                continue
            ruled.add(folder)
            for include in includes(text):
                if include.startswith('"'):
                    with self.subTest(file=name, include=include):
                        self.assertTrue(include[1:].startswith(tuple(MAY_INCLUDE[folder])))
        self.assertEqual(ruled, set(MAY_INCLUDE))

    def test_no_two_files_need_each_other(self):
        # A source counts as its header.
        needs = {}
        for name, text in sources("sim", "models").items():
            module = name.rsplit(".", 1)[0]
            needed = {include[1:].rsplit(".", 1)[0] for include in includes(text) if include.startswith('"')}
            needs.setdefault(module, set()).update(needed - {module})
        with self.assertRaises(graphlib.CycleError):
            graphlib.TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
        graphlib.TopologicalSorter(needs).prepare()

    def test_every_folder_of_the_program_has_a_rule(self):
        folders = {"/".join(name.split("/")[:2]) for name in sources("sim") if name.count("/") > 1}
        self.assertEqual(folders - set(MAY_INCLUDE), {"sim/commands"})

    def test_files_stay_small(self):
        texts = sources("sim", "models", "tests")
        for pattern in ("tests/**/*.py", "sim/**/*.js", "**/CMakeLists.txt", "scripts/*", "scripts/**/*.py"):
            for path in ROOT.glob(pattern):
                if path.is_file() and "build" not in path.relative_to(ROOT).parts[:1]:
                    texts[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
        for name, text in texts.items():
            self.assertLessEqual(len(text.splitlines()), 400, name)

    def test_one_type_of_a_name(self):
        # Two types of one name in one namespace are one to the linker, which keeps the functions of either.
        seen = {}
        for name, text in sources("sim", "models").items():
            inside = []
            for line in text.splitlines() if name.endswith(".hpp") else []:
                if opened := re.fullmatch(r"namespace (\S+) \{", line):
                    inside.append(opened[1])
                elif re.match(r"\}  // namespace", line):
                    inside.pop()
                elif found := re.match(r"(?:struct|class|enum class) (\w+)\b(?!;)", line):
                    seen.setdefault("::".join([*inside, found[1]]), []).append(name)
        self.assertGreater(len(seen), 300)
        twice = {name for name, files in seen.items() if len(files) > 1}
        self.assertEqual(twice, set())

    def test_one_name_one_file(self):
        seen = {}
        for name in sources("sim", "models"):
            if name.endswith(".cpp"):
                seen.setdefault(name.rsplit("/", 1)[-1], []).append(name)
        self.assertEqual([names for names in seen.values() if len(names) > 1], [])
