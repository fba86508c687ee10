"""sim sweep --resume: which folders it goes on with, and that it refuses as they are those whose files do not fit each other."""
import json
import os
import shutil
import subprocess
import zlib

from sim_case import ROOT, SMALL, SimTestCase

AGAIN = ["sweep", "sweep.json", "--out", "out", "--resume"]
AXES = {"params.agent": ["dma", "cu"], "params.chunks": [1, 2, 3, 4]}


class SweepResumed(SimTestCase):
    def setUp(self):
        super().setUp()
        # The last combination is no point: 4 chunks by compute units.
        self.file("sweep.json", {"schema": 1, "name": "test", "base": {**SMALL, "seeds": 1}, "axes": AXES,
                                 "where": ["agent == \"dma\" || chunks < 4"]})
        self.output(*AGAIN[:-1])
        self.out = self.folder / "out"
        self.whole = self.contents()
        self.assertEqual(len(self.whole["points.jsonl"].splitlines()), 7)

    def contents(self):
        return {path.name: path.read_bytes() for path in sorted(self.out.iterdir())}

    def write(self, **contents):
        """These files and no others; names with _ for a dot."""
        for path in self.out.iterdir():
            path.unlink()
        for name, content in contents.items():
            (self.out / name.replace("_", ".")).write_bytes(content)

    def state(self, rows, **changed):
        """The folder after `rows` rows, `changed` in progress.json, whose checksums are right."""
        csv = b"".join(self.whole["points.csv"].splitlines(keepends=True)[:rows + 1])
        jsonl = b"".join(self.whole["points.jsonl"].splitlines(keepends=True)[:rows])
        progress = {"schema": 2, "next": rows, "points": rows, "errors": 0}
        for name, content in (("points.csv", csv), ("points.jsonl", jsonl)):
            progress[name] = {"bytes": len(content), "crc32": zlib.crc32(content)}
        progress.update(changed)
        progress["crc32"] = zlib.crc32(json.dumps(progress, separators=(",", ":")).encode())
        self.write(sweep_json=self.whole["sweep.json"], points_csv=csv, points_jsonl=jsonl,
                   progress_json=json.dumps(progress).encode())

    def refused(self, *expected):
        before = self.contents()
        self.assert_refused(AGAIN, *expected)
        self.assertEqual(self.contents(), before)

    def finished(self):
        self.output(*AGAIN)
        self.assertEqual(self.contents(), self.whole)

    def test_from_every_row(self):
        for rows in range(7):
            self.state(rows)
            self.finished()
        self.state(7, next=8)  # behind the last row there is no point
        self.finished()

    def test_next_fits_the_rows(self):
        """Checksums alone would not see these."""
        self.state(4, next=6)
        self.refused("progress.json", "is damaged: 'next' is 6, point 4 has no row")
        self.state(0, next=1)
        self.refused("'next' is 1, point 0 has no row")
        self.state(4, next=3)
        self.refused("'next' is 3, the last row is of point 3")
        self.state(7, next=9)
        self.refused("'next' is 9 of 8")
        self.state(4, points=5)
        self.refused("'points' is 5, points.jsonl has 4 rows")

    def test_progress_vouches_for_itself(self):
        self.state(4)
        good = (self.out / "progress.json").read_text()
        progress = json.loads(good)
        changes = []
        for key, value in progress.items():
            inner = value if isinstance(value, dict) else None
            for name in inner or [key]:
                changed = json.loads(good)
                (changed[key] if inner else changed)[name] += 1
                changes.append(changed)
            changes.append({other: kept for other, kept in progress.items() if other != key})
        self.assertGreater(len(changes), 12)
        for changed in changes:
            (self.out / "progress.json").write_text(json.dumps(changed))
            self.refused("progress.json" if changed.get("schema") == 2 else "/schema")
        for cut in (0, 1, len(good) // 2, len(good) - 1):
            (self.out / "progress.json").write_text(good[:cut])
            self.refused("out/progress.json")
        (self.out / "progress.json").unlink()
        self.refused("progress.json", "is missing")
        (self.out / "progress.json").write_text(good)
        self.finished()

    def test_damaged_rows(self):
        for name in ("points.csv", "points.jsonl"):
            self.state(7)
            path = self.out / name
            good = path.read_bytes()
            path.write_bytes(good[:-1])
            self.refused("out/" + name, "is damaged", f"{len(good)} had been written")
            path.write_bytes(good[:60] + b"!" + good[61:])
            self.refused("out/" + name, "is damaged", "not those")
            path.unlink()
            self.refused("out/" + name, "is damaged: is missing")

    def test_before_the_first_row(self):
        """Killed while the folder was made: begins anew, but over nothing that is of somebody else."""
        sweep, header = self.whole["sweep.json"], self.whole["points.csv"].splitlines(keepends=True)[0]
        for contents in ({}, {"points_csv": b""}, {"points_csv": header[:7]}, {"points_csv": header, "points_jsonl": b""}):
            self.write(sweep_json=sweep, **contents)
            self.finished()
        for other in (b"a user's own", header + b"0,more"):
            self.write(sweep_json=sweep, points_csv=other)
            self.refused("out/points.csv: is damaged")

    def test_links_are_not_followed(self):
        (self.folder / "precious").write_text("precious")
        self.write(sweep_json=self.whole["sweep.json"])
        (self.out / "points.csv").symlink_to("../precious")
        self.refused("out/points.csv: is a link")
        self.write()
        (self.out / "points.csv").symlink_to("nowhere")
        self.assert_refused(AGAIN[:-1], "out/points.csv: exists already")
        self.assertEqual((self.folder / "precious").read_text(), "precious")

    def test_what_a_kill_leaves_behind_goes(self):
        self.state(4)
        (self.out / ".sim-1-0.part").write_text("{")
        (self.out / "progress.json.part").write_text("a user's own")
        self.output(*AGAIN)
        self.assertEqual(sorted(os.listdir(self.out)), sorted([*self.whole, "progress.json.part"]))


class SweepVouches(SimTestCase):
    """The state of a sweep vouches for every file that the sweep has read, on every process of MPI."""

    def setUp(self):
        super().setUp()
        for kind in ("topologies", "devices", "calibrations", "workloads", "hosts", "schedules", "models", "sweeps"):
            shutil.copytree(ROOT / "configs" / kind, self.folder / "configs" / kind)
        shutil.copy(ROOT / "configs" / "families.json", self.folder / "configs")
        (self.folder / "elsewhere").mkdir()
        self.file("elsewhere/own.json", (ROOT / "configs/topologies/h200_4.json").read_text().replace("h200.json", "own_device.json"))
        self.file("elsewhere/own_device.json", (ROOT / "configs/devices/h200.json").read_text())
        axes = {"topology": ["own", "h200_8"], "host": ["benchmark", "threads"], "schedule": ["serial", "async_tp"],
                "workload": ["ficco_g2", {"model": "llama3_8b", "tokens": 512}]}
        self.file("elsewhere/sweep.json", {"schema": 1, "name": "test", "base": {"seeds": 1}, "axes": axes})

    def run_in(self, configs, *args, command=()):
        return subprocess.run([*command, os.environ["SIM"], "sweep", "elsewhere/sweep.json", "--out", "out", *args],
                              cwd=self.folder, env={**os.environ, "OVERLAP_CONFIGS": str(self.folder / configs)},
                              capture_output=True, encoding="utf-8", timeout=120)

    def change(self, name):
        """Another content with the same meaning: the digest counts."""
        path = self.folder / name
        path.write_text(path.read_text() + "\n")

    def refused(self, name, configs="configs"):
        before = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}
        done = self.run_in(configs, "--resume")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Asim: [^\n]+\n\Z")
        self.assertIn(name + ": ", done.stderr)
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "out").iterdir()}, before)

    def test_a_changed_file_is_refused(self):
        self.assertEqual(self.run_in("configs").returncode, 0)
        self.assertEqual(self.run_in("configs", "--resume").returncode, 0)
        for name in ("elsewhere/own.json", "elsewhere/own_device.json", "configs/topologies/h200_8.json", "configs/devices/h200.json",
                     "configs/calibrations/h200.json", "configs/hosts/benchmark.json", "configs/schedules/async_tp.json",
                     "configs/workloads/ficco_g2.json", "configs/models/llama3_8b.json"):
            with self.subTest(name=name):
                old = (self.folder / name).read_text()
                self.change(name)
                self.refused(name)
                (self.folder / name).write_text(old)
        self.change("configs/devices/mi300x.json")  # not read
        self.assertEqual(self.run_in("configs", "--resume").returncode, 0)
        shutil.copytree(self.folder / "configs", self.folder / "moved")
        self.assertEqual(self.run_in("moved", "--resume").returncode, 0)  # the same files in another place
        self.change("moved/hosts/threads.json")
        self.refused("moved/hosts/threads.json", "moved")

    def test_another_program_is_refused(self):
        self.assertEqual(self.run_in("configs").returncode, 0)
        path = self.folder / "out" / "sweep.json"
        good = json.loads(path.read_text())
        for changed, said in (({"version": "0.0.1"}, "by sim 0.0.1, not by sim"), ({"program": "0"}, "by another build of sim"),
                              ({"name": "other"}, "another sweep"), ({"files": 3}, "/files")):
            path.write_text(json.dumps({**good, **changed}))
            self.refused("out/sweep.json")
            self.assertIn(said, self.run_in("configs", "--resume").stderr)

    def test_processes_that_differ_are_refused(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun here (package openmpi-bin)")
        shutil.copytree(self.folder / "configs", self.folder / "other")
        self.change("other/calibrations/h200.json")
        sweep = [os.environ["SIM"], "sweep", "elsewhere/sweep.json", "--out", "out"]
        one = lambda configs: ["-n", "1", "-x", f"OVERLAP_CONFIGS={self.folder / configs}", *sweep]
        done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", *one("configs"), ":", *one("other")],
                              cwd=self.folder, capture_output=True, encoding="utf-8", timeout=120)
        self.assertNotEqual(done.returncode, 0)
        said = [line for line in done.stderr.splitlines() if line.startswith("sim: ")]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertRegex(said[0], "other/calibrations/h200.json: .* process 0 has read .process 1, on ")
        self.assertFalse((self.folder / "out").exists())
