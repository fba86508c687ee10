"""Lists of operators whose pairs schedules cut: every command that takes a run config takes them."""
import csv
import json

from sim_case import SimTestCase, without_clock

LIST = {"topology": "h200_4", "schedule": "hetero_fused_1d", "workload": "llama3_70b_mlp_layer", "params": {"chunks": 2}}
CHOSEN = {"topology": "h200_4", "schedule": "concurrent", "workload": "llama3_70b_mlp_layer",
          "schedules": {"gate_up": {"schedule": "flag_gated", "params": {"chunks": 4}},
                        "down": {"schedule": "uniform_fused_1d", "params": {"chunks": 2}}}}


class Lists(SimTestCase):
    def test_flags_batch_and_config_give_one_result(self):
        flags = self.result("--topology", "h200_4", "--schedule", "hetero_fused_1d", "--workload", "llama3_70b_mlp_layer",
                            "--set", "chunks=2")
        config = self.result("--config", self.file("run.json", LIST))
        lines = self.output("batch", "-", stdin=json.dumps(LIST) + "\n" + json.dumps(CHOSEN) + "\n").splitlines()
        self.assertEqual(without_clock(config), without_clock(flags))
        self.assertEqual(without_clock(json.loads(lines[0])), without_clock(flags))
        resolved = json.loads(lines[1])["config"]["schedules"]
        self.assertEqual(resolved["gate_up"]["params"]["transfer"], "pull")
        self.assertEqual(resolved["down"]["params"]["transfer"], "push")

    def test_dry_run_reads_back(self):
        dry = self.output("--config", self.file("run.json", CHOSEN), "--dry-run")
        self.assertEqual(json.loads(dry)["graph"]["tasks"], self.result("--config", "run.json")["tasks"])
        self.assertEqual(without_clock(self.result("--config", self.file("dry.json", dry))),
                         without_clock(self.result("--config", "run.json")))

    def test_groups(self):
        gather = {"name": "in", "type": "collective", "collective": "all_gather", "bytes": 1 << 28,
                  "group": {"size": 2, "stride": 2}}
        run = {**LIST, "schedule": "serial", "workload": {"name": "mine", "operators": [gather]}, "params": {}}
        self.file("groups.json", run)
        # Each GPU gets one of two parts instead of three of four.
        halves = self.result("--config", "groups.json")["makespan_us"]
        del gather["group"]
        self.assertLess(halves, self.result("--config", self.file("all.json", run))["makespan_us"])
        gather["group"] = {"size": 3}
        self.assert_refused(["--config", self.file("bad.json", run)],
                            "/group of operator 'in' of workload 'mine': groups of 3 GPUs")
        gather["group"] = {"size": 0}
        self.assert_refused(["--config", self.file("bad.json", run)], "/workload/operators/0/group/size")

    def test_pairs_that_run_whole_are_named_once(self):
        run = [*("--topology", "h200_4", "--schedule", "t3", "--workload", "llama3_70b_mlp_layer")]
        done = self.sim(*run, "--format", "json")
        said = "pairs that run whole: ag > gate_up (t3 does not serve all_gather > gemm)"
        self.assertEqual(json.loads(done.stdout)["notes"][0], said)
        self.assertEqual(done.stderr.count(said), 1)
        self.assertEqual(json.loads(self.output(*run, "--dry-run"))["graph"]["note"], said)
        text = self.sim(*run).stdout
        self.assertIn("\npairs      down: t3 chunks=", text)
        self.assertIn("\nnote       pairs that run whole: ag > gate_up", text)

    def test_sweeps_vary_schedules_and_choices(self):
        self.file("sweep.json", {"schema": 1, "name": "sweep",
                                 "base": {"topology": "h200_4", "workload": "llama3_70b_mlp_layer"},
                                 "axes": {"schedule": ["serial", "ring_chunked"],
                                          "schedules": [{}, {"down": {"schedule": "t3"}}], "params.chunks": [2, 4]}})
        self.output("sweep", "sweep.json", "--out", "out")
        rows = list(csv.DictReader((self.folder / "out" / "points.csv").open(encoding="utf-8")))
        self.assertEqual([row["error"] for row in rows], 6 * [""])  # serial takes no chunks
        for schedule in ("serial", "ring_chunked"):
            of_it = [row for row in rows if row["schedule"] == schedule]
            plain, chosen = ({row["makespan_us"] for row in of_it if ("t3" in row["schedules"]) == t3} for t3 in (False, True))
            self.assertTrue(plain and chosen and not plain & chosen, schedule)
        self.assertEqual(len({row["serial_us"] for row in rows}), 1)
        self.assertEqual(sum("t3" in row["schedules"] for row in rows), 3)


