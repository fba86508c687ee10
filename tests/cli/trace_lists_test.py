"""A trace as a workload: it gives the recorded iteration back, and says what schedules would gain in it."""
import json
import tarfile

from sim_case import ROOT
from trace_case import NCCL, NVJET, TraceTestCase, event, gathered_pair, kineto


class RecordedLists(TraceTestCase):
    """A trace as a workload gives the recorded iteration back."""

    def run_again(self, *args, topology, most=0.02):
        text, case = self.imported(*args, "--out-workload", "list.json")
        done = json.loads(self.sim("--topology", topology, "--schedule", "concurrent", "--workload", "list.json", "--format", "json").stdout)
        recorded = case.get("recorded_makespan_us", case["makespan_us"])
        self.assertLess(abs(done["makespan_us"] / recorded - 1), most, args)
        return text, done

    def test_shipped_recordings(self):
        for machine, folder in (("h200_2", "h200_2/profiler"), ("h200_4", "h200_4/profiler"), ("h200_2", "h200_2/profiler_symm_mem"),
                                ("h200_2", "h200_2/pytorch/fsdp.fsdp_none.json.gz"), ("h200_2", "h200_2/pytorch/fsdp.fsdp_implicit.json.gz")):
            self.run_again(str(ROOT / "traces" / folder), topology=machine, most=0.001)

    def test_steps_of_hugging_face_models_on_one_gpu(self):
        with tarfile.open(ROOT / "traces" / "h200_1" / "transformers.tar.xz") as archive:
            names = sorted(name for name in archive.getnames() if name.endswith(".json.gz"))
            self.assertEqual(len(names), 16)
            for name in names:
                (self.folder / "step.json.gz").write_bytes(archive.extractfile(name).read())
                text, _ = self.run_again("step.json.gz", topology="h200_1", most=0.002)
                self.assertIn("recognised  a list of", text, name)
                self.assertNotIn("not mapped", text, name)

    def test_the_host_and_other_streams_are_in_the_list(self):
        # The host enqueues a at 0, b at 10 and, after it waited for b, c at 60; b begins after a has ended on the other stream.
        events = [event("cuda_runtime", "cudaLaunchKernel", 0.0, 2.0, correlation=1), event("cuda_runtime", "cudaLaunchKernel", 10.0, 2.0, correlation=2),
                  event("cuda_runtime", "cudaStreamSynchronize", 12.0, 43.0), event("cuda_runtime", "cudaLaunchKernel", 60.0, 2.0, correlation=3),
                  event("kernel", "a", 0.0, 30.0, device=0, stream=7, correlation=1), event("kernel", "b", 31.0, 20.0, device=0, stream=8, correlation=2),
                  event("kernel", "c", 64.0, 40.0, device=0, stream=7, correlation=3)]
        self.file("t.json", kineto(events))
        _, done = self.run_again("t.json", topology="h200_1", most=1e-9)
        operators = json.loads((self.folder / "list.json").read_text(encoding="utf-8"))["operators"]
        facts = [{key: op.get(key) for key in ("name", "recorded_us", "gap_us", "host_us", "needs", "host_needs", "stream")} for op in operators]
        self.assertEqual(facts, [
            {"name": "a_0", "recorded_us": 30.0, "gap_us": 0.0, "host_us": None, "needs": [], "host_needs": None, "stream": None},
            {"name": "b_0", "recorded_us": 20.0, "gap_us": 1.0, "host_us": 10.0, "needs": ["a_0"], "host_needs": None, "stream": "stream_8"},
            {"name": "c_0", "recorded_us": 40.0, "gap_us": 4.0, "host_us": 9.0, "needs": ["a_0", "b_0"], "host_needs": ["a_0", "b_0"], "stream": None}])
        self.assertAlmostEqual(done["makespan_us"], 104.0, 6)
        # Another host enqueues anew: without waiting, one kernel behind the other.
        graph = json.loads(self.sim("--topology", "h200_1", "--schedule", "concurrent", "--workload", "list.json", "--host", "cuda_graph", "--format", "json").stdout)
        self.assertLess(graph["makespan_us"], 100.0)


