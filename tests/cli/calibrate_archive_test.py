"""sim calibrate ARCHIVE: a machine that scripts/measure measured becomes files that every command takes."""
import collections
import hashlib
import io
import json
import tarfile

from sim_case import ROOT, SimTestCase

H100 = ROOT / "traces/h100_1/three_minutes.tar.gz"


class CalibrateArchive(SimTestCase):
    def archive(self, name, change):
        """H100's archive with files changed by `change(name, content)`, which may return None to leave one out."""
        with tarfile.open(H100) as old:
            files = {member.name.split("/", 1)[1]: old.extractfile(member).read() for member in old.getmembers()}
        changed = {file: change(file, content) for file, content in files.items()}
        return self.pack(name, self.sealed({file: content for file, content in changed.items() if content is not None}))

    @staticmethod
    def sealed(files):
        """The same with a manifest of their digests, if the manifest can be read."""
        try:
            manifest = json.loads(files["manifest.json"])
        except (KeyError, ValueError):
            return files
        manifest["sha256"] = {file: hashlib.sha256(content).hexdigest() for file, content in files.items() if file != "manifest.json"}
        return {**files, "manifest.json": json.dumps(manifest).encode()}

    def pack(self, name, files):
        with tarfile.open(self.folder / name, "w:gz", compresslevel=1) as new:
            for file, content in files.items():
                entry = tarfile.TarInfo("h100/" + file)
                entry.size = len(content)
                new.addfile(entry, io.BytesIO(content))
        return name

    def test_a_file_that_is_not_the_one_that_was_packed_is_refused(self):
        with tarfile.open(H100) as old:
            files = {member.name.split("/", 1)[1]: old.extractfile(member).read() for member in old.getmembers()}
        flipped = bytearray(files["gemm.jsonl"])
        flipped[flipped.index(b'"median":') + 9] ^= 1
        for name, content, message in (("gemm.jsonl", bytes(flipped), "is not the file that was packed"), ("drawn.jsonl", None, "is no file of the archive")):
            kept = {file: text for file, text in {**files, name: content}.items() if text is not None}
            self.assert_refused(["calibrate", self.pack("bad.tar.gz", kept), "--name", "node7", "--out", "out"], name, message)
        self.assertEqual([file for file in self.files() if file.startswith("out/")], [])

    def test_names_are_no_paths(self):
        for name in ("../../evil", "a/b", "/evil", "..", ".hidden", "-x", "new\nline", "x" * 101):
            self.assert_refused(["calibrate", str(H100), "--name=" + name, "--out", "a/b/out"], "--name is ", "expected a name")
        with tarfile.open(H100) as old:
            files = {member.name.split("/", 1)[1]: old.extractfile(member).read() for member in old.getmembers()}
        packed = self.pack("twice.tar.gz", {**files, "./gemm.jsonl": b""})
        self.assert_refused(["calibrate", packed, "--name", "node7", "--out", "out"], "twice")
        packed = self.pack("out.tar.gz", {**files, "../../evil.jsonl": b""})
        self.assert_refused(["calibrate", packed, "--name", "node7", "--out", "out"], "outside of its folder")

    def manifest(self, name, change):
        def changed(file, content):
            if file != "manifest.json":
                return content
            manifest = json.loads(content)
            change(manifest)
            return json.dumps(manifest).encode()
        return self.archive(name, changed)

    def test_a_new_machine_is_usable_at_once_and_says_where_its_numbers_are_from(self):
        folder, schedules = self.with_schedules()
        said = self.output("calibrate", str(folder), "--name", "node7", "--out", "out")
        written = [file for file in self.files() if file.startswith("out/") and file.endswith(".json")]
        self.assertEqual(written, ["out/calibrations/node7.json", "out/devices/node7.json", "out/topologies/node7_1.json"])
        self.check_validation(said, schedules)
        for part in ("not measured: two_gpus: skipped: needs 2 GPUs", "in no fit, so what to expect", "GEMMs of 50 us"):
            self.assertIn(part, said)
        device = json.loads((self.folder / "out/devices/node7.json").read_text())
        self.assertEqual(device["like"], "h100")
        self.assertIn("what the driver says", device["compute_units"]["source"])
        self.assertIn("latency stream_hop less kernels", device["launch"]["dependency_us"]["source"])
        self.assertIn("estimate: value of h100", device["peak_TFLOPS"]["bf16"]["source"])
        fits = json.loads((self.folder / "out/calibrations/node7.json").read_text())
        classes = {one: errors for one, errors in fits["gemm"]["bf16"]["provenance"]["classes"].items()}
        unseen = classes["GEMM, families in no fit"]
        self.assertLess(unseen["mean_error_held_out_pct"], 4)  # asked of an H100
        self.assertLess(unseen["p90_error_held_out_pct"], 10)
        # A shape that was measured takes its time; its neighbour the model's.
        for shape in ("8192x2560x8192", "8190x2560x8192"):
            cost = self.output("cost", "--topology", "out/topologies/node7_1.json", "--gemm", shape, "--format", "json")
            self.assertIn("cuBLASLt 13.1.0", cost)

    @staticmethod
    def some_gemms(name, content):
        """Of the GEMMs every ninth: what an error would be does not count here."""
        first, *rows = content.splitlines(keepends=True)
        return first + b"".join(rows[::9]) if name == "gemm.jsonl" else content

    def with_schedules(self):
        """H100's archive, unpacked, with 30 schedules that were measured on two H200: here only the path counts."""
        with tarfile.open(H100) as packed:
            packed.extractall(self.folder / "pair", filter="data")
        folder = next((self.folder / "pair").iterdir())
        lines = (ROOT / "traces/h200_2/overlap/cases.jsonl").read_text().splitlines()[1:31]
        (folder / "replays.jsonl").write_text("\n".join(lines) + "\n")
        files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        (folder / "manifest.json").write_bytes(self.sealed(files)["manifest.json"])
        return folder, collections.Counter(json.dumps(json.loads(line)["scenario"]["workload"]) for line in lines)

    def check_validation(self, said, schedules_of):
        """The same errors in the text, the calibration and the page."""
        validation = json.loads((self.folder / "out/calibrations/node7.json").read_text())["validation"]
        classes, schedules = validation["classes"], validation["schedules"]
        for name, errors in [("bf16 GEMMs of 50 us and more", classes["bf16 GEMMs of 50 us and more"]), ("whole schedules", schedules)]:
            self.assertIn(f"{name}: {errors['mean_error_pct']:.1f} % (p90 {errors['p90_error_pct']:.1f} %)", said)
        self.assertEqual(schedules["cases"], sum(schedules_of.values()))
        self.assertEqual(validation["choices"]["operators"], sum(count > 1 for count in schedules_of.values()))
        self.assertTrue(validation["sentence"].startswith("Schedules on this machine are predicted within"))
        self.assertIn(validation["sentence"], said)
        page = (self.folder / "out/validation/node7.html").read_text()
        for part in (validation["sentence"], "The worst single operations", "not determined", "NVIDIA H100"):
            self.assertIn(part, page)
        self.assertNotIn("1; us", page)  # factors are "times"
        blocks = self.page_data("out/validation/node7.html")["blocks"]
        worst = blocks[[block.get("heading") for block in blocks].index("The worst schedules") + 1:][:6]
        self.assertEqual(["details" in block for block in worst], [True] * 5 + [False])
        self.assertTrue(any(predicted for *_, predicted in worst[0]["blocks"][0]["spans"]))

    def test_a_shipped_device_keeps_what_was_not_measured(self):
        # Without GEMMs beside copies: their fit takes most of the time, and the test of a new machine has it.
        self.output("calibrate", self.archive("some.tar.gz", lambda name, content: None if name == "beside.jsonl" else self.some_gemms(name, content)), "--out", "out")
        written = [file for file in self.files() if file.endswith(".json")]
        self.assertEqual(written, ["out/calibrations/h100.json", "out/devices/h100.json"])
        device = json.loads((self.folder / "out/devices/h100.json").read_text())
        fits, shipped = (json.loads((folder / "calibrations/h100.json").read_text()) for folder in (self.folder / "out", ROOT / "configs"))
        self.assertEqual(fits["dma"], shipped["dma"])
        self.assertEqual(fits["interference"], shipped["interference"])
        self.assertNotEqual(fits["gemm"]["bf16"], shipped["gemm"]["bf16"])
        self.assertNotIn("cu_GBps", device["copy_kernel"])  # reads and writes are fitted apart

    def test_an_amd_machine_takes_the_same_path(self):
        # Made by hand: times of an H100 under the facts of an MI300X, as scripts/measure writes them there.
        facts = {"device": "AMD Instinct MI300X", "compute_units": 304, "memory_GiB": 191.98, "cache_MiB": 256, "peak_clock_MHz": 2100,
                 "memory_clock_MHz": 1300, "power_limits_W": [750], "platform": "amd", "driver": "6.12.12", "gemm_library": "rocBLAS 5.0.0",
                 "devices": ["AMD Instinct MI300X"], "units_by_gpu": [304], "architectures": ["gfx942"], "uuids": ["GPU-0"]}

        def amd(name, content):
            if name == "manifest.json":
                manifest = json.loads(content)
                manifest["facts"].update(facts)
                return json.dumps(manifest).encode()
            if name not in ("gemm.jsonl", "local.jsonl"):
                return None  # other fits take long here, because these times are not those of such a GPU
            first, *rest = self.some_gemms(name, content).splitlines()
            rest = [row for row in rest if name == "gemm.jsonl" or b'"kind":"latency"' in row]
            return b"\n".join([json.dumps({**json.loads(first), **facts}).encode(), *rest, b""])
        said = self.output("calibrate", self.archive("amd.tar.gz", amd), "--name", "my_mi300x", "--out", "out")
        self.assertIn("1 x AMD Instinct MI300X", (self.folder / "out/validation/my_mi300x.html").read_text())
        device = json.loads((self.folder / "out/devices/my_mi300x.json").read_text())
        self.assertEqual((device["like"], device["compute_units"]["value"]), ("mi300x", 304))
        # Engines and commands are those of the nearest AMD device, not those of the NVIDIA device that is measured best.
        shipped = json.loads((ROOT / "configs/devices/mi300x.json").read_text())
        for key in ("peer_engines", "engine_GBps"):
            self.assertEqual(device["dma"][key]["value"], shipped["dma"][key]["value"])
        gemm = json.loads((self.folder / "out/calibrations/my_mi300x.json").read_text())["gemm"]["bf16"]
        self.assertIn("32x128", gemm["tiles"])  # AMD's list of macro-tiles
        self.assertEqual(gemm["library"], "rocBLAS 5.0.0")
        self.assertIn("GEMMs of 50 us", said)
        self.output("--topology", "out/topologies/my_mi300x_1.json", "--schedule", "serial", "--gemm", "4096x4096x4096")

    def test_bad_archives_get_one_line(self):
        self.file("text.tar.gz", "no archive")
        (self.folder / "cut.tar.gz").write_bytes(H100.read_bytes()[:50000])
        refuse = self.assert_refused
        refuse(["calibrate", "nowhere.tar.gz"], "nowhere.tar.gz: no such archive or folder")
        refuse(["calibrate", "text.tar.gz"], "text.tar.gz: is damaged or no archive")
        refuse(["calibrate", "cut.tar.gz"], "cut.tar.gz: is damaged or no archive")
        refuse(["calibrate", self.archive("bare.tar.gz", lambda name, text: None if name == "manifest.json" else text)],
               "bare.tar.gz: has no manifest.json")
        refuse(["calibrate", self.manifest("other.tar.gz", lambda m: m["facts"].update(device="NVIDIA H200"))],
               "/device: is \"NVIDIA H100 80GB HBM3\", expected \"NVIDIA H200\" as in manifest.json")
        refuse(["calibrate", self.manifest("two.tar.gz", lambda m: m["facts"].update(uuids=["GPU-0"]))],
               "/uuids: is [\"GPU-9e938fef-a4c3-01c6-89db-9a89005707d0\"], expected [\"GPU-0\"] as in manifest.json")
        refuse(["calibrate", self.manifest("mixed.tar.gz", lambda m: m["facts"].update(driver="570.1"))],
               "/driver: is \"580.159.04\", expected \"570.1\" as in manifest.json")
        refuse(["calibrate", self.manifest("new.tar.gz", lambda m: m["facts"].update(compute_units=200))],
               "no shipped device; give it a name by --name")
        refuse(["calibrate", self.manifest("odd.tar.gz", lambda m: m["facts"].update(gpus="two"))], "/facts/gpus")
        other = lambda name, text: text.replace(b'"first":"both"', b'"first":"both","sizes":"spred"') if name == "drawn.jsonl" else text
        refuse(["calibrate", self.archive("sizes.tar.gz", other)], "drawn.jsonl:2: /sizes: is 'spred' (did you mean 'spread'?)")
        refuse(["calibrate", str(H100), "h200"], "an archive stands alone")
        refuse(["calibrate", "h200", "--name", "node7"], "--name")
