"""Mistakes on the command line itself and in what the commands read and write."""
import json
import os
import subprocess

from sim_case import PAIR, ROOT, SMALL, SimTestCase


class Flags(SimTestCase):
    def test_unknown(self):
        self.assert_refused(["--topologie", "h200_4"], "'--topologie'", "'--topology'")
        self.assert_refused([*PAIR, "--dryrun"], "'--dryrun'", "'--dry-run'")
        self.assert_refused(["bacth", "x"], "'bacth'", "'batch'")
        self.assert_refused(["cost", "--devise", "h200", "--gemm", "8x8x8"], "'--devise'", "'--device'")
        self.assert_refused([*PAIR, "--no\nsuch"])

    def test_values(self):
        self.assert_refused([*PAIR, "--format", "yaml"], "--format", "text,json,csv")
        self.assert_refused([*PAIR, "--trace"], "--trace")
        for flag in ("--gemm", "--dtype", "--set", "--trace", "--config", "--without"):
            self.assert_refused([*PAIR, flag, ""], flag, "is empty")
        self.assert_refused(["list", ""], "kind", "is empty")
        self.assert_refused([*PAIR, "--topology", "h200_2"], "--topology")

    def test_what_excludes_each_other(self):
        self.assert_refused([*PAIR, "--dry-run", "--trace", "out.json"], "--dry-run", "--trace")


class HelpCommand(SimTestCase):
    def test_help_of_a_command(self):
        self.assertEqual(self.output("help"), self.output("--help"))
        for command in ("advise", "batch", "sweep", "help"):
            self.assertEqual(self.output("help", command), self.output(command, "--help"))
        self.assert_refused(["help", "swep"], "'swep' is no command", "did you mean 'sweep'?")
        self.assert_refused(["hlp"], "did you mean 'help'?")


class AnyBytes(SimTestCase):
    """Arguments and tables that are no UTF-8, hold control characters, or are very long."""

    def test_what_ifs(self):
        for value in ("\udcff", "é" * 29 + "ab", "\x1b[31m", "x" * 100_000):
            args = [*PAIR, "--what-if", "device.compute_units=" + value]
            self.assert_refused(args, "/device.compute_units: is \"", "expected a number")
            done = self.sim(*args)
            self.assertLess(len(done.stderr), 500)
            self.assertNotIn("\x1b", done.stderr)
        self.assert_refused([*PAIR, "--what-if", "\udcff.a=1"], "begins with")
        self.assert_refused([*PAIR, "--set", "chunks=\udcff"], "/params/chunks")

    def test_names(self):
        for flag in ("--topology", "--schedule", "--workload", "--engine", "--without", "--cost-model", "--gemm", "--dtype",
                     "--config"):
            for value in ("\udcff", "\x1b[1m", "y" * 100_000):
                done = self.sim(*PAIR[2 if flag == "--topology" else 0:][:0 if flag == "--schedule" else 2], flag, value)
                with self.subTest(flag=flag, value=value[:9]):
                    self.assertEqual(done.returncode, 2, done.stderr[:300])
                    self.assertRegex(done.stderr, r"\Asim: [^\n\x00-\x1f]+\n\Z")
                    self.assertLess(len(done.stderr), 3000)

    def test_names_in_outputs(self):
        workload = {"schema": 1, "name": "\x1b[31mred", "description": "A name that would colour a terminal.", "source": "none",
                    "collective": "all_gather", "order": "collective_first", "shard_dim": "m",
                    "gemm": {"m": 512, "n": 512, "k": 512, "dtype": "bf16"}}
        text = self.output("--topology", "h200_2", "--schedule", "serial", "--workload",
                           self.file("red.json", json.dumps(workload)))
        self.assertNotIn("\x1b", text)
        self.assertIn("[31mred", text)

    def test_table_of_gemms(self):
        (self.folder / "gemms.csv").write_bytes(b"m,n,k,dtype,note\n64,64,64,bf16,caf\xe9\n")
        rows = json.loads(self.output("cost", "--device", "h200", "--from", "gemms.csv", "--format", "json"))
        self.assertEqual([row["note"] for row in rows], ["caf\ufffd"])

    def test_trace(self):
        (self.folder / "a_trace.csv").write_bytes(
            b"Kernel_Name,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp\ngemm_\xff,4,1,1000,2000\nodd_\xff,4,1,2000,3000\n")
        self.output("import", "a_trace.csv", "--out", "case.json", "--system", "a\udcff")
        case = json.loads((self.folder / "case.json").read_text(encoding="utf-8"))
        self.assertEqual((case["system"], case["spans"][0]["name"]), ("a\ufffd", "gemm_\ufffd"))