class SpreadLists(TraceTestCase):
    """A trace of one GPU spread over several: 2048 tokens of width 1024, a block of attention and an MLP, a part of its backward pass, Adam."""

    def gemm(self, at, m, n, k, lasted):
        number = self.number = getattr(self, "number", 0) + 1
        return [event("cpu_op", "aten::mm", at, 0.5, **{"External id": number, "Input Dims": [[m, k], [k, n]], "Input type": ["c10::BFloat16"] * 2}),
                event("kernel", NVJET, at, lasted, device=0, stream=7, **{"External id": number})]

    def kernel(self, at, name, lasted, dims=None):
        number = self.number = getattr(self, "number", 0) + 1
        shapes = {"Input Dims": [dims], "Input type": ["c10::BFloat16"]} if dims else {}
        return [event("cpu_op", "aten::some", at, 0.5, **{"External id": number, **shapes}),
                event("kernel", name, at, lasted, device=0, stream=7, **{"External id": number})]

    def setUp(self):
        super().setUp()
        norm = "void at::native::rms_norm_kernel"
        made = [self.kernel(0, norm, 8, [1, 2048, 1024]), self.gemm(10, 2048, 3072, 1024, 40), self.kernel(60, "flash_fwd_kernel", 80),
                self.gemm(150, 2048, 1024, 1024, 16), self.kernel(170, norm, 8, [1, 2048, 1024]), self.gemm(180, 2048, 8192, 1024, 88),
                self.kernel(270, "void at::native::vectorized_elementwise_kernel<silu>", 20, [2048, 4096]), self.gemm(300, 2048, 1024, 4096, 44),
                # backward: gradients of the last weights, of its inputs, of the sum before it
                self.gemm(350, 1024, 4096, 2048, 48), self.gemm(400, 2048, 4096, 1024, 44), self.gemm(450, 8192, 1024, 2048, 96),
                self.gemm(550, 2048, 1024, 8192, 92), self.kernel(650, "multi_tensor_apply_kernel<adamw>", 40)]
        self.file("t.json", kineto([one for events in made for one in events], "A GPU"))

    def spread(self, *args):
        self.output("import", "t.json", "--iteration", "all", "--out-workload", "list.json", *args)
        return json.loads((self.folder / "list.json").read_text(encoding="utf-8"))

    def test_tensor_parallel_groups_have_parts_and_sum_them(self):
        made = self.spread("--tp", "4")
        self.assertEqual(made["ranks"], 4)
        # 2048 x 1024 of two bytes are 4 MiB.
        sums = [(i, op["bytes"], op["needs"]) for i, op in enumerate(made["operators"]) if op["type"] == "collective"]
        self.assertEqual(sums, [(4, 4194304.0, ["mm_1"]), (9, 4194304.0, ["mm_3"]), (14, 4194304.0, ["mm_7"])])
        gemms = [(op["m"], op["n"], op["k"], op["recorded_us"]) for op in made["operators"] if op["type"] == "gemm"]
        self.assertEqual(gemms, [(2048, 768, 1024, 10), (2048, 1024, 256, 4), (2048, 2048, 1024, 22), (2048, 1024, 1024, 11),
                                 (1024, 1024, 2048, 12), (2048, 1024, 1024, 11), (2048, 1024, 2048, 24), (2048, 1024, 2048, 23)])
        others = [op["recorded_us"] for op in made["operators"] if op["type"] == "memory_bound"]
        self.assertEqual(others, [8, 20, 8, 5, 10])  # norms stay, heads, columns and weights are shared
        self.assertIn("tp_all_reduce_0", made["operators"][5]["needs"])
        done = json.loads(self.sim("--topology", "h200_4", "--schedule", "concurrent", "--workload", "list.json", "--format", "json").stdout)
        self.assertGreater(done["makespan_us"], 0)

    def test_sequence_parallel_groups_gather_and_scatter(self):
        made = self.spread("--tp", "4", "--sequence-parallel")
        self.assertEqual([op["collective"] for op in made["operators"] if op["type"] == "collective"], ["all_gather", "reduce_scatter"] * 3)
        self.assertEqual([op["recorded_us"] for op in made["operators"] if op["type"] == "memory_bound"], [2, 20, 2, 5, 10])
        advice = json.loads(self.output("advise", "--trace", "t.json", "--iteration", "all", "--tp", "4", "--sequence-parallel", "--topology", "h200_4",
                                        "--format", "json", "--html", "page.html"))
        self.assertEqual(sum(pair["count"] for pair in advice["pairs"]), 6)
        self.assertGreater(advice["spread_us"], advice["exposed_us"])
        self.assertGreater(advice["schedules"][0]["gain_us"], 0)
        self.assertIn("What would gain", (self.folder / "page.html").read_text(encoding="utf-8"))

    def test_gradients_are_summed_over_data_parallel_groups(self):
        made = self.spread("--tp", "2", "--dp", "2")
        sums = [op for op in made["operators"] if op["name"].startswith("dp_")]
        # 4096 x 1024 and 8192 x 1024 weights of two bytes on two GPUs are 12.6 MB, below a bucket.
        self.assertEqual([(op["bytes"], op["group"], op["needs"]) for op in sums], [((4096 + 8192) * 1024.0, {"size": 2, "stride": 2}, ["mm_6"])])
        self.assertIn("dp_all_reduce_0", made["operators"][-1]["needs"])

    def test_what_cannot_be_spread(self):
        self.assert_refused(["import", "t.json", "--iteration", "all", "--tp", "3", "--out-workload", "l.json"], "--tp is 3, which does not divide the 1024 rows of weights of mm_1")
        self.assert_refused(["import", "t.json", "--tp", "2", "--out", "o.json"], "--out-workload")
        self.file("no_shapes.json", kineto([event("kernel", NVJET, 1.0, 10.0, device=0, stream=7)]))
        self.assert_refused(["import", "no_shapes.json", "--tp", "2", "--out-workload", "l.json"], "record_shapes=True")
        self.file("ranks.json", kineto([event("kernel", NVJET, 1.0, 10.0, device=0, stream=7)], rank=0, world_size=2))
        self.assert_refused(["import", "ranks.json", "--tp", "2", "--out-workload", "l.json"], "of a job of 2")


