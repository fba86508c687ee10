"""Every command where its surroundings lack something: a reader, descriptors, space, HOME, a locale with points, names in UTF-8."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading

from sim_case import PAIR, ROOT, SimTestCase

MODEL = ["model", "llama3_8b", "--topology", "h200_2", "--tokens", "512"]
SWEEP = {"schema": 1, "name": "s", "base": {"topology": "own.json", "schedule": "hetero_fused_1d"},
         "axes": {"params.chunks": [1, 2], "what_if.device.dma.engine_GBps": ["1000x"]}}
MAKESPAN = 5300.0  # near enough to what is predicted that the case is within its tolerance
CASE = {"schema": 1, "system": "h200_4", "unit": "us", "makespan_us": MAKESPAN, "scenario": {"topology": "h200_4", "schedule": "hetero_fused_1d"}}
# In this order, because some read what others have written; names of what each writes. The first one has a warning.
WRITING = [([*PAIR, "--what-if", "device.dma.engine_GBps=1000x", "--trace", "trace.json"], ["trace.json"]),
           ([*PAIR, "--graph", "graph.json", "--dry-run"], ["graph.json"]),
           (["sweep", "sweep.json", "--out", "swept"], ["swept/points.csv", "swept/points.jsonl", "swept/sweep.json"]),
           (["report", "swept", "--out", "page.html"], ["page.html"]),
           (["import", "kineto.json", "--out", "case.json"], ["case.json"]),
           (["compare", "cases.jsonl", "--html", "compared.html"], ["compared.html"]),
           ([*MODEL, "--write", "layer.json", "--html", "model.html"], ["layer.json", "model.html"]),
           (["chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "2", "--out", "traced"], ["traced.0.et", "traced.1.et"]),
           (["chakra", "read", "traced", "--out", "read.json"], ["read.json"]),
           (["new", "device", "gpu_9", "--like", "h200", "--out", "made"], ["made/gpu_9.json", "made/gpu_9_8.json"])]
PRINTING = [[*PAIR], [*PAIR, "--format", "json"], MODEL, ["advise", "--topology", "h200_2", "--gemm", "4096x1024x2048"], ["list"],
            ["list", "topologies"], ["explain", "makespan"], ["schema", "run"], ["--help-all"], ["man"], ["completion", "bash"],
            ["sensitivity", "--topology", "t3_ring_8", "--schedule", "serial"], ["sweep", "sweep.json", "--dry-run"], ["batch", "batch.jsonl"],
            ["compare", "cases.jsonl"], ["help", "sweep"]]


class SurroundingsTestCase(SimTestCase):
    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "configs/topologies/h200_4.json", self.folder / "own.json")
        shutil.copy(ROOT / "traces/h200_2/profiler/rank0.json", self.folder / "kineto.json")
        run = {"topology": "h200_4", "schedule": "hetero_fused_1d"}
        for name, content in (("sweep.json", SWEEP), ("cases.jsonl", CASE), ("batch.jsonl", run), ("run.json", run)):
            self.file(name, content)

    def shell(self, line, args, **more):
        """A line of bash in which "$@" is the program with `args`."""
        return subprocess.run(["bash", "-c", line, "-", os.environ["SIM"], *args], cwd=more.pop("cwd", self.folder),
                              capture_output=True, timeout=120, **more)

    def remove(self, files):
        for name in files:
            (self.folder / name).unlink(missing_ok=True)
        for folder in {name.split("/")[0] for name in files if "/" in name}:
            shutil.rmtree(self.folder / folder, ignore_errors=True)

    def contents(self, files):
        """Without durations."""
        return [re.sub(rb"\b[0-9.]+ m?s\b", b"", (self.folder / name).read_bytes()) for name in files]

    def assert_one_line(self, done):
        """One line of a mistake, besides the progress that a busy machine shows."""
        self.assertEqual(done.returncode, 2, done.stderr)
        said = re.sub(rb"(?m)^ *[0-9]+ % .* left\n", b"", done.stderr)
        self.assertRegex(said, rb"\Asim: [^\n]+\n\Z")


class SurroundingsOfOutputs(SurroundingsTestCase):
    def test_closed_and_few_descriptors_and_no_home(self):
        """No output gets the number of a closed standard stream, into which a summary or a warning would be written."""
        cases = ['"$@" <&- >&-', '"$@" 2>&-', '"$@" <&- >&- 2>&-', 'ulimit -n 16; "$@"', 'env -i "$@"']
        for args, files in WRITING:
            done = self.shell('"$@"', args)
            self.assertEqual(done.returncode, 0, (args, done.stderr))
            kept, said = self.contents(files), done.stdout
            for case in cases:
                self.remove(files)
                with self.subTest(args=args, case=case):
                    done = self.shell(case, args)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(self.contents(files), kept)
                    if ">&-" not in case and args[0] != "sweep":
                        self.assertEqual(re.sub(rb"[0-9.]+ m?s\b", b"", done.stdout), re.sub(rb"[0-9.]+ m?s\b", b"", said))

    def test_a_full_disk(self):
        """Files may have one block: nothing is left, or all of what was there before."""
        done_with = []
        for args, files in WRITING:
            self.assertEqual(self.shell('"$@"', args).returncode, 0, args)
            large = [name for name in files if (self.folder / name).stat().st_size > 1024]
            if not large:
                continue
            done_with.append(args[0])
            if args[0] in ("sweep", "new"):
                kept = shutil.rmtree(self.folder / files[0].split("/")[0])
            else:
                kept = self.contents(files)
            with self.subTest(args=args):
                done = self.shell('ulimit -f 1; "$@"', args)
                self.assert_one_line(done)
                self.assertIn(b"File too large", done.stderr)
                self.assertEqual([name for name in self.files() if name.endswith(".part")], [])
                if kept:
                    self.assertEqual(self.contents(files), kept)
            if not kept:
                self.remove(files)
                self.assertEqual(self.shell('"$@"', args).returncode, 0, args)

        self.assertGreater(len(done_with), 6)

    def test_pipes_and_full_devices(self):
        for args, files in WRITING:
            self.assertEqual(self.shell('"$@"', args).returncode, 0, args)
            if args[0] in ("sweep", "new"):  # whose files are named by a folder
                continue
            kept, got = self.contents(files), {}
            self.remove(files)

            def read(name, into):
                into[name] = (self.folder / name).read_bytes()

            readers = []
            for name in files:
                os.mkfifo(self.folder / name)
                readers.append(threading.Thread(target=read, args=(name, got), daemon=True))
                readers[-1].start()
            with self.subTest(args=args):
                done = self.shell('"$@"', args)
                self.assertEqual(done.returncode, 0, done.stderr)
                for reader in readers:
                    reader.join(30)
                self.assertEqual([re.sub(rb"\b[0-9.]+ m?s\b", b"", got[name]) for name in files], kept)
            for name in files:
                (self.folder / name).unlink()
                if args[0] != "chakra" or args[1] != "write":  # a name of files
                    full = ["/dev/full" if one == name else one for one in args]
                    done = self.shell('"$@"', full)
                    self.assert_one_line(done)
                    self.assertIn(b"/dev/full: cannot be written: No space left on device", done.stderr)
            self.remove(files)
            self.assertEqual(self.shell('"$@"', args).returncode, 0, args)


class SurroundingsOfPrinting(SurroundingsTestCase):
    def test_a_closed_pipe_and_a_full_device(self):
        for args in PRINTING:
            with self.subTest(args=args):
                full = self.shell('"$@" > /dev/full', args)
                self.assert_one_line(full)
                self.assertIn(b"standard output: cannot be written: No space left on device", full.stderr)
                reading, writing = os.pipe()
                os.close(reading)
                done = subprocess.run([os.environ["SIM"], *args], cwd=self.folder, stdout=writing, stderr=subprocess.PIPE, timeout=120)
                os.close(writing)
                self.assertIn(done.returncode, (-signal.SIGPIPE, 2), done.stderr)
                self.assertLessEqual(done.stderr.count(b"sim: "), 1)
                first = self.shell('"$@" | head -1; echo "${PIPESTATUS[0]}"', args)
                self.assertIn(first.stdout.splitlines()[-1], (b"0", b"141", b"2"), first.stderr)

    def test_few_descriptors_no_home_and_a_comma_for_a_point(self):
        environments = ['ulimit -n 16; "$@"', 'env -i "$@"']
        locales = self.folder / "locales"
        locales.mkdir()
        made = shutil.which("localedef") and subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(locales / "de_DE.UTF-8")],
                                                            capture_output=True, timeout=120).returncode == 0
        if made:
            environments.append(f'LOCPATH={locales} LC_ALL=de_DE.UTF-8 "$@"')
        timeless = lambda text: re.sub(rb'[0-9.]+ m?s\b|"wall_ms":[0-9.e-]+', b"", text)
        for args in PRINTING:
            expected = self.shell('"$@"', args)
            self.assertEqual(expected.returncode, 0, (args, expected.stderr))
            for line in environments:
                with self.subTest(args=args, line=line):
                    done = self.shell(line, args)
                    self.assertEqual((done.returncode, timeless(done.stdout)), (0, timeless(expected.stdout)), done.stderr)

    def test_names_that_are_not_utf_8(self):
        odd = os.fsdecode(b"caf\xe9")
        folder = self.folder / odd
        try:
            folder.mkdir()
        except OSError:
            self.skipTest("this file system has only names in UTF-8")
        for path in list(self.folder.iterdir()):
            if path.is_file():
                shutil.copy(path, folder / (odd + "_" + path.name))
        shutil.copy(self.folder / "own.json", folder / "own.json")
        odd_names = lambda args: [f"{odd}/{odd}_{one}" if pathlib.Path(one).suffix in (".json", ".jsonl", ".html") or one in ("swept", "traced")
                                  else one for one in args]
        for args, files in WRITING:
            if args[0] == "new":
                continue
            with self.subTest(args=args):
                named = [*args[:2], *odd_names(args[2:])] if args[0] == "--topology" else odd_names(args)
                done = self.shell('"$@"', named)
                self.assertEqual(done.returncode, 0, done.stderr)
                done.stdout.decode("utf-8")
                done.stderr.decode("utf-8")
                for name in odd_names([name.split("/")[0] for name in files]):
                    if not name.endswith(".et"):
                        self.assertTrue((self.folder / name).exists(), name)
        done = self.shell('"$@"', ["--topology", f"{odd}/own.json", "--schedule", "serial", "--format", "json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        done.stdout.decode("utf-8")
        self.assertEqual(self.shell('"$@"', ["sweep", f"{odd}/{odd}_sweep.json", "--out", f"{odd}/{odd}_swept", "--resume"]).returncode, 0)
        missing = self.shell('"$@"', ["--topology", odd + "/none.json", "--schedule", "serial"])
        self.assert_one_line(missing)
        missing.stderr.decode("utf-8")
