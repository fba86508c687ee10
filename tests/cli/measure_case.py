"""What the tests of scripts/measure share: a measurement by programs that stand for microbench and replay."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile

from sim_case import ROOT, SimTestCase

HIP = ROOT / "models" / "calibration" / "hip"
FAKE = pathlib.Path(__file__).resolve().parent / "fake_gpus.py"
sys.path[:0] = [str(HIP), str(HIP / "cases")]


class MeasureTestCase(SimTestCase):
    def start(self, *args, gpus=1, fake=True, **variables):
        programs = ["--microbench", FAKE, "--replay", FAKE] if fake else []
        environment = {**os.environ, "FAKE_GPUS": str(gpus), **{name: str(value) for name, value in variables.items()}}
        return subprocess.Popen([str(word) for word in (ROOT / "scripts" / "measure", *args, *programs)], cwd=self.folder,
                                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8")

    def measure(self, *args, **options):
        """(exit code, standard output, standard error)"""
        with self.start(*args, **options) as program:
            out, error = program.communicate(timeout=120)
        return program.returncode, out, error

    def archived(self, name="node"):
        """{file in the archive: text}, in the archive's order."""
        with tarfile.open(self.folder / f"{name}.tar.gz") as tar:
            return {entry.name.removeprefix(f"{name}/"): tar.extractfile(entry).read().decode() for entry in tar}

    def manifest(self, name="node"):
        return json.loads(self.archived(name)["manifest.json"])

    def rows(self, file, name="node"):
        return [json.loads(line) for line in self.archived(name)[file].splitlines()]