class AdviceOnTraces(TraceTestCase):
    def test_where_the_time_goes_and_what_schedules_would_gain(self):
        self.file("rank0.json", kineto(gathered_pair(0, NCCL, "kernel"), "AMD Instinct MI300X", rank=0, world_size=8))
        advice = json.loads(self.output("advise", "--trace", "rank0.json", "--format", "json"))
        # Of 815 us the GEMM has 380 and the all-gather 430; 5 lie between them.
        self.assertEqual(advice["where_us"], {"GEMM": 380.0, "exposed all_gather": 430.0, "idle (launches, waits)": 5.0})
        self.assertAlmostEqual(advice["iteration_us"], 815.0, 6)
        self.assertEqual(advice["exposed_us"], 430.0)
        self.assertEqual(advice["kernels_us"], {"recorded": 0.0, "priced": 810.0, "unknown": 0.0})
        self.assertEqual([(pair["name"], pair["count"], pair["recorded_us"]) for pair in advice["pairs"]], [("all_gather > gemm 16384x1792x4096 bf16", 1, 810.0)])
        best = advice["schedules"][0]
        self.assertGreater(best["gain_us"], 0)
        self.assertLess(best["gain_us"], 430)
        text = self.output("advise", "--trace", "rank0.json")
        self.assertIn("no schedule gains more than what is exposed", text)
        self.assertLess(len(text.splitlines()), 40)  # a screen

    def test_one_gpu_has_nothing_to_overlap_but_its_host(self):
        self.file("t.json", kineto([event("kernel", NVJET, 1.0, 10.0, device=0, stream=7), event("kernel", "odd", 21.0, 10.0, device=0, stream=7)]))
        advice = json.loads(self.output("advise", "--trace", "t.json", "--format", "json"))
        self.assertEqual(advice["where_us"], {"GEMM": 10.0, "other kernels": 10.0, "idle (launches, waits)": 10.0})
        self.assertEqual(advice["kernels_us"], {"recorded": 10.0, "priced": 0.0, "unknown": 10.0})
        self.assertIn("one GPU", advice["why_no_schedules"])
        self.assert_refused(["advise", "--trace", "t.json", "--format", "csv"], "--format is csv")
        self.assert_refused(["advise", "--trace", "none.json"], "none.json")

    def test_async_tp_is_predicted_from_the_trace_of_nccl(self):
        advice = json.loads(self.output("advise", "--trace", str(ROOT / "traces/h200_2/profiler"), "--format", "json"))
        gain = next(one for one in advice["schedules"] if one["schedule"] == "async_tp")["gain_us"]
        recorded = self.imported(str(ROOT / "traces/h200_2/profiler_symm_mem"))[1]["recorded_makespan_us"]
        self.assertLess(abs((advice["iteration_us"] - gain) / recorded - 1), 0.02)


