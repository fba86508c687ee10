"""What the tests of the programs for GPUs share: a program built for a platform and run where no GPU is to be seen."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ["/usr/bin/clang++-19", "/usr/lib/llvm-19/bin/clang-offload-bundler", "/usr/lib/llvm-19/bin/lld",
          "/usr/include/hip/hip_runtime.h", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode/hip.bc"]
# What a program must hold: code for every architecture, and the library that its GEMMs call.
HOLDS = {"amd": [b"amdgcn-amd-amdhsa--gfx90a", b"amdgcn-amd-amdhsa--gfx942", b"rocblas_gemm_ex"],
         "nvidia": [b"sm_90", b"cublasLtMatmul"]}



def what_is_missing(platform):
    if platform == "nvidia":
        found = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
        return None if found else "no nvcc (CUDA toolkit) on PATH"
    if pathlib.Path("/opt/rocm/bin/hipcc").exists():
        return None
    missing = [path for path in DEBIAN if not pathlib.Path(path).exists()]
    return f"no {', '.join(missing)}; scripts/setup --all installs what is missing" if missing else None


class ProgramTestCase(unittest.TestCase):
    program_name = ""  # of the program, set by the subclass
    platform = "amd"

    @classmethod
    def setUpClass(cls):
        subprocess.run([ROOT / "scripts" / "build", f"hip_{cls.platform}", cls.program_name], check=True)
        cls.program = ROOT / "build" / f"hip_{cls.platform}" / "bin" / cls.program_name

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refusal(self, *args):
        """The one line on standard error of a run that ends with exit code 2 and leaves nothing behind."""
        before = sorted(self.folder.iterdir())
        hidden = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
        done = subprocess.run([self.program, *args], cwd=self.folder, env={**os.environ, **hidden}, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]+\n\Z")
        self.assertEqual(sorted(self.folder.iterdir()), before)
        return done.stderr.rstrip("\n")

    def check_architectures(self):
        program = self.program.read_bytes()
        for part in HOLDS[self.platform]:
            self.assertIn(part, program)

    def check_refused_arguments(self, cases):
        for args, message in cases:
            with self.subTest(args=args):
                self.assertTrue(self.refusal(*args).startswith(message), args)


def run_tests(test_case):
    """Exit 77, with the reason, where the compiler of the platform that argv names is not installed."""
    test_case.platform = sys.argv[1]
    if reason := what_is_missing(test_case.platform):
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
