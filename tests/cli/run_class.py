"""Runs one unittest class, named as module.Class, for CTest. Exit 77 where every test of it was skipped, which CTest lists as
"Skipped"; a line "skipped: <how many> of <how many>: <why>" for each reason, also where others ran. No test at all is a failure."""
import collections
import sys
import unittest

SKIPPED_CODE = 77


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def run(name):
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    count = suite.countTestCases()
    result = unittest.TextTestRunner(resultclass=Result).run(suite)
    reasons = collections.Counter()
    for test, why in result.skipped:
        # A class that skips in setUpClass is one entry, which is no test case.
        reasons[" ".join(why.split())] += 1 if isinstance(test, unittest.TestCase) else count
    for why, skipped in reasons.items():
        print(f"skipped: {skipped} of {count}: {why}")
    if not count:
        print(f"{name} has no tests")
    if not count or not result.wasSuccessful():
        return 1
    return SKIPPED_CODE if reasons and not result.passed else 0


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(run(sys.argv[1]))
