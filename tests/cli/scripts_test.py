"""scripts/sim starts at once when nothing has changed, from anywhere, and passes everything through."""
import json
import os
import pathlib
import re
import resource
import subprocess
import unittest

from sim_case import PAIR, ROOT, SimTestCase

SCRIPT = ROOT / "scripts" / "sim"


@unittest.skipUnless(pathlib.Path(os.environ["SIM"]).resolve() == ROOT / "build" / "release" / "sim",
                     "scripts/sim would build another tree than the one under test")
class Scripts(SimTestCase):
    def start(self, *command, **options):
        return subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, encoding="utf-8",
                              timeout=60, **options)

    def setUp(self):
        super().setUp()
        self.assertEqual(self.start(ROOT / "scripts" / "build", "release", "sim").returncode, 0)

    def test_adds_nothing(self):
        for args in ([*PAIR, "--format", "csv", "--dry-run"], ["explain", "ring_chunked"], ["explain", "a  b*\n"],
                     ["list", ""], ["--set", ""]):
            direct, through = self.start(os.environ["SIM"], *args), self.start(SCRIPT, *args)
            self.assertEqual((through.returncode, through.stdout, through.stderr),
                             (direct.returncode, direct.stdout, direct.stderr))

    def test_paths_are_the_callers(self):
        (self.folder / "deep").mkdir()
        (self.folder / "deep" / "start").symlink_to(SCRIPT)
        done = self.start("deep/start", *PAIR, "--graph", "deep/graph.json", "--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.files(), ["deep", "deep/graph.json", "deep/start"])

    def test_starts_at_once(self):
        def seconds(program):
            """Of processors, which other work on the machine does not lengthen."""
            used = [resource.getrusage(resource.RUSAGE_CHILDREN)]
            self.start(program, "--version")
            used.append(resource.getrusage(resource.RUSAGE_CHILDREN))
            return sum(getattr(used[1], kind) - getattr(used[0], kind) for kind in ("ru_utime", "ru_stime"))
        extra = min(seconds(SCRIPT) for _ in range(5)) - min(seconds(os.environ["SIM"]) for _ in range(5))
        self.assertLess(extra, 1.0)  # 0.1 s on an idle machine

    def test_standard_input_reaches_the_program(self):
        done = self.start(SCRIPT, "batch", "-", input='{"topology": "h200_2", "schedule": "serial"}\n')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("makespan_us", done.stdout)

    def test_build_says_how_it_is_used(self):
        done = self.start(ROOT / "scripts" / "build")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage", done.stderr)


class TrainingWorkloads(SimTestCase):
    SCRIPT = ROOT / "scripts" / "training_workloads"

    def start(self, *args):
        return subprocess.run([self.SCRIPT, *args], cwd=self.folder, capture_output=True, encoding="utf-8", timeout=60)

    def test_files_are_what_it_writes(self):
        done = self.start("--check")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_one_line_for_a_wrong_option(self):
        done = self.start("--chek")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))

    def test_products_are_those_of_the_model(self):
        # A layer multiplies each token with 12 H^2 weights, and n tokens by n over H twice in attention; forward once,
        # backward twice.
        batch, tokens, hidden = 4, 128, 1024
        listed = json.loads((ROOT / "configs" / "workloads" / "bert_large_b4_n128_fp32.json").read_text())["operators"]
        products = [op["m"] * op["n"] * op["k"] * op.get("batch", 1) for op in listed if op["type"] == "gemm"]
        self.assertEqual(sum(products), 3 * batch * tokens * (12 * hidden ** 2 + 2 * tokens * hidden))
        self.assertEqual(sum(op.get("batch", 1) == batch * 16 for op in listed), 6)

    def test_bytes_are_those_of_the_model(self):
        # 43 layers of 682 by 682 and a bias, in fp32, are all-reduced once; a vector of 92 for each of 65536 samples is
        # exchanged both ways. Gradients of the first layer's input are not needed, so it has two GEMMs, not three.
        listed = json.loads((ROOT / "configs" / "workloads" / "dlrm_128.json").read_text())["operators"]
        sent = [(op["collective"], op["bytes"]) for op in listed if op["type"] == "collective"]
        self.assertEqual(sum(size for kind, size in sent if kind == "all_reduce"), 43 * 683 * 682 * 4)
        self.assertEqual([size for kind, size in sent if kind == "all_to_all"], 2 * [65536 * 92 * 4])
        layers = [op for op in listed if op["type"] == "gemm" and 682 in (op["m"], op["n"])]
        self.assertEqual(sum(op["m"] * op["n"] * op["k"] for op in layers), (3 * 43 - 1) * 512 * 682 ** 2)

    def test_sharded_weights_are_gathered_twice_and_reduced_once(self):
        # A layer of Qwen3-32B: 64 heads and 2 times 8 of 128, output, and three of 25600 by 5120; two layers, bf16.
        weights = 2 * 5120 * (64 * 128 + 2 * 8 * 128 + 64 * 128 + 3 * 25600)
        listed = json.loads((ROOT / "configs" / "workloads" / "zero3_qwen3_32b.json").read_text())["operators"]

        def sent(collective):
            return sum(op["bytes"] for op in listed if op.get("collective") == collective)
        self.assertEqual((sent("all_gather"), sent("reduce_scatter")), (2 * 2 * weights, 2 * weights))
        products = sum(op["m"] * op["n"] * op["k"] for op in listed if op["type"] == "gemm" and "batch" not in op)
        self.assertEqual(products, 3 * 1024 * weights)


