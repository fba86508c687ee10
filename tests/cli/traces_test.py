"""Traces of people: one rank of a job, machines and processes told apart, kernels that nobody knows.

The formats are those of their programs' documentation (named in sim/importers). Cases are inputs that people published,
made small."""
import gzip
import json
import lzma
import sqlite3

from trace_case import GENERIC, NCCL, NVJET, TENSILE, TraceTestCase, event, gathered_pair, kineto


class OneRank(TraceTestCase):
    SCENARIO = {"collective": "all_gather", "order": "collective_first", "gemm": {"m": 16384, "n": 1792, "k": 4096, "dtype": "bf16"}}

    def test_one_rank_says_what_eight_copies_of_it_say(self):
        for rank in range(8):
            self.file(f"rank{rank}.json", kineto(gathered_pair(rank, GENERIC, "kernel"), "AMD Instinct MI300X", rank=rank, world_size=8))
        _, of_all = self.imported(*(f"rank{rank}.json" for rank in range(8)))
        self.assertEqual(of_all["scenario"]["workload"], self.SCENARIO)
        for rank in (0, 5):
            text, of_one = self.imported(f"rank{rank}.json")
            self.assertIn("of 1 GPU of 8", text)
            self.assertIn("all_gather by a library's kernel, then a GEMM", text)
            self.assertEqual(of_one["scenario"], of_all["scenario"])
            self.assertEqual(of_one["scenario"]["topology"], "mi300x_8")
            self.assertAlmostEqual(of_one["makespan_us"], 815.0, 6)  # 20 to 835 us of each step

    def test_what_the_host_said_of_a_collective_counts(self):
        self.file("rank0.json", kineto(gathered_pair(0, GENERIC, "host"), "AMD Instinct MI300X", rank=0, world_size=8))
        self.assertEqual(self.imported("rank0.json")[1]["scenario"]["workload"], self.SCENARIO)

    def test_two_of_128_ranks_are_no_job_of_two(self):
        for rank in (0, 64):
            self.file(f"rank{rank}.json", kineto(gathered_pair(rank, NCCL, "kernel"), rank=rank, world_size=128))
        text, case = self.imported("rank0.json", "rank64.json")
        self.assertIn("of 2 GPUs of 128", text)
        self.assertEqual(case["scenario"]["topology"], "h200_8")  # the group of the collective
        self.file("other.json", kineto(gathered_pair(1, NCCL, "kernel"), rank=1, world_size=2))
        self.assert_refused(["import", "rank0.json", "other.json", "--out", "o.json"], "other.json: is of a job of 2 ranks, which are 128 in rank0.json")
        self.assert_refused(["import", "rank0.json", "rank0.json", "--out", "o.json"], "GPU 0 is in two of the files")
        self.file("none.json", kineto(gathered_pair(0, NCCL, "kernel")))
        self.assert_refused(["import", "rank0.json", "none.json", "--out", "o.json"], "none.json: names no rank", "rank0.json")
        self.file("high.json", kineto(gathered_pair(9, NCCL, "kernel"), rank=9, world_size=8))
        self.assert_refused(["import", "high.json", "--out", "o.json"], "high.json: /distributedInfo/rank: is 9, expected less than world_size, 8")

    def test_a_gpu_by_itself_is_gpu_0(self):
        self.file("t.json", kineto([event("kernel", NVJET, 1.0, 10.0, device=2, stream=7)]))
        text, case = self.imported("t.json")
        self.assertIn("1 span of 1 GPU over", text)
        self.assertEqual([span["gpu"] for span in case["spans"]], [0])
        self.assertEqual(case["scenario"]["topology"], "h200_1")


