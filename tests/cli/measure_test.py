"""scripts/measure measures all that a machine can do, goes on after interruptions, keeps to its limit, and packs one archive."""
import collections
import hashlib
import json
import os
import pathlib
import sys
import time

from measure_case import FAKE, MeasureTestCase

import single

ALL_FILES = {"gemm", "local", "two_gpus", "four_gpus", "parts_1", "beside", "replays", "drawn", "energy", "at_once", "residency"}


class MeasureArchive(MeasureTestCase):
    def test_holds_every_case_once_a_pass(self):
        code, out, _ = self.measure("node", gpus=4)
        self.assertEqual(code, 0, out)
        archived, manifest = self.archived(), self.manifest()
        self.assertEqual(list(archived), sorted(archived))
        files = {name.removesuffix(".jsonl") for name in archived if name.endswith(".jsonl") and "/" not in name}
        self.assertEqual(files, ALL_FILES | {"reference"})
        for file in ALL_FILES:
            first, *rows = self.rows(f"{file}.jsonl")
            self.assertEqual(first["kind"], "machine")
            numbers = [(row.get("pass"), row.get("case_line", row.get("plan"))) for row in rows]
            self.assertEqual(numbers, sorted(set(numbers)), file)
            lines = archived["cases/plans.jsonl" if file == "replays" else f"cases/{file}.cases"].splitlines()
            passes = 2 if file in ("gemm", "local", "two_gpus", "four_gpus") else 1
            self.assertEqual(len(rows), passes * len(lines), file)
            if file != "replays":
                for row in rows:  # a row is of the line that it names
                    words = dict(word.split("=") for word in lines[row["case_line"] - 1].split()[1:])
                    for key, word in words.items():
                        self.assertIn(row[key], (word, single.number(words, key) if word[0].isdigit() else word))
        self.assertEqual({piece["state"] for piece in manifest["pieces"]}, {"done"})
        for name, digest in manifest["sha256"].items():
            self.assertEqual(hashlib.sha256(archived[name].encode()).hexdigest(), digest)
        self.assertEqual(set(manifest["sha256"]), set(archived) - {"manifest.json"})

    def test_is_of_out_also_where_out_names_the_archive(self):
        code, out, _ = self.measure("node.tar.gz", "--minutes", "0.001")
        self.assertEqual((code, self.files()[0].split("/")[0], (self.folder / "node.tar.gz").is_file()), (0, "node", True), out)

    def test_names_what_the_machine_cannot_do(self):
        for gpus, variables, lacks in [
                (1, {}, {"two_gpus": "needs 2 GPUs, the machine has 1", "four_gpus": "needs 3 GPUs, the machine has 1",
                         "replays": "needs 2 GPUs, the machine has 1", "parts_1": "needs 2 GPUs, the machine has 1",
                         "at_once": "needs 3 GPUs, the machine has 1"}),
                (3, {"FAKE_PEERS": 0, "FAKE_ENERGY": 0},
                 {file: "needs GPUs that reach each other's memory" for file in ("two_gpus", "four_gpus", "replays", "at_once")}
                 | {"energy": "the driver gives no energy counter"})]:
            with self.subTest(gpus=gpus):
                code, out, _ = self.measure(f"node{gpus}", gpus=gpus, **variables)
                self.assertEqual(code, 0, out)
                skipped = {piece["name"]: piece["state"] for piece in self.manifest(f"node{gpus}")["pieces"]
                           if piece["state"] != "done"}
                self.assertEqual(skipped, {name: f"skipped: {reason}" for name, reason in lacks.items()})
                for name, reason in lacks.items():
                    self.assertIn(f"{name}: skipped: {reason}\n", out)

    def test_holds_out_a_fifth(self):
        self.measure("node", "--minutes", "0.001", gpus=4)
        self.measure("again", "--minutes", "0.001", gpus=4)
        self.measure("other", "--minutes", "0.001", "--seed", "7", gpus=4)
        held = [self.manifest(name)["held_out"] for name in ("node", "again", "other")]
        self.assertEqual(held[0], held[1])
        self.assertNotEqual(held[0], held[2])
        import lists
        from measure.held_out import odd
        families = {(n, odd(k)) for _, shapes in lists.FAMILIES for n, k in shapes}
        drawn = {(family["n"], family["odd_factor_of_k"]) for family in held[0]["gemm"]["families"]}
        self.assertLess(drawn, families)
        self.assertEqual(len(drawn), round(len(families) / 5))
        self.assertEqual(held[0]["files"], ["drawn.jsonl", "replays.jsonl"])
        self.assertNotIn("pair", [copy.get("pattern") for copy in held[0]["copies"] if copy.get("transfer") == "pull"])


