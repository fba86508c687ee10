"""The GPU microbenchmark is built without a GPU, says so when it is run, and refuses bad lists of cases.

Usage: microbench_test.py amd|nvidia
Exit 77, with the reason, where the compiler is not installed. GPUs that are there are hidden from the program.
"""
import sys

from hip_program import ROOT, ProgramTestCase, run_tests

sys.path.insert(0, str(ROOT / "models" / "calibration" / "hip"))

from measure import pieces  # noqa: E402
import as_plans  # noqa: E402

CASES = ROOT / "models" / "calibration" / "hip" / "cases"
KINDS = "allowed: gemm, local_copy, memory, latency, residency, sustained, energy"
WHOLE = "allowed: a whole number from 0"
BYTES = "allowed: bytes, such as 4096, 4KiB, 16MiB, 1GiB"
MANY = ",".join(["1"] * 100)

# A list, the line that is wrong (0: the list as a whole), and what the message says.
BAD_LISTS = [
    ("gem m=1 n=1 k=1\n", 1, "unknown kind 'gem'; " + KINDS),
    ("# fine so far\ngemm m=1 n=1 k=1\n\nGEMM m=1\n", 4, "unknown kind 'GEMM'; " + KINDS),
    ("gemm m=1 n=1 k=1 batch=2\n", 1, "unknown key 'batch' of gemm; allowed: m, n, k, "),
    ("gemm m=1 n=1 k=1 =2\n", 1, "unknown key '' of gemm; allowed: m, n, k, "),
    ("gemm m=1 n=1 k\n", 1, "'k' is not key=value or key=value,value"),
    ("gemm m=1 n=1 k = 1\n", 1, "'k' is not key=value or key=value,value"),
    ("gemm m=1 n=1 k=1 m=2\n", 1, "key 'm' is given twice"),
    ("gemm m=1 n=1\n", 1, "gemm needs k=…; " + WHOLE),
    ("gemm m=x n=1 k=1\n", 1, "m=x: " + WHOLE),
    ("gemm m=-1 n=1 k=1\n", 1, "m=-1: " + WHOLE),
    ("gemm m=1.5 n=1 k=1\n", 1, "m=1.5: " + WHOLE),
    ("gemm m=1e3 n=1 k=1\n", 1, "m=1e3: " + WHOLE),
    ("gemm m=nan n=1 k=1\n", 1, "m=nan: " + WHOLE),
    ("gemm m=99999999999999999999 n=1 k=1\n", 1, "m=99999999999999999999: " + WHOLE),
    ("gemm m=4KiB n=1 k=1\n", 1, "m=4KiB: " + WHOLE),
    ("gemm m=1,,2 n=1 k=1\n", 1, "m=: " + WHOLE),
    ("gemm m=1, n=1 k=1\n", 1, "m=: " + WHOLE),
    ("gemm m=1 n=1 k=1 dtype=bf17\n", 1, "dtype=bf17: allowed: bf16, "),
    ("local_copy size=3KB\n", 1, "size=3KB: " + BYTES),
    ("local_copy size=3kiB\n", 1, "size=3kiB: " + BYTES),
    ("local_copy size=KiB\n", 1, "size=KiB: " + BYTES),
    ("local_copy size=1.5MiB\n", 1, "size=1.5MiB: " + BYTES),
    ("local_copy size=9999999999999GiB\n", 1, "size=9999999999999GiB: " + BYTES),
    ("\x01\x02\n", 1, "holds bytes that are not text"),
    ("gemm m=1 n=1 k=1\ngemm \0\n", 2, "holds bytes that are not text"),
    (f"gemm m={MANY} n={MANY} k={MANY}\n", 1, "more than 100000 cases"),
    ("", 0, "no cases; a line is: kind key=value"),
    ("# nothing\n\n   # but comments\n", 0, "no cases; a line is: kind key=value"),
]
BAD_ARGUMENTS = [
    ([], "usage: microbench CASES"),
    (["no_such.cases"], "no_such.cases: cannot be read"),
    (["."], ".: is a directory, expected a list of cases"),
    (["good.cases", "good.cases"], "unknown argument good.cases; usage: "),
    (["good.cases", "--pases", "2"], "unknown argument --pases; usage: "),
    (["good.cases", "--passes"], "--passes needs a value; usage: "),
    (["good.cases", "--passes", "0"], "--passes 0: allowed: 1, 2, 3"),
    (["good.cases", "--seconds", "0"], "--seconds 0: allowed: 1, 2, 3"),
    (["good.cases", "--machine"], "usage: microbench CASES"),
    (["good.cases", "--arena-GiB", "1e3"], "--arena-GiB 1e3: allowed: 1, 2, 3"),
    (["good.cases", "--only", "latency"], "--only latency: the list has no case of that kind"),
]


class Microbench(ProgramTestCase):
    program_name = "microbench"

    def setUp(self):
        super().setUp()
        (self.folder / "good.cases").write_text("gemm m=1 n=1 k=1\n")

    def test_is_built_for_every_architecture(self):
        self.check_architectures()

    def test_says_that_there_is_no_gpu(self):
        lists = sorted(CASES.glob("*.cases"))
        self.assertIn("smoke.cases", [path.name for path in lists])
        for path in lists:  # all of them are read without complaint first
            self.assertRegex(self.refusal(path, "--out", "out.jsonl"), "^no GPU: .")

    def test_reads_the_lists_of_measure(self):
        for gpus, units in [(1, 132), (2, 104), (4, 64), (8, 304), (16, 228)]:
            facts = {"gpus": gpus, "compute_units": units, "peer_access": [[1] * gpus] * gpus}
            lines, _, _ = pieces.make(facts, 24, 1, "none here")
            for file, cases in lines.items():
                cases = [line for line in cases if line.split()[0] not in as_plans.PARTS]
                if not cases:
                    continue
                (self.folder / "of.cases").write_text("\n".join(cases) + "\n")
                with self.subTest(gpus=gpus, file=file):
                    self.assertRegex(self.refusal("of.cases", "--seconds", "3"), "^no GPU: .")

    def test_says_that_it_has_no_machine_to_describe(self):
        self.assertRegex(self.refusal("--machine", "--out", "machine.json"), "^no GPU: .")

    def test_refuses_bad_lists(self):
        for text, line, message in BAD_LISTS:
            with self.subTest(text=text[:60]):
                (self.folder / "bad.cases").write_text(text)
                place = f"bad.cases:{line}: " if line else "bad.cases: "
                said = self.refusal("bad.cases")
                self.assertTrue(said.startswith(place), said)
                self.assertIn(message, said)

    def test_refuses_bad_arguments(self):
        self.check_refused_arguments(BAD_ARGUMENTS)


if __name__ == "__main__":
    run_tests(Microbench)
