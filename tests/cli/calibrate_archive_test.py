"""sim calibrate ARCHIVE: a machine that scripts/measure measured becomes files that every command takes."""
import io
import json
import tarfile

from sim_case import ROOT, SimTestCase

H100 = ROOT / "traces/h100_1/three_minutes.tar.gz"


class CalibrateArchive(SimTestCase):
    def archive(self, name, change):
        """H100's archive with files changed by `change(name, content)`, which may return None to leave one out."""
        with tarfile.open(H100) as old, tarfile.open(self.folder / name, "w:gz") as new:
            for member in old.getmembers():
                content = change(member.name.split("/", 1)[1], old.extractfile(member).read())
                if content is not None:
                    entry = tarfile.TarInfo(member.name)
                    entry.size = len(content)
                    new.addfile(entry, io.BytesIO(content))
        return name

    def manifest(self, name, change):
        def changed(file, content):
            if file != "manifest.json":
                return content
            manifest = json.loads(content)
            change(manifest)
            return json.dumps(manifest).encode()
        return self.archive(name, changed)

    def test_a_new_machine_is_usable_at_once_and_says_where_its_numbers_are_from(self):
        said = self.output("calibrate", str(H100), "--name", "node7", "--out", "out")
        written = [file for file in self.files() if file.endswith(".json")]
        self.assertEqual(written, ["out/calibrations/node7.json", "out/devices/node7.json", "out/topologies/node7_1.json"])
        for part in ("not measured: two_gpus: skipped: needs 2 GPUs", "in no fit, so what to expect", "GEMMs of 50 us"):
            self.assertIn(part, said)
        device = json.loads((self.folder / "out/devices/node7.json").read_text())
        self.assertEqual(device["like"], "h200")
        self.assertIn("what the driver says", device["compute_units"]["source"])
        self.assertIn("latency stream_hop less kernels", device["launch"]["dependency_us"]["source"])
        self.assertIn("estimate: value of h200", device["peak_TFLOPS"]["bf16"]["source"])
        fits = json.loads((self.folder / "out/calibrations/node7.json").read_text())
        classes = {one: errors for one, errors in fits["gemm"]["bf16"]["provenance"]["classes"].items()}
        unseen = classes["GEMM, families in no fit"]
        self.assertLess(unseen["mean_error_held_out_pct"], 4)  # asked of an H100
        self.assertLess(unseen["p90_error_held_out_pct"], 10)
        # A shape that was measured takes its time; its neighbour the model's.
        for shape in ("8192x2560x8192", "8190x2560x8192"):
            cost = self.output("cost", "--topology", "out/topologies/node7_1.json", "--gemm", shape, "--format", "json")
            self.assertIn("cuBLASLt 13.1.0", cost)

    def test_a_shipped_device_keeps_what_was_not_measured(self):
        self.output("calibrate", str(H100), "--out", "out")
        written = [file for file in self.files() if file.endswith(".json")]
        self.assertEqual(written, ["out/calibrations/h100.json", "out/devices/h100.json"])
        device = json.loads((self.folder / "out/devices/h100.json").read_text())
        shipped = json.loads((ROOT / "configs/devices/h100.json").read_text())
        self.assertEqual(device["dma"]["engine_GBps"], shipped["dma"]["engine_GBps"])
        self.assertNotIn("cu_GBps", device["copy_kernel"])  # reads and writes are fitted apart

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
               "/device: is 'NVIDIA H100 80GB HBM3', expected 'NVIDIA H200' as in manifest.json")
        refuse(["calibrate", self.manifest("new.tar.gz", lambda m: m["facts"].update(compute_units=200))],
               "no shipped device; give it a name by --name")
        refuse(["calibrate", self.manifest("odd.tar.gz", lambda m: m["facts"].update(gpus="two"))], "/facts/gpus")
        refuse(["calibrate", str(H100), "h200"], "an archive stands alone")
        refuse(["calibrate", "h200", "--name", "node7"], "--name")