class OtherChangesOfTraces(TraceTestCase):
    """What else would gain. Of two GPUs an all-gather takes 400 us, a GEMM of what it gathers 300, a kernel of its results 100, a copy from the host 50."""

    ALL_GATHER = {"type": "collective", "collective": "all_gather", "bytes": 8192 * 8192 * 2.0, "dtype": "bf16"}
    GEMM = {"type": "gemm", "m": 8192, "n": 2560, "k": 8192, "dtype": "bf16"}

    def setUp(self):
        super().setUp()
        said = {"Collective name": "_allgather_base", "In msg nelems": 4096 * 8192, "Out msg nelems": 8192 * 8192, "Group size": 2, "dtype": "BFloat16"}
        shapes = {"External id": 1, "Input Dims": [[8192, 8192], [8192, 2560]], "Input type": ["c10::BFloat16"] * 2}
        self.events = [event("cpu_op", "aten::mm", 0.0, 1.0, **shapes), event("kernel", NCCL, 0.0, 400.0, device=0, stream=7, **said),
                       event("kernel", NVJET, 400.0, 300.0, device=0, stream=7, **{"External id": 1}),
                       event("kernel", "void at::native::vectorized_elementwise_kernel<silu>", 700.0, 100.0, device=0, stream=7),
                       event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 800.0, 50.0, device=0, stream=7, bytes=1000)]
        self.file("t.json", kineto(self.events, rank=0, world_size=2))

    def others(self, *args, trace="t.json"):
        advice = json.loads(self.output("advise", "--trace", trace, "--iteration", "all", "--format", "json", *args))
        return advice, {one["change"]: one for one in advice["others"]}

    def alone(self, topology, operator, *args):
        """What a machine takes for one operator."""
        gpus = int(topology.split("_")[1])
        self.file("alone.json", {"name": "alone", "ranks": gpus, "order": "program", "operators": [{"name": "alone", **operator}]})
        done = self.sim("--topology", topology, "--schedule", "concurrent", "--workload", "alone.json", "--set", "algorithm=library", "--format", "json", *args)
        return json.loads(done.stdout)["makespan_us"]

    @staticmethod
    def changed(recorded, before, after):
        """What a collective takes instead: beyond its price it waited, and waits again."""
        waits = max(0, recorded - before)
        return waits + (recorded - waits) * after / before

    def test_another_machine_takes_the_ratio_of_prices(self):
        advice, others = self.others("--other-topology", "h100_2")
        self.assertAlmostEqual(advice["iteration_us"], 850.0, 6)
        before, after = (self.alone(machine, self.ALL_GATHER) for machine in ("h200_2", "h100_2"))
        self.assertLess(before, 400)
        gather, gemm = self.changed(400, before, after), self.alone("h100_2", self.GEMM) / self.alone("h200_2", self.GEMM)
        h200, h100 = (json.loads((ROOT / "configs" / "devices" / f"{name}.json").read_text(encoding="utf-8"))["hbm_GBps"]["value"] for name in ("h200", "h100"))
        found = others["machine h100_2"]
        self.assertAlmostEqual(found["gain_us"], 700 - gather - 300 * gemm, 1)
        self.assertAlmostEqual(found["by_memory_us"], 800 - gather - 300 * gemm - 100 * h200 / h100, 1)
        self.assertAlmostEqual(found["kept_share"], (150 + 400 - before) / 850, 4)
        # Another file of the same machine takes as long.
        self.file("same.json", (ROOT / "configs" / "topologies" / "h200_2.json").read_text(encoding="utf-8"))
        self.assertAlmostEqual(self.others("--other-topology", "./same.json")[1]["machine ./same.json"]["gain_us"], 0, 1)
        # All that are named are printed, however many.
        same = (ROOT / "configs" / "topologies" / "h200_2.json").read_text(encoding="utf-8")
        named = [f"./{name}.json" for name in "abcd"]
        for name in named:
            self.file(name, same)
        printed = self.sim("advise", "--trace", "t.json", "--other-topology", ",".join(named)).stdout
        for name in named:
            self.assertIn(f"machine {name} ", printed)
        self.assert_refused(["advise", "--trace", "t.json", "--other-topology", "h200_8"], "--other-topology h200_8 has 8 GPUs, but the recorded run 2")
        self.assert_refused(["advise", "--trace", "t.json", "--other-topology", "h20_2"], "did you mean")

    def test_another_degree_of_tensor_parallelism_cuts_other_parts(self):
        _, others = self.others()
        whole, half, quarter = (self.alone(f"h200_{gpus}", {**self.GEMM, "n": 5120 // gpus}) for gpus in (1, 2, 4))
        # One GPU gathers nothing, but waits as before, has all columns, and twice the elements of the kernel behind them; the copy stays.
        one = others["TP 1 instead of 2 on 1 GPU"]
        before, after = (self.alone(machine, self.ALL_GATHER) for machine in ("h200_2", "h200_4"))
        self.assertAlmostEqual(one["gain_us"], 850 - (400 - before + 300 * whole / half + 200 + 50), 1)
        self.assertAlmostEqual(one["kept_share"], (400 - before + 50) / 850, 4)
        four = others["TP 4 instead of 2 on 4 GPUs"]
        self.assertAlmostEqual(four["gain_us"], 850 - (self.changed(400, before, after) + 300 * quarter / half + 50 + 50), 1)
        self.assertIn("12 % of the kernels' time by their part", four["note"])

    def test_columns_of_results_that_are_gathered(self):
        # A GEMM with half of the rows of B, its sum, a kernel, a GEMM with half of the columns, which are gathered.
        def gemm(number, at, lasted, m, n, k):
            shapes = {"External id": number, "Input Dims": [[m, k], [k, n]], "Input type": ["c10::BFloat16"] * 2}
            return [event("cpu_op", "aten::mm", at, 1.0, **shapes), event("kernel", NVJET, at, lasted, device=0, stream=7, **{"External id": number})]
        def collective(name, at, lasted, given, got):
            said = {"Collective name": name, "In msg nelems": given, "Out msg nelems": got, "Group size": 2, "dtype": "BFloat16"}
            return [event("kernel", NCCL, at, lasted, device=0, stream=7, **said)]
        events = [*gemm(1, 0.0, 20.0, 2048, 1024, 512), *collective("allreduce", 20.0, 40.0, 2048 * 1024, 2048 * 1024),
                  event("kernel", "void at::native::vectorized_elementwise_kernel<silu>", 60.0, 10.0, device=0, stream=7),
                  *gemm(2, 70.0, 100.0, 2048, 8000, 1024), *collective("_allgather_base", 170.0, 200.0, 2048 * 8000, 2048 * 16000)]
        self.file("gathered.json", kineto(events, rank=0, world_size=2))
        advice, others = self.others(trace="gathered.json")
        self.assertEqual(sorted(pair["name"] for pair in advice["pairs"]), ["gemm > all_gather 2048x8000x1024 bf16", "gemm > all_reduce 2048x1024x512 bf16"])
        def ratio(k, n):  # one GPU has all rows, or all columns
            shape = {"type": "gemm", "m": 2048, "dtype": "bf16"}
            whole = {"k": 2 * k, "n": n} if n == 1024 else {"k": k, "n": 2 * n}
            return self.alone("h200_1", {**shape, **whole}) / self.alone("h200_2", {**shape, "k": k, "n": n})
        one = others["TP 1 instead of 2 on 1 GPU"]
        sums, gathers = (self.alone("h200_2", {"type": "collective", "collective": kind, "bytes": 2.0 * 2048 * columns, "dtype": "bf16"})
                         for kind, columns in (("all_reduce", 1024), ("all_gather", 16000)))
        waits = max(0, 40 - sums) + max(0, 200 - gathers)
        self.assertAlmostEqual(one["gain_us"], 370 - (waits + 20 * ratio(512, 1024) + 10 + 100 * ratio(1024, 8000)), 1)
        self.assertAlmostEqual(one["kept_share"], (waits + 10) / 370, 4)

    def test_degrees_that_cannot_be(self):
        odd = json.loads(json.dumps(self.events).replace("2560", "2561"))
        self.file("odd.json", kineto(odd, rank=0, world_size=2))
        _, others = self.others(trace="odd.json")
        self.assertIsNone(others["TP 4 instead of 2 on 4 GPUs"]["gain_us"])
        self.assertIn("4 does not divide the n of mm_0, in all 5122", others["TP 4 instead of 2 on 4 GPUs"]["note"])
        self.assertIsNotNone(others["TP 1 instead of 2 on 1 GPU"]["gain_us"])
        advice, others = self.others(trace=str(ROOT / "traces/h200_2/profiler_symm_mem"))
        self.assertIn("no pairs", others["another degree of tensor parallelism"]["note"])
        self.assertIsNone(others["machine h100_2"]["gain_us"])

    def test_fewer_compute_units_where_the_library_was_measured_so(self):
        # Of an all-gather of 400 us on two GPUs, 23 us of latency: 1 to 16 blocks were measured, all 24 are the line's.
        fewer = self.others()[1]["16 instead of 24 compute units for NCCL 2.29.2"]
        self.assertLess(fewer["gain_us"], 0)  # nothing runs beside the all-gather
        self.assertLess(self.others()[1]["1 instead of 24 compute units for NCCL 2.29.2"]["gain_us"], 4 * fewer["gain_us"])
        reduced = gathered_pair(0, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "kernel", members=2)
        for one in reduced:
            if "Collective name" in one["args"]:
                one["args"].update({"Collective name": "allreduce", "In msg nelems": 2 ** 26})
        self.file("reduced.json", kineto(reduced, rank=0, world_size=2))
        self.assertIn("h200 has no bus_GBps_by_channels of all_reduce", self.others(trace="reduced.json")[1]["fewer compute units for NCCL 2.29.2"]["note"])
        self.file("rank0.json", kineto(gathered_pair(0, NCCL, "kernel"), "AMD Instinct MI300X", rank=0, world_size=8))
        advice = json.loads(self.output("advise", "--trace", "rank0.json", "--format", "json"))
        found = next(one for one in advice["others"] if one["change"] == "32 instead of 64 compute units for RCCL")
        self.output("import", "rank0.json", "--priced", "--out-workload", "list.json")
        run = ["--topology", "mi300x_8", "--schedule", "concurrent", "--workload", "list.json", "--set", "algorithm=library", "--format", "json"]
        whole, fewer = (json.loads(self.sim(*run, *more).stdout)["makespan_us"] for more in ([], ["--set", "channels=32"]))
        self.assertAlmostEqual(found["gain_us"], 815 * (1 - fewer / whole), 1)
        self.assertLess(found["gain_us"], 0)  # nothing runs beside the all-gather

    def test_a_recorded_layer(self):
        with tarfile.open(ROOT / "traces" / "h200_2" / "traces_2026_11" / "layers.tar.xz") as archive:
            (self.folder / "layer.json").write_bytes(archive.extractfile("traced/tp_llama3_8b_5120_nccl_eager.json").read())
        advice = json.loads(self.output("advise", "--trace", "layer.json", "--format", "json", "--html", "page.html"))
        others = {one["change"]: one["gain_us"] for one in advice["others"]}
        self.assertLess(others["TP 1 instead of 2 on 1 GPU"], 0)
        self.assertGreater(others["TP 4 instead of 2 on 4 GPUs"], 0)
        self.assertLess(others["machine h100_2"], 0)
        with tarfile.open(ROOT / "traces" / "h200_2" / "traces_2026_11" / "hugging_face.tar.xz") as archive:
            (self.folder / "prefill.json").write_bytes(archive.extractfile("traced/hf_llama_tp_plan_prefill_1x4096.json").read())
        prefill = {one["change"]: one["gain_us"] for one in json.loads(self.output("advise", "--trace", "prefill.json", "--format", "json"))["others"]}
        self.assertLess(prefill["TP 1 instead of 2 on 1 GPU"], 0)
        self.assertGreater(prefill["TP 4 instead of 2 on 4 GPUs"], 0)
        text = self.output("advise", "--trace", "layer.json")
        self.assertLess(len(text.splitlines()), 45)
        self.assertLessEqual(max(map(len, text.partition("where it goes")[2].splitlines())), 100)
        for said in ("whole collectives by copy engines", "captured graphs", "machine h100_2"):
            self.assertIn(said, text)
        self.assertIn("What else would gain", (self.folder / "page.html").read_text(encoding="utf-8"))