class Writing(SimTestCase):
    def test_missing_folder(self):
        for flag in ("--trace", "--graph"):
            self.assert_refused([*PAIR, flag, "nowhere/out.json"], "nowhere/out.json", "cannot be written")

    def test_nothing_is_written_where_a_later_file_cannot_be(self):
        self.assert_refused([*PAIR, "--graph", "graph.json", "--trace", "nowhere/out.json"], "nowhere/out.json")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_folder_in_the_way(self):
        (self.folder / "out.json").mkdir()
        for flag in ("--trace", "--graph"):
            self.assert_refused([*PAIR, flag, "out.json"], "out.json", "is a directory")

    def test_a_failed_run_leaves_the_old_file(self):
        name = self.file("out.json", "old")
        self.assert_refused([*PAIR, "--gemm", "1x1x1", "--trace", name])
        self.assertEqual((self.folder / name).read_text(encoding="utf-8"), "old")

    def test_full_standard_output_is_no_success(self):
        for args in ("list", "--help", "--topology h200_4 --schedule serial"):
            with self.subTest(args=args):
                done = subprocess.run(["sh", "-c", f'"$SIM" {args} >/dev/full'], capture_output=True, encoding="utf-8")
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"\Asim: standard output: cannot be written: No space left on device\n\Z")


class Names(SimTestCase):
    def test_list_and_explain(self):
        self.assert_refused(["list", "schedulse"], "'schedulse'", "'schedules'")
        self.assert_refused(["explain", "ring_chunkd"], "'ring_chunkd'", "'ring_chunked'")
        self.assert_refused(["explain", "nonsense!"], "'nonsense!'", "sim list")
        self.assert_refused(["explain"], "name")


class Cost(SimTestCase):
    def test_what_to_price(self):
        self.assert_refused(["cost", "--device", "h200"], "--gemm", "--copy", "--from")
        self.assert_refused(["cost", "--device", "h200", "--gemm", "8x8x8", "--copy", "1MB"], "one of")
        self.assert_refused(["cost", "--gemm", "8x8x8"], "--device")
        self.assert_refused(["cost", "--device", "h20", "--gemm", "8x8x8"], "h20", "'h200'")
        self.assert_refused(["cost", "--device", "h200", "--gemm", "8x8x8", "--dtype", "bf61"], "'bf61'", "'bf16'")
        for unused in (["--from", "a.csv", "--dtype", "fp8"], ["--copy", "1MB", "--accumulate"], ["--gemm", "8x8x8", "--cus", "4"]):
            self.assert_refused(["cost", "--device", "h200", *unused], unused[2])
        self.assert_refused(["cost", "--device", "h200", "--gemm", "8x8x8", "--format", "csv"], "--from")

    def test_sizes(self):
        for text in ("0x8x8", "8x8", "1e30x1x1", "-5x8x8"):
            self.assert_refused(["cost", "--device", "h200", "--gemm", text], text, "MxNxK")
        for text in ("0", "-1MB", "1e30", "nan", "inf", "64XB", "MB", "64 MB"):
            self.assert_refused(["cost", "--device", "h200", "--copy=" + text], "--copy is '" + text + "'", "64MB")

    def test_compute_units_of_a_copy(self):
        copy = ["cost", "--device", "mi300x", "--copy", "64MB"]
        self.assert_refused([*copy, "--cus", "4"], "--agent cu")
        for count in ("304", "0", "-4", "1.5"):
            self.assert_refused([*copy, "--agent", "cu", "--cus=" + count], "--cus")
        self.assert_refused(["cost", "--topology", "mi300x_1", "--copy", "64MB"], "two GPUs")

    def table(self, text, *expected):
        name = self.file("gemms.csv", text)
        self.assert_refused(["cost", "--device", "h200", "--from", name, "--format", "csv"], "gemms.csv", *expected)

    def test_tables(self):
        head, good = "m,n,k,dtype\n", "8,8,8,bf16\n"
        self.assert_refused(["cost", "--device", "h200", "--from", "nowhere.csv"], "nowhere.csv", "cannot be read")
        self.table("", "no rows")
        self.table(head, "no rows")
        self.table("m,n,k,dtyp\n" + good, "gemms.csv:1", "'dtype'", "missing")
        for row, expected in {"8,8,8": "has 3 cells", "8,8,8,bf16,9": "has 5 cells", "0,8,8,bf16": "m is '0'",
                              "8,-8,8,bf16": "n is '-8'", "8,8,8.5,bf16": "k is '8.5'", "8,8,1e30,bf16": "k is '1e30'",
                              "8,8,,bf16": "k is ''", "8,8,8,bf61": "'bf16'", '8,8,8,"bf16"': "quoted"}.items():
            self.table(head + good + row + "\n" + good, "gemms.csv:3", expected)
        self.table("m,n,k,dtype,accumulate\n8,8,8,bf16,yes\n", "gemms.csv:2", "accumulate is 'yes'")