class KernelNames(TraceTestCase):
    UNKNOWN = "void (anonymous namespace)::my_own<float>(float*)"

    def trace(self, rank):
        """Five kernels on one stream, 1 us apart: 2,100 us of kernels, 2,104 in all."""
        events, at = [], 1000.0
        for name, lasted in ((NVJET, 500.0), ("attn_fwd", 600.0), ("void (anonymous namespace)::softmax_warp_forward<float>(float*)", 300.0),
                             (self.UNKNOWN, 200.0), (NVJET, 500.0)):
            events.append(event("kernel", name, at, lasted, device=rank, stream=7))
            at += lasted + 1
        return kineto(events, rank=rank, world_size=2)

    def test_kernels_without_an_entry_keep_their_time_and_their_name(self):
        for rank in (0, 1):
            self.file(f"rank{rank}.json", self.trace(rank))
        text, case = self.imported("rank0.json", "rank1.json", "--iteration", "all", "--out-workload", "list.json")
        self.assertIn("not mapped  2 x void (anonymous namespace)::my_own, 9.5 % of the time, which they keep", text)
        self.assertEqual(case["makespan_us"], 2104.0)
        compared = json.loads(self.sim("compare", "case.json", "--format", "json").stdout)["cases"][0]
        self.assertAlmostEqual(compared["predicted_us"], 2104.0, 6)
        operators = json.loads((self.folder / "list.json").read_text(encoding="utf-8"))["operators"]
        self.assertEqual(operators[3]["name"], self.UNKNOWN + "_0")
        self.assertEqual((operators[3]["recorded_us"], operators[3]["gap_us"]), (200.0, 1.0))

    def test_the_table_knows_kernels_of_many_programs(self):
        def kind(name):
            self.file("t.json", kineto([event("kernel", name, 1.0, 10.0, device=0, stream=7)]))
            text, case = self.imported("t.json")
            self.assertNotIn("not mapped", text, name)
            return case["spans"][0]["kind"]
        for name in ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", "igemm_fwd_gtcx3_nhwc_fp16", "_ZN5aiter12add_rmsnormE",
                     "void ck_tile::kentry<256, 1, ck_tile::FmhaFwdKernel>", "void transformer_engine::normalization::rmsnorm_fwd", "vllm::rotary_embedding_kernel",
                     "void cublasLt::splitKreduce_kernel<32, 16>", "void at::native::vectorized_gather_kernel<16, long>", "flashinfer::norm::FusedAddRMSNormKernel"):
            self.assertEqual(kind(name), "memory_bound", name)
        for name in ("bmm_E2m1_E2m1E2m1_Fp32_t128x8x512u2", TENSILE, "Custom_Cijk_Alik", "void ck::kernel_gemm_xdl_cshuffle_v3", "fused_moe_kernel"):
            self.assertEqual(kind(name), "gemm", name)
        self.assertEqual(kind("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"), "collective")


class PackedTraces(TraceTestCase):
    def test_any_format_may_be_packed_in_any_way(self):
        record = {"start_timestamp": 1000, "end_timestamp": 901000, "dispatch_info": {"kernel_id": 7, "agent_id": {"handle": 2}, "queue_id": {"handle": 1}}}
        rocprof = {"rocprofiler-sdk-tool": [{"agents": [{"id": {"handle": 1}, "type": 1}, {"id": {"handle": 2}, "type": 2}],
                                             "kernel_symbols": [{"kernel_id": 7, "formatted_kernel_name": TENSILE}],
                                             "buffer_records": {"kernel_dispatch": [record], "memory_copy": []}}]}
        rows = [{"Kernel_Name": TENSILE, "Agent_Id": 2, "Queue_Id": 1, "Start_Timestamp": 1000, "End_Timestamp": 901000}]
        self.csv("t.csv", rows)
        self.database("t.sqlite", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, 'gemm');"
                      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, demangledName); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 901000, 0, 7, 1);")
        self.file("t.json", rocprof)
        self.file("k.json", kineto([event("kernel", NVJET, 1.0, 900.0, device=0, stream=7)]))
        for name in ("t.json", "k.json", "t.csv", "t.sqlite"):
            plain = self.imported(name)[1]
            self.assertAlmostEqual(plain["makespan_us"], 900.0, 6)
            for ending, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
                (self.folder / (name + ending)).write_bytes(pack((self.folder / name).read_bytes()))
                self.assertEqual(self.imported(name + ending)[1], plain, name + ending)