class MeasureNotices(MeasureTestCase):
    SMI = """#!/bin/sh
case "$1" in
  *clocks_event_reasons*) exit 6 ;;
  --query-gpu=*) echo '0, 345, 1980, 40, 90.1, 97, 5000, 0x0000000000000041' ;;
  --query-compute-apps=*) echo '4242, /usr/bin/other, 512 MiB' ;;
esac
"""

    def test_others_and_clocks_that_fell(self):
        (self.folder / "nvidia-smi").write_text(self.SMI)
        (self.folder / "nvidia-smi").chmod(0o755)
        code, out, _ = self.measure("node", FAKE_PLATFORM="nvidia", PATH=f"{self.folder}:{os.environ['PATH']}",
                                    FAKE_FAULT=f"slow:gemm m=8192 n=7168 k=8192:{self.folder}/mark")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.manifest()["warnings"], [
            "GPU 0 is 97 % busy before the measurement", "GPU 0: hardware thermal slowdown",
            "another process on the GPUs: 4242, /usr/bin/other, 512 MiB",
            "gemm A: the reference GEMM took 100 % longer than usual: clocks fell, or other work ran"])
        for warning in self.manifest()["warnings"]:
            self.assertIn(f"noticed: {warning}\n", out)

    def test_nothing_where_nothing_is(self):
        self.assertEqual(self.measure("node")[0], 0)
        self.assertEqual(self.manifest()["warnings"], [])


class MeasureGoesOn(MeasureTestCase):
    def interrupted(self, kind):
        """Interrupts in the middle of the first pass over local.cases, goes on, and returns what the archive holds."""
        mark = self.folder / "mark"
        code, _, error = self.measure("node", gpus=2, FAKE_FAULT=f"{kind}:memory operation=write blocks=8:{mark}")
        self.assertTrue(mark.exists())
        return code, error

    def whole(self, failed=0):
        """The archive has all rows once; so many are of failed cases."""
        pieces = self.manifest()["pieces"]
        self.assertEqual({piece["state"] for piece in pieces if piece["file"] == "local.jsonl"}, {"done"})
        self.assertEqual(sum(piece.get("failed", 0) for piece in pieces), failed)
        rows = [(row["pass"], row["case_line"]) for row in self.rows("local.jsonl")[1:]]
        self.assertEqual(len(rows), len(set(rows)))

    def test_after_it_was_killed(self):
        code, _ = self.interrupted("kill")
        self.assertEqual(code, -9)
        self.assertFalse((self.folder / "node.tar.gz").exists())
        done = (self.folder / "node" / "pieces" / "gemm.A.jsonl").read_bytes()
        code, out, _ = self.measure("node", gpus=2)
        self.assertEqual(code, 0, out)
        self.whole()
        self.assertEqual((self.folder / "node" / "pieces" / "gemm.A.jsonl").read_bytes(), done)
        references = collections.Counter(one["pass"] for one in self.rows("reference.jsonl")[1:])
        self.assertEqual(set(references.values()), {1})

    def test_after_an_interruption(self):
        program = self.start("node", gpus=2, FAKE_CASE_S=0.01)
        while not (self.folder / "node" / "pieces" / "gemm.A.run.part").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        program.terminate()
        _, error = program.communicate(timeout=30)
        self.assertEqual((program.returncode, error.splitlines()[-1]),
                         (130, "interrupted; what is measured is kept: run the same command again to go on"))
        self.assertEqual(self.measure("node", gpus=2)[0], 0)
        self.whole()

    def test_after_the_limit(self):
        code, out, _ = self.measure("node", "--minutes", "0.15", gpus=2, FAKE_CASE_S=0.02)
        self.assertEqual(code, 0, out)
        self.assertIn("cut by the time limit: ", out)
        states = [piece["state"] for piece in self.manifest()["pieces"]]
        self.assertEqual(set(states) - {"done", "cut by the time limit"}, {
            "skipped: needs 3 GPUs, the machine has 2"})
        self.assertLess(self.manifest()["seconds_used"], 20)
        self.assertEqual(self.measure("node", gpus=2)[0], 0)
        self.whole()

    def test_past_a_case_that_ends_the_program(self):
        for kind in ("crash", "cut", "hang"):
            with self.subTest(kind=kind):
                mark = self.folder / f"mark {kind}"
                code, out, _ = self.measure(kind, gpus=1, MEASURE_HANGS_S=1, FAKE_FAULT=f"{kind}:memory operation=write blocks=8:{mark}")
                self.assertEqual(code, 0, out)
                failed = [row for row in self.rows("local.jsonl", kind)[1:] if "error" in row]
                self.assertEqual([(row["kind"], row["blocks"]) for row in failed], [("memory", "8")])
                self.assertIn("local A: 1 of ", out)

    def test_past_a_case_with_a_wrong_result(self):
        mark = self.folder / "mark"
        code, out, error = self.measure("node", FAKE_FAULT=f"fail:memory operation=write blocks=8:{mark}")
        self.assertEqual(code, 0, error)
        self.assertIn("local A: 1 of ", out)
        self.whole(failed=1)

    def test_when_results_get_their_name_while_they_are_read(self):
        from measure.runner import Run
        whole, part = self.folder / "gemm.A.run", self.folder / "gemm.A.run.part"

        def renamed_meanwhile(name):
            if name == part:
                part.rename(whole)
            return name.read_bytes()
        part.write_bytes(b"a\nb\n")
        self.assertEqual(Run.written(whole, renamed_meanwhile, b""), b"a\nb\n")
        self.assertEqual((Run.size(whole), Run.count(whole), Run.count(self.folder / "none")), (4, 2, 0))

    def test_says_when_nothing_can_be_measured(self):
        code, _, error = self.measure("node", FAKE_FAULT="crash::/nowhere/mark")
        self.assertEqual(code, 1)
        self.assertRegex(error.splitlines()[-1], r"\Ascripts/measure: .*")