class ListsOfPipelines(SimTestCase):
    """Two stages of two GPUs each; the pairs of a stage are on its ranks."""

    @staticmethod
    def stages(micro_batches, columns=(1024, 8192)):
        operators = []
        for number in range(micro_batches):
            for stage in (0, 1):
                ranks, name = [2 * stage, 2 * stage + 1], f"{number}_{stage}"
                operators += [
                    {"name": f"gather_{name}", "type": "collective", "collective": "all_gather", "bytes": 1 << 27, "dtype": "bf16",
                     "ranks": ranks, "needs": [f"send_{number}"] if stage else []},
                    {"name": f"gemm_{name}", "type": "gemm", "m": 8192, "n": columns[stage], "k": 8192, "dtype": "bf16", "ranks": ranks,
                     "needs": [f"gather_{name}"]}]
                if stage == 0:
                    operators.append({"name": f"send_{number}", "type": "send", "bytes": 1000000, "from": [0, 1], "to": [2, 3],
                                      "needs": [f"gemm_{name}"]})
        return {"name": "stages", "order": "data", "operators": operators}

    def makespan(self, workload, **keys):
        return self.result("--config", self.file("run.json", {"topology": "h200_4", "workload": workload, **keys}))["makespan_us"]

    def test_a_pair_of_some_ranks_takes_what_it_takes_alone(self):
        pair = {"schedule": "ring_chunked", "params": {"chunks": 2}}
        some = self.stages(1)["operators"][:2]
        of_groups = [{key: value for key, value in op.items() if key != "ranks"} for op in some]
        of_groups[0]["group"] = {"size": 2}
        for order in ("data", "program"):
            alone, both = (self.makespan({"name": "pair", "order": order, "operators": operators}, schedule="concurrent",
                                         schedules={"gemm_0_0": pair}) for operators in (some, of_groups))
            self.assertAlmostEqual(alone, both, delta=1e-6 * both)

    def test_pieces_keep_their_order_where_operators_do_not(self):
        # Both streams run what is there first; the pieces of a pair are those of a program, which has nothing else to run.
        pairs = {name: {"schedule": schedule, "params": params} for name, schedule, params in (
            ("gemm_0_0", "hetero_unfused_1d", {"chunks": 4}), ("gemm_0_1", "uniform_fused_1d", {"chunks": 2}))}
        data, program = (self.makespan({**self.stages(1), "order": order}, schedule="concurrent", schedules=pairs)
                         for order in ("data", "program"))
        self.assertAlmostEqual(data, program, delta=1e-9 * program)

    def test_pairs_are_cut_where_no_bubble_hides_them(self):
        whole = self.makespan(self.stages(4), schedule="concurrent")
        advice = json.loads(self.output("advise", "--topology", "h200_4", "--workload", self.file("stages.json", {
            "schema": 1, "description": "Two stages.", "source": "made for a test", **self.stages(4)}), "--kernels", "library",
            "--format", "json"))["pairs"]
        chosen = {choice["pair"]: choice["schedule"] for choice in advice["choices"]}
        # The first stage is idle for most of the time: only its first micro-batch, which the second stage waits for, gains.
        self.assertEqual([chosen[f"gather_{number}_0 > gemm_{number}_0"] == "serial" for number in range(4)], [False, True, True, True])
        for number in range(4):
            self.assertNotEqual(chosen[f"gather_{number}_1 > gemm_{number}_1"], "serial")
        self.assertLess(advice["makespan_us"], 0.95 * whole)
        config = advice["run"]["config"]
        self.assertEqual(self.result("--config", self.file("chosen.json", config))["makespan_us"], advice["makespan_us"])