class PeerCopies(TraceTestCase):
    def trace(self, rank, name, rate_GBps, **ends):
        """Async TP: a shard of 16 MiB from the peer, a GEMM for each of two shards."""
        events = []
        for step in range(3):
            at = 1000.0 * (step + 1)
            lasted = 2 ** 24 / rate_GBps * 1e-3
            events += [event("user_annotation", f"ProfilerStep#{step}", at, 900.0),
                       event("cuda_runtime", "hipMemcpyAsync", at, 1.0, correlation=10 * step),
                       event("gpu_memcpy", name, at + 20, lasted, device=rank, stream=3, correlation=10 * step, bytes=2 ** 24, **ends)]
            for part in (1, 2):
                events += [event("cuda_runtime", "hipExtModuleLaunchKernel", at + part, 1.0, correlation=10 * step + part),
                           event("cpu_op", "aten::mm", at + part, 0.5, **{"External id": 10 * step + part, "Input Dims": [[2048, 4096], [4096, 3584]],
                                                                          "Input type": ["c10::BFloat16"] * 2}),
                           event("kernel", TENSILE, at + 20 + 370 * (part - 1), 110.0, device=rank, stream=0, correlation=10 * step + part,
                                 **{"External id": 10 * step + part})]
        return kineto(events, "AMD Instinct MI300X", rank=rank, world_size=2)

    def folder_of(self, folder, *args, **ends):
        (self.folder / folder).mkdir()
        for rank in (0, 1):
            self.file(f"{folder}/rank{rank}.json", self.trace(rank, *args, **{key: rank if own else 1 - rank for key, own in ends.items()}))
        return folder

    def test_rocm_names_copies_between_gpus_like_copies_within_one(self):
        text, _ = self.imported(self.folder_of("cuda", "Memcpy PtoP (Device -> Device)", 46, fromDevice=False, toDevice=True, inDevice=True))
        said = "recognised  async_tp (PyTorch's symmetric memory), all_gather, then a GEMM"
        self.assertIn(said, text)
        text, _ = self.imported(self.folder_of("rocm", "Memcpy DtoD (Device -> Device)", 46))
        self.assertIn(said, text)
        self.assertIn("6 x Memcpy DtoD are taken as copies between GPUs: at 46.0 GB/s they are as fast as a link, not as memory", text)
        self.assertNotIn(said, self.imported("rocm", "--peer-copies", "none")[0])
        # As fast as memory: within one GPU, unless a flag says else.
        self.folder_of("fast", "Memcpy DtoD (Device -> Device)", 1400)
        self.assertNotIn(said, self.imported("fast")[0])
        self.assertIn(said, self.imported("fast", "--peer-copies", "all")[0])


class NsightReports(TraceTestCase):
    def report(self, name, *processes, more=""):
        """`processes`: (device, pid, from when on in us): three times an all-gather of 200 us and a GEMM of 900, 5 us later."""
        rows = []
        for device, process, start in processes:
            for run in range(3):
                at = 1000 * (start + 1155 * run)
                rows += [(at, at + 200_000, device, 20, process << 24, 2), (at + 205_000, at + 1_105_000, device, 7, process << 24, 1)]
        values = ", ".join(map(str, rows))
        return self.database(name, f"""CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (1, 'void cutlass::Kernel2<cutlass_80_tensorop_bf16_gemm>'), (2, '{NCCL}');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER, demangledName INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {values};
            CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200'); {more}""")

    def check(self, *files):
        text, case = self.imported(*files, "--gemm", "8192x8192x8192", "--topology", "h200_2")
        self.assertIn("of 2 GPUs", text)
        self.assertIn("3 iterations", text)
        self.assertEqual(len(case["samples_us"]), 3)
        for sample in case["samples_us"]:
            self.assertAlmostEqual(sample, 1105.0, 3)
        self.assertEqual(case["scenario"]["workload"]["collective"], "all_gather")
        return text

    def test_a_report_a_process_has_a_clock_of_its_own(self):
        self.report("a/rank0.sqlite", (0, 100, 1000))
        self.report("a/rank1.sqlite", (1, 101, 77_000))
        self.assertIn("by the ends of 3 collectives: its clock is 76000 us later", self.check("a"))

    def test_device_0_of_two_processes_are_two_gpus(self):
        self.report("b/rank0.sqlite", (0, 100, 1000))
        self.report("b/rank1.sqlite", (0, 101, 1005))
        self.assertIn("told apart by process", self.check("b"))
        self.check(self.report("one.sqlite", (0, 100, 1000), (0, 101, 1000)))

    def test_unique_names_of_gpus_go_before_their_numbers(self):
        same = "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid, uuid); INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 100, 'a'), (1, 0, 101, 'b'), (0, 1, 102, 'a');"
        self.check(self.report("two.sqlite", (0, 100, 1000), (0, 101, 1000), more=same))
        self.assertIn("of 1 GPU ", self.imported(self.report("same.sqlite", (0, 100, 1000), (1, 102, 5000), more=same))[0])

    def test_clocks_that_nothing_aligns_are_refused(self):
        for name in ("c0.sqlite", "c1.sqlite"):
            self.report(name, (0, 100, 1000))
        handle = sqlite3.connect(self.folder / "c1.sqlite")
        handle.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE demangledName = 2")
        handle.commit()
        handle.close()
        self.assert_refused(["import", "c0.sqlite", "c1.sqlite", "--out", "o.json"], "c1.sqlite: its clock can't be compared with that of c0.sqlite",
                            "0 and 3, are not the same")