class MeasureRefuses(MeasureTestCase):
    def refusal(self, *args, **options):
        before = self.files()
        code, out, error = self.measure(*args, **options)
        self.assertEqual((code, out), (2, ""), error)
        self.assertRegex(error, r"\A[^\n]+\n\Z")
        self.assertEqual(self.files(), before)
        return error.rstrip("\n")

    def test_bad_arguments(self):
        (self.folder / "file").write_text("")
        (self.folder / "full").mkdir()
        (self.folder / "full" / "letter.txt").write_text("")
        for args, message in [
                ([], "the following arguments are required: OUT; usage: scripts/measure OUT"),
                (["node", "--minutes", "0"], "--minutes 0: allowed: a number above 0, up to 1440"),
                (["node", "--minutes", "nan"], "--minutes nan: allowed: "),
                (["node", "--minutes"], "argument --minutes: expected one argument; usage: "),
                (["node", "--minute", "3"], "unrecognized arguments: --minute 3; usage: "),
                (["node", "--seed", "-1"], "--seed -1: allowed: a whole number from 0"),
                (["node", "--seed", "x"], "--seed x: allowed: a whole number from 0"),
                (["file"], f"{self.folder}/file: is a file, expected a folder or a new name"),
                (["full"], f"{self.folder}/full: is a folder of something else, expected "),
                ([".tar.gz"], "OUT '.tar.gz': expected the name of a folder or of an archive"),
                (["/proc/node"], "/proc/node: cannot be written")]:
            with self.subTest(args=args):
                self.assertTrue(self.refusal(*args).startswith(message))

    def test_programs_that_are_none(self):
        self.assertTrue(self.refusal("node", "--microbench", FAKE, fake=False).startswith(
            "--microbench and --replay: give both or neither"))
        self.assertEqual(self.refusal("node", "--microbench", "/nowhere/mb", "--replay", FAKE, fake=False),
                         "--microbench /nowhere/mb: is no program")

    def test_a_simulator_that_makes_no_plan(self):
        self.assertEqual(self.refusal("node", "--sim", "/bin/true", gpus=2),
                         "--sim /bin/true: makes no plan; expected a simulator such as build/release/sim")

    def test_no_gpu(self):
        self.assertEqual(self.refusal("node", gpus=0), "no GPU: the driver lists none")

    def test_neither_driver_nor_compiler(self):
        if list(pathlib.Path("/dev").glob("nvidia[0-9]*")) or list(pathlib.Path("/sys/class/kfd").glob("kfd")):
            self.skipTest("this machine has a GPU, which would be measured")
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "python3").symlink_to(sys.executable)
        variables = {"PATH": tools, "ROCM_PATH": "/nowhere", "HIP_PATH": "/nowhere"}
        self.assertEqual(self.refusal("node", fake=False, **variables), "no GPU: neither nvidia-smi nor /sys/class/kfd lists one")
        (tools / "rocminfo").write_text("#!/bin/sh\necho '  Name:                    gfx942'\n")
        (tools / "rocminfo").chmod(0o755)
        if not list(pathlib.Path("/opt").glob("rocm*")):
            self.assertTrue(self.refusal("node", fake=False, **variables).startswith("no compiler for AMD's GPUs: "))

    def test_results_of_another_machine(self):
        self.measure("node", "--minutes", "0.001", gpus=2)
        self.assertTrue(self.refusal("node", gpus=4).startswith("OUT holds measurements of another machine: gpus is 4, there 2"))
        self.assertTrue(self.refusal("node", "--seed", "5", gpus=2).startswith("--seed 5: OUT has the seed "))
        (self.folder / "node" / "state.json").write_text(json.dumps({"schema": 1}))
        self.assertIn("state.json: cannot be read", self.refusal("node", gpus=2))
