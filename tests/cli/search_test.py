"""'sim search' finds a schedule that is never slower than the listed ones, and writes it as a plan."""
import json

from sim_case import ROOT, SimTestCase

PAIR = ["--topology", "h200_2", "--gemm", "10240x1280x8192"]
FAST = ["--draws", "50"]


class Search(SimTestCase):
    def search(self, *flags):
        return self.result("search", *PAIR, *FAST, *flags)

    def test_the_plan_is_what_the_result_says(self):
        found = self.search("--save", "plan.json.gz", "--seed", "3")
        self.assertTrue(found["found"])
        run = json.loads(self.output("--plan", "plan.json.gz", "--format", "json"))
        self.assertEqual(run["makespan_us"], found["makespan_us"])
        listed = self.result("advise", *PAIR, "--kernels", "library")["candidates"][0]
        self.assertLessEqual(found["listed_us"], listed["makespan_us"])
        self.assertLess(found["makespan_us"], found["listed_us"])
        self.assertAlmostEqual(sum(one["saved_us"] for one in found["reasons"]), found["listed_us"] - found["makespan_us"], places=6)
        self.assertGreaterEqual(found["makespan_us"], found["ideal_us"])
        self.assertAlmostEqual(found["gain_pct"], 100 * (found["listed_us"] / found["makespan_us"] - 1))
        self.assertEqual(found["robust"], found["robust_gain_pct"] > 0)
        if found["ended"] == "converged":
            self.assertEqual(self.search("--seed", "3"), found)

    def test_other_pairs(self):
        for pair in (["--collective", "reduce_scatter", "--order", "gemm_first"], ["--collective", "all_reduce", "--order", "gemm_first"]):
            found = self.search(*pair, "--save", "plan.json")
            self.assertLessEqual(found["makespan_us"], found["listed_us"])
            self.assertEqual(json.loads(self.output("--plan", "plan.json", "--format", "json"))["makespan_us"], found["makespan_us"])

    def test_limits_hold(self):
        found = self.search("--executable", "replay", "--agent", "dma", "--save", "plan.json")
        plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
        self.assertIn("buffers", plan)
        tasks = [task for line in plan["tasks"] for task in line.get("each_rank", [line])]
        self.assertEqual({task["stream"] for task in tasks if task["kind"] == "gemm"}, {"compute"})
        self.assertEqual({task.get("agent", "dma") for task in tasks if task["kind"] == "copy"}, {"dma"})
        self.assertFalse(any("gemm_cus" in task for task in tasks))
        self.assertEqual(self.search("--staging", "1", "--budget", "2")["staging_MB"], 0)
        one = self.search("--vary", "sizes")
        self.assertLessEqual({reason["dimension"] for reason in one["reasons"]}, {"start", "sizes"})

    def test_text(self):
        text = self.output("search", *PAIR, *FAST)
        self.assertRegex(text, r"\nbest listed: \S+ +[0-9.]+ us\nfound +[0-9.]+ us\n")
        self.assertRegex(text, r"nine of ten draws of the machine gain -?[0-9.]+ % or more")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_mistakes(self):
        self.assert_refused(["search", "--topology", "h200_1", "--gemm", "10240x1280x8192"], "one GPU")
        self.assert_refused(["search", *PAIR, "--vary", "size"], "did you mean 'sizes'?")
        self.assert_refused(["search", *PAIR, "--collective", "all_to_all"], "no pieces are known", "gemm > all_reduce")
        self.assert_refused(["search", "--topology", "h200_2", "--workload", "llama3_70b_mlp_layer"], "no pieces are known")
        self.assert_refused(["search", *PAIR, "--save", "none/plan.json"], "none/plan.json")
        self.assert_refused(["search", "--topology", "h200_2", "--gemm", "1x4096x4096"], "less than one for each of 2 GPUs")
