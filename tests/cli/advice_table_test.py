"""'sim advise --table': which schedule to take by tokens, as JSON, as a C++ header and in Python."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from sim_case import SimTestCase

GEMMS = {"gemms": [{"name": "gate_up", "n": 7168, "k": 8192, "dtype": "bf16", "collective": "all_gather"},
                   {"name": "down", "n": 8192, "k": 3584, "dtype": "bf16", "collective": "all_reduce"}]}
MAIN = """#include "table.hpp"
#include <cstdio>
#include <initializer_list>
int main() {
    for (int gemm = 0; gemm < overlap_table::gemm_count; ++gemm)
        for (long tokens : {1L, 2L, 3000L, 4096L, 100000L}) {
            double us = 0;
            const auto choice = overlap_table::choose(gemm, tokens, &us);
            std::printf("%s %s %.6f\\n", choice.schedule ? choice.schedule : "none", choice.params ? choice.params : "", us);
        }
}
"""


class AdviceTable(SimTestCase):
    def test_table_header_and_python_agree(self):
        self.file("gemms.json", GEMMS)
        table = json.loads(self.output("advise", "--table", "--gemms", "gemms.json", "--tp", "2", "--topology", "h200_2", "--kernels", "library",
                                       "--header", "table.hpp"))
        self.file("table.json", table)
        bucket = table["buckets"].index(4096)
        for gemm, workload in zip(table["gemms"], GEMMS["gemms"]):
            order = "gemm_first" if workload["collective"] == "all_reduce" else "collective_first"
            advice = self.result("advise", "--topology", "h200_2", "--kernels", "library", "--gemm", f"4096x{gemm['n']}x{gemm['k']}", "--dtype", "bf16",
                                 "--collective", workload["collective"], "--order", order)
            fastest = min(choice["times_us"][bucket] for choice in gemm["choices"])
            presets = [one["makespan_us"] for one in advice.get("presets", []) if not one.get("own_kernel")]
            self.assertAlmostEqual(fastest, min([advice["candidates"][0]["makespan_us"], *presets]), places=3)
        module = pathlib.Path(os.environ["SIM"]).resolve().parent / "python"
        if not list((module / "overlap").glob("_overlap*.so")) or shutil.which("c++") is None:
            self.skipTest("no Python module or no compiler")
        sys.path.insert(0, str(module))
        import overlap
        self.file("main.cpp", MAIN)
        subprocess.run(["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "main.cpp", "-o", "main"], cwd=self.folder, check=True)
        rows = subprocess.run(["./main"], cwd=self.folder, check=True, capture_output=True, text=True).stdout.splitlines()
        path = self.folder / "table.json"
        for row, (name, tokens) in zip(rows, [(one["name"], tokens) for one in table["gemms"] for tokens in (1, 2, 3000, 4096, 100000)]):
            schedule, rest = row.split(" ", 1)
            if schedule == "none":
                self.assertRaisesRegex(overlap.UserError, "no schedule", overlap.choose, name, tokens, path)
                continue
            params, us = rest.rsplit(" ", 1)
            chosen = overlap.choose(name, tokens, path)
            self.assertEqual((chosen["schedule"], chosen["params"]), (schedule, json.loads(params)))
            self.assertAlmostEqual(chosen["time_us"], float(us), places=3)
        self.assertRaisesRegex(overlap.UserError, "has no GEMM 'up'", overlap.choose, "up", 1, path)

    def test_mistakes(self):
        self.file("gemms.json", GEMMS)
        table = ["advise", "--table", "--topology", "h200_2"]
        self.assert_refused([*table, "--gemms", "gemms.json", "--tp", "8"], "--tp is 8", "has 2 GPUs")
        self.assert_refused(table, "--gemms")
        self.assert_refused([*table, "--gemms", self.file("no.json", {"gemms": []})], "/gemms: is empty")
        wrong = self.file("wrong.json", {"gemms": [{**GEMMS["gemms"][0], "dtype": "bf61"}]})
        self.assert_refused([*table, "--gemms", wrong], "/gemms/0/dtype", "bf16")
        self.assert_refused([*table, "--gemms", self.file("twice.json", {"gemms": GEMMS["gemms"][:1] * 2})], "/gemms/1/name", "a second time")
        self.assert_refused([*table, "--gemms", "gemms.json", "--format", "csv"], "--format csv", "JSON")
