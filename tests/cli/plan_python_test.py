"""Plans in Python: overlap.Plan and overlap.simulate, their speed, and collectives of MSCCL and MSCCL++."""
import json
import os
import pathlib
import sys
import time
import unittest

from sim_case import SimTestCase, without_clock

MODULE = pathlib.Path(os.environ["SIM"]).resolve().parent / "python"
RANKS = 3
STEP = '<step s="{}" type="{}" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>'


def ring_xml():
    """A ring all-gather: each rank sends its chunk on, then what it received."""
    blocks = "".join(f'<gpu id="{rank}" i_chunks="1" o_chunks="{RANKS}" s_chunks="0"><tb id="0" send="{(rank + 1) % RANKS}" '
                     f'recv="{(rank - 1) % RANKS}" chan="0">' + STEP.format(0, "s") + STEP.format(1, "rcs") + STEP.format(2, "r") + "</tb></gpu>"
                     for rank in range(RANKS))
    return f'<algo name="ring" nchunksperloop="{RANKS}" nchannels="1" proto="Simple" ngpus="{RANKS}" coll="allgather" inplace="1">{blocks}</algo>'


@unittest.skipUnless(list((MODULE / "overlap").glob("_overlap*.so")), "the Python module was not built (python3-dev, pybind11-dev)")
class PythonPlans(SimTestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(MODULE))
        global overlap
        import overlap

    def test_a_plan_is_simulated_as_by_the_program(self):
        plan = overlap.Plan(4, workload={"collective": "all_gather", "gemm": {"m": 8192, "n": 2560, "k": 8192, "dtype": "bf16"}})
        for rank in plan.ranks:
            plan.gemm(rank, (2048, 2560, 8192), name="own")
            came = [plan.copy(rank + d, rank, 2048 * 8192 * 2, name=f"get {d}") for d in (1, 2, 3)]
            plan.gemm(rank, (6144, 2560, 8192), after=came)
        plan.save(self.folder / "plan.json.gz")
        result = overlap.simulate(plan, "h200_4")
        self.assertEqual(len(plan), 20)
        printed = self.result("--topology", "h200_4", "--plan", "plan.json.gz")
        for one in (result, printed):
            one.pop("config")
        self.assertEqual(without_clock(result), without_clock(printed))
        self.assertEqual(overlap.simulate(plan.to_dict(), "h200_4")["makespan_us"], result["makespan_us"])
        self.assertEqual(overlap.simulate(self.folder / "plan.json.gz", "h200_4")["makespan_us"], result["makespan_us"])
        traced = overlap.simulate(plan, "h200_4", trace=self.folder / "out.json")
        self.assertEqual(traced["makespan_us"], result["makespan_us"])
        self.assertIn('"get 2"', (self.folder / "out.json").read_text(encoding="utf-8"))
        faster = overlap.simulate(plan, "h200_4", what_if={"topology.fabric.0.bandwidth_GBps": "2x"}, without=["contention", "launch"])
        self.assertLess(faster["makespan_us"], result["makespan_us"])
        plan.gemm(0, (8192, 8192, 8192))
        self.assertGreater(overlap.simulate(plan, "h200_4")["makespan_us"], result["makespan_us"])
        with self.assertRaisesRegex(overlap.UserError, "^plan: /tasks: "):
            plan.copy(1, 1, 1e6)
            overlap.simulate(plan, "h200_4")

    def test_a_thousand_simulations_are_as_fast_as_those_of_a_schedule(self):
        """8 GPUs, 8 chunks; each with another what-if would be another machine, so all are the same."""
        config = {"topology": "mi300x_8", "schedule": "hetero_fused_1d", "params": {"chunks": 8}}
        self.output("--topology", "mi300x_8", "--schedule", "hetero_fused_1d", "--set", "chunks=8", "--graph", "plan.json", "--dry-run")
        plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))

        def seconds(work):
            work()
            begin = time.process_time()
            for _ in range(1000):
                work()
            return time.process_time() - begin
        text = overlap.Plan(8)
        text._text = json.dumps(plan)
        # The least of three turns: what neighbours on the machine take is no time of ours.
        built = min(seconds(lambda: overlap.run(config)) for _ in range(3))
        read = min(seconds(lambda: overlap.simulate(text)) for _ in range(3))
        self.assertEqual(overlap.simulate(text)["makespan_us"], overlap.run(config)["makespan_us"])
        self.assertLess(read, 1.5 * built)

    def test_collectives_of_msccl(self):
        """The same ring by both formats, and by hand: in each of two steps every rank sends 1 MB to the next one."""
        (self.folder / "ring.xml").write_text(ring_xml(), encoding="utf-8")
        by_hand, came = overlap.Plan(RANKS), {}
        for step in (1, 2):
            for rank in by_hand.ranks:
                came[rank, step] = by_hand.copy(rank - 1, rank, 1e6, after=came.get(((rank - 1) % RANKS, step - 1)), transfer="push", agent="cu",
                                                copy_cus=1, prelaunched=step > 1 or None, shard=(rank - step) % RANKS)
        overlap.write_mscclpp(by_hand, self.folder / "ring.json")
        plans = [overlap.read_msccl(self.folder / "ring.xml", RANKS * 1e6), overlap.read_mscclpp(self.folder / "ring.json", RANKS * 1e6)]
        self.assertEqual(plans[0].to_dict()["tasks"], plans[1].to_dict()["tasks"])
        times = {overlap.simulate(plan, "h200_4")["makespan_us"] for plan in (*plans, by_hand)}
        self.assertEqual(len(times), 1)
        for text, message in (("<algo", "is no XML file"), ("<algo nchunksperloop='1'/>", "expected <algo> with a <gpu> of each id"),
                              (ring_xml().replace('"rcs"', '"x"'), "step type is 'x'"), (ring_xml().replace('cnt="1"', 'cnt="a"'), "cnt of <step> is 'a'"),
                              (ring_xml().replace('type="s"', 'type="nop"'), "waits for ever")):
            (self.folder / "bad.xml").write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(overlap.UserError, message):
                overlap.read_msccl(self.folder / "bad.xml", 1e6)
        # Flags beside the data: twice the bytes.
        (self.folder / "ll.xml").write_text(ring_xml().replace("Simple", "LL"), encoding="utf-8")
        sent = [sum(task["bytes"] for task in overlap.read_msccl(self.folder / name, RANKS * 1e6).to_dict()["tasks"]) for name in ("ring.xml", "ll.xml")]
        self.assertEqual(sent, [RANKS * 2 * 1e6, RANKS * 2 * 2e6])
        (self.folder / "bad.json").write_text("{}", encoding="utf-8")
        with self.assertRaisesRegex(overlap.UserError, "is no MSCCL.. execution plan"):
            overlap.read_mscclpp(self.folder / "bad.json", 1e6)

    def test_operations_of_mscclpp(self):
        """What each operation of a block of rank 0 moves: bytes to rank 0, bytes to rank 1, summed, and copied locally."""
        local, far = {"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}
        packet, memory = {"type": "s", "index": 0, "size": 1}, {"channel_type": "memory"}
        ids = {**memory, "channel_ids": [0]}
        wait, signal = {"name": "wait", **ids}, {"name": "signal", **ids}
        put = {"name": "put", "src_buff": [local], "dst_buff": [far], **memory}
        received = {"name": "ppkt", "src_buff": [local], "dst_buff": [far], **memory}
        half = {"tbg_info": {"tb_id": 0, "tbg_size": 2}}
        for ops, of_peer, moved in (
                ([put, signal], [wait], (0, 1, 0, 0)),
                ([{**put, "name": "pws", **ids}], [wait], (0, 1, 0, 0)),
                ([{**put, **half}], [], (0, 0.5, 0, 0)),
                ([{"name": "get", "src_buff": [far], "dst_buff": [local], **memory}], [], (1, 0, 0, 0)),
                ([{"name": "copy", "src_buff": [local], "dst_buff": [packet]}], [], (0, 0, 0, 1)),
                ([{"name": "re", "src_buff": [local, local, packet], "dst_buff": [local]}], [], (0, 0, 1, 0)),
                ([{"name": "rre", "src_buff": [local, far], "dst_buff": [local], **memory}], [], (1, 0, 1, 0)),
                ([{"name": "rres", "src_buff": [local, far], "dst_buff": [local, far], **memory}], [], (1, 1, 1, 0)),
                ([{"name": "ppkt", "src_buff": [local], "dst_buff": [far], **memory}], [], (0, 2, 0, 0)),
                ([{"name": "upkt", "src_buff": [packet], "dst_buff": [local]}], [received], (2, 0, 0, 1)),
                ([{"name": "respkt", "src_buff": [local, packet], "dst_buff": [local, far], **memory}], [received], (2, 2, 1, 0)),
                ([{"name": "pipeline", "iter_context": {"unit_size": 300000, "num_chunks": 1}, "ops": [put]}], [], (0, 1, 0, 0)),
                ([{"name": "sem_release", "semaphore_ids": [0]}, {"name": "sem_acquire", "semaphore_ids": [0]}, put], [], (0, 1, 0, 0)),
                ([{"name": "rlxsignal", **ids}, {"name": "rlxwait", **ids}, {"name": "nop"}], [{"name": "rlxsignal", **ids}, put], (1, 0, 0, 0))):
            with self.subTest(ops=[op["name"] for op in ops]):
                tasks = self.execution(ops, of_peer).to_dict()["tasks"]
                of = lambda kind, key="gpu", rank=0: sum(task["bytes"] for task in tasks if task["kind"] == kind and task[key] == rank)  # noqa: E731
                self.assertEqual((of("copy", "dst"), of("copy", "dst", 1), of("reduce"), of("local_copy")), tuple(1e6 * chunks for chunks in moved))
        for ops, message in (([wait], r"operation 0 \(wait\) of block 0 of gpu 0 waits for ever"), ([{"name": "x"}], "operation 'x' is not known"),
                             ([{"name": "glres"}], "goes through the switch")):
            with self.assertRaisesRegex(overlap.UserError, message):
                self.execution(ops, [])

    def execution(self, *ops):
        """The plan of an execution plan of two ranks, with one chunk of 1 MB, and a block each."""
        gpus = [{"id": rank, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 1, "semaphores": [{"init_value": 0}],
                 "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
                 "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
                 "threadblocks": [{"id": 0, "ops": ops[rank], "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                                   "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}]}]} for rank in (0, 1)]
        (self.folder / "ops.json").write_text(json.dumps({"name": "ops", "collective": "allreduce", "gpus": gpus}), encoding="utf-8")
        return overlap.read_mscclpp(self.folder / "ops.json", 1e6)

    def test_a_plan_of_a_file_has_every_task(self):
        """What is written once for each rank, one by one: the same run. An all-gather that has only copies becomes an execution plan."""
        self.output("--topology", "h200_4", "--schedule", "hetero_fused_1d", "--set", "chunks=2", "--graph", "plan.json.gz", "--dry-run")
        whole = overlap.Plan.load(self.folder / "plan.json.gz")
        self.assertFalse([task for task in whole.to_dict()["tasks"] if "each_rank" in task])
        self.assertEqual(overlap.simulate(whole)["makespan_us"], self.result("--plan", "plan.json.gz")["makespan_us"])
        for task in whole.tasks:
            if task["kind"] == "copy":
                task["bytes"] /= 2
        with self.assertRaisesRegex(overlap.UserError, "as many bytes as the copy has"):
            overlap.simulate(whole)
        whole.drop_places()
        self.assertLess(overlap.simulate(whole)["makespan_us"], overlap.simulate(self.folder / "plan.json.gz")["makespan_us"])
        gathers = [{"name": "gather", "type": "collective", "collective": "all_gather", "bytes": 1e8}]
        self.file("list.json", {"name": "list", "operators": gathers})
        self.output("--topology", "h200_4", "--workload", "list.json", "--schedule", "concurrent", "--graph", "gather.json", "--dry-run")
        overlap.write_mscclpp(overlap.Plan.load(self.folder / "gather.json"), self.folder / "execution.json")
        tasks = overlap.read_mscclpp(self.folder / "execution.json", 1e8).to_dict()["tasks"]
        self.assertEqual([sum(task["bytes"] for task in tasks if task["dst"] == rank) for rank in range(4)], [0.75e8] * 4)
        with self.assertRaisesRegex(overlap.UserError, "is no copy of a shard"):
            overlap.write_mscclpp(whole, self.folder / "execution.json")
        (self.folder / "bad.json").write_text("[]", encoding="utf-8")
        with self.assertRaisesRegex(overlap.UserError, "is no plan"):
            overlap.Plan.load(self.folder / "bad.json")