class Release(SimTestCase):
    """scripts/release refuses before it does anything; in a copy without the tests, where its tag can be made."""

    def git(self, *args):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=self.folder, capture_output=True,
                              encoding="utf-8", check=True).stdout

    def setUp(self):
        super().setUp()
        (self.folder / "scripts").mkdir()
        texts = {"scripts/release": SCRIPT.with_name("release").read_text(), "scripts/test": "#!/bin/sh\n",
                 "scripts/signature": "#!/bin/sh\necho signature 1234\n",
                 "CMakeLists.txt": "project(overlap VERSION 2.3.4 LANGUAGES CXX)\n", "CITATION.cff": "version: 2.3.4\n",
                 "CHANGELOG.md": "# Changes\n\n## 2.3.4 (2026-01-02)\n\nNews.\n\n## 2.3.3 (2025-01-02)\n\nOld.\n"}
        for name, text in texts.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.git("init", "--quiet")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "all")

    def release(self, *args):
        return subprocess.run(["scripts/release", *args], cwd=self.folder, capture_output=True, encoding="utf-8", timeout=60)

    def test_tag_has_the_signature_and_this_versions_changes(self):
        done = self.release("2.3.4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.git("tag", "--list", "--format=%(refname:short) %(contents)").split(),
                         "v2.3.4 overlap 2.3.4 (signature 1234) News.".split())
        self.assertEqual(self.release("2.3.4").stderr, "scripts/release: v2.3.4 is there\n")

    def test_refuses_what_does_not_agree(self):
        for name, wrong in (("CMakeLists.txt", "project(overlap VERSION 2.3.5 LANGUAGES CXX)\n"), ("CITATION.cff", "version: 2.3.5\n"),
                            ("CHANGELOG.md", "## 2.3.4 (not released)\n")):
            text = (self.folder / name).read_text()
            (self.folder / name).write_text(wrong)
            self.assertIn("not committed", self.release("2.3.4").stderr)
            self.git("commit", "--all", "--quiet", "--message", "wrong")
            done = self.release("2.3.4")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"scripts/release: {name}: ", done.stderr)
            (self.folder / name).write_text(text)
            self.git("commit", "--all", "--quiet", "--message", "right")
        for args in ([], ["1.0"], ["v2.3.4"], ["2.3.4", "2.3.4"]):
            self.assertEqual(self.release(*args).returncode, 2)
        self.assertEqual(self.git("tag", "--list"), "")


class Setup(SimTestCase):
    SCRIPT = ROOT / "scripts" / "setup"

    def asked_for(self, *args):
        """The packages that scripts/setup would install where there are none."""
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        for name, text in (("dpkg-query", ""), ("sudo", 'exec "$@"'), ("apt-get", f'echo "$@" >>{self.folder}/asked')):
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        (self.folder / "asked").write_text("")
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        done = subprocess.run([self.SCRIPT, *args], env=environment, capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        asked = re.fullmatch(r".* install --no-install-recommends (.*)\n", (self.folder / "asked").read_text())[1]
        self.assertEqual(done.stderr, f"installing {len(asked.split())} packages: {asked}\n")
        return asked.split()

    def test_the_simulator_needs_nothing_for_gpus(self):
        simulator, tests, tools, everything = (self.asked_for(*flags) for flags in ([], ["--tests"], ["--tools"], ["--all"]))
        of_tests, of_tools, of_gpus = r"catch|benchmark|valijson|gnuplot|python|pybind|dpkg|^file$", r"clang(-rt)?-\d|clang-format|lld|slurm|chromium|selenium", "clang-tools|hip|rocm"
        self.assertIn("g++", simulator)
        for few, many, allowed, refused in ((simulator, tests, of_tests, f"{of_tools}|{of_gpus}"), (tests, tools, of_tools, of_gpus),
                                            (tools, everything, of_gpus, of_tools)):
            self.assertEqual(many[:len(few)], few)
            self.assertEqual([name for name in many[len(few):] if not re.search(allowed, name) or re.search(refused, name)], [])
        self.assertEqual([name for name in simulator if re.search(f"{of_tests}|{of_tools}|{of_gpus}", name)], [])

    def test_installs_the_compilers_that_are_used(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        compilers = [preset["cacheVariables"].get("CMAKE_CXX_COMPILER") for preset in presets]
        (clang,) = {name for name in compilers if name}
        version = clang.removeprefix("clang++-")
        self.assertLessEqual({f"clang-{version}", f"clang-tools-{version}", f"lld-{version}",
                              f"libclang-rt-{version}-dev"},
                             set(self.asked_for("--all")))
        for user in ("models/calibration/hip/CMakeLists.txt", "tests/hip/hip_program.py", "tests/cli/compilers_agree.py",
                     "scripts/fuzz"):
            self.assertIn(clang, (ROOT / user).read_text(), user)

    def test_says_how_it_is_used(self):
        for args in (["--al"], ["--all", "--all"], ["clang"]):
            done = subprocess.run([self.SCRIPT, *args], capture_output=True, encoding="utf-8", timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "usage: scripts/setup [--tests | --tools | --all]\n"))