class BatchFile(SimTestCase):
    def test_nothing_to_run(self):
        self.assert_refused(["batch", "nowhere.jsonl"], "nowhere.jsonl", "cannot be read")
        (self.folder / "folder").mkdir()
        self.assert_refused(["batch", "folder"], "folder", "is a directory")
        for text in ("", "\n", " \r\n\t\n"):
            self.assert_refused(["batch", self.file("runs.jsonl", text)], "runs.jsonl", "is empty")
        self.assert_refused(["batch"], "file")

    def test_no_line_stops_the_others(self):
        """Each was an exit code 1 that lost the lines after it."""
        good = json.dumps(SMALL)
        cut = dict(SMALL, workload={**SMALL["workload"], "gemm": {**SMALL["workload"]["gemm"], "m": "é" * 40}})
        lines = [json.dumps(cut, ensure_ascii=False), "[" * 80_000, json.dumps(dict(SMALL, what_if={"device.x": "é" * 29})),
                 json.dumps(dict(SMALL, topology="\0" + "t" * 100_000)), good]
        done = self.sim("batch", self.file("runs.jsonl", "\n".join(lines) + "\n"))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual((done.returncode, len(answers)), (2, len(lines)), done.stderr)
        for answer in answers[:-1]:
            self.assertNotIn("internal", answer["error"])
            self.assertLess(len(answer["error"]), 3000)
        self.assertIn("makespan_us", answers[-1])
        self.assertRegex(done.stderr, r"\Asim: runs.jsonl: 4 of 5 configs failed[^\n]*\n\Z")

    def test_topology_that_fails_only_when_built(self):
        machine = {"schema": 1, "name": "apart", "description": "two GPUs, no fabric", "device": "h200.json", "nodes": 1,
                   "gpus_per_node": 2, "fabric": []}
        config = dict(SMALL, topology=self.file("apart.json", machine))
        done = self.sim("batch", self.file("runs.jsonl", json.dumps(config) + "\n" + json.dumps(SMALL) + "\n"))
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (2, 2))
        self.assertIn("no route", json.loads(done.stdout.splitlines()[0])["error"])


class Calibrate(SimTestCase):
    def test_missing_folders(self):
        self.assert_refused(["calibrate", "--data", "nowhere"], "nowhere", "no such folder")
        self.assert_refused(["calibrate", "--measurements", "nowhere"], "nowhere", "no such folder")
        self.assert_refused(["calibrate", "mi100", "--out", "."], "'mi100' has no measurements in traces/")
        (self.folder / "data").mkdir()
        self.assert_refused(["calibrate", "--data", "data", "--out", self.file("taken", "")], "taken", "folder")
        self.assert_refused(["calibrate", "--data", "data", "--out", "taken/below"], "taken/below", "folder")
        self.assert_refused(["calibrate", "b300", "--kernels", "--data", "data", "--out", "."], "nothing to fit: b300")

    def test_a_device_that_the_measurements_are_not_of(self):
        measured = str(ROOT / "traces" / "h200_4" / "microbench")
        self.assert_refused(["calibrate", "mygpu", "--measurements", measured, "--out", "new"], "'mygpu'", measured,
                            "(allowed: h200)")
        self.assert_refused(["calibrate", "mygpu", "--out", "new"], "'mygpu'", "traces/", "h200")

    def test_bad_measurements(self):
        folder = self.folder / "measured"
        folder.mkdir()
        self.assert_refused(["calibrate", "--measurements", "measured", "--out", "."], "gemm.jsonl", "cannot be read")
        machine = '{"schema": 1, "kind": "machine", "date": "2026-11-21T00:00:00Z", "device": "NVIDIA H2000"}\n'
        (folder / "gemm.jsonl").write_text(machine, encoding="utf-8")
        self.assert_refused(["calibrate", "--measurements", "measured", "--out", "."], "gemm.jsonl:1: /device",
                            "did you mean 'NVIDIA H200'?")
        (folder / "gemm.jsonl").write_text(machine + '{"kind": "gemm", "median": NaN}\n', encoding="utf-8")
        self.assert_refused(["calibrate", "--measurements", "measured", "--out", "."],
                            "gemm.jsonl:2: /median: is NaN, expected a finite number or null")
