"""scripts/plan_to_code: programs of plans. They are compiled against declarations of CUDA alone, since there is no GPU here."""
import json
import re
import shutil
import subprocess
import sys

from sim_case import ROOT, SimTestCase

SCHEDULES = ("serial", "shard_p2p", "ring_chunked", "shard_direct", "hetero_fused_1d", "hetero_unfused_1d", "hetero_fused_2d",
             "uniform_fused_1d")
FOUND = [("compute", "gemm("), ("copy", "copy("), ("local_copy", "move("), ("reduce", "sum(")]
# Names of CUDA that the programs use, with types as strict as the compiler needs; a name that CUDA has not is not noticed.
HEADER = """
#pragma once
#include <cmath>
#include <cstddef>
#define __global__
#define __host__
#define __device__
#define __shared__
#define __launch_bounds__(threads)
struct uint4 { unsigned x, y, z, w; };
struct dim3 { dim3(unsigned x, unsigned y = 1); unsigned x, y; };
extern const dim3 blockIdx, blockDim, gridDim, threadIdx;
struct __half {};
struct __nv_bfloat16 {};
float __half2float(__half);
float __bfloat162float(__nv_bfloat16);
__half __float2half(float);
__nv_bfloat16 __float2bfloat16(float);
unsigned long long atomicAdd(unsigned long long*, unsigned long long);
using cudaStream_t = struct stream_*;
using cudaEvent_t = struct event_*;
using cublasLtHandle_t = struct handle_*;
using cublasLtMatmulDesc_t = struct description_*;
using cublasLtMatrixLayout_t = struct layout_*;
using cublasLtMatmulPreference_t = struct preference_*;
struct cublasLtMatmulHeuristicResult_t { struct Algorithm { int id; } algo; };
enum Values { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, cudaMemcpyDefault,
       cudaMemcpyDeviceToHost, cudaStreamNonBlocking, cudaEventDisableTiming, cudaDevAttrMultiProcessorCount };
template <class Kernel, class... Arguments> void launch(Kernel, dim3, int, cudaStream_t, Arguments...);
#define LAUNCH(kernel, blocks, threads, stream, ...) launch(kernel, blocks, threads, stream, __VA_ARGS__)
"""


def header(program):
    calls = sorted(set(re.findall(r"\bGPU\((\w+)\)\(", program)) - {"name"})
    library = sorted(set(re.findall(r"\bLT\((\w+)\)\(", program)) - {"name"})
    names = [f"cuda{name}" for name in calls] + [f"cublasLt{name}" for name in library] + ["cudaHostAlloc"]
    return HEADER + "".join(f"template <class... Arguments> int {name}(Arguments...);\n" for name in names)


class PlanToCode(SimTestCase):
    def code(self, plan, *flags, expect=0):
        done = subprocess.run([sys.executable, ROOT / "scripts/plan_to_code", plan, *flags], cwd=self.folder, capture_output=True,
                              encoding="utf-8", timeout=60, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def plan(self, *flags, name="plan.json"):
        self.output(*flags, "--graph", name, "--dry-run")
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def assert_compiles(self, program):
        if shutil.which("g++") is None:
            return
        for name in ("cublasLt.h", "cuda_bf16.h", "cuda_fp16.h"):
            self.file(name, "#pragma once\n#include \"cuda_runtime.h\"\n")
        self.file("cuda_runtime.h", header(program))
        self.file("program.cpp", program)
        command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wno-unknown-pragmas", "-Werror", "-I.", "program.cpp"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8", timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[:2000])

    def assert_steps(self, plan, program, gpus):
        """The function that enqueues has each task of a rank once, or each of all ranks."""
        body = re.search(r"\nvoid enqueue\(\) \{\n(.*?)\n\}\n", program, re.DOTALL)[1]
        tasks = [task for line in plan["tasks"] for task in line.get("each_rank", [line]) * (gpus if "each_rank" in line else 1)]
        ranks = gpus if "for (int rank = 0; rank < gpus; ++rank)" in body else 1
        for kind, call in [("gemm", "gemm("), *FOUND[1:]]:
            count = len(re.findall(rf"^ +{re.escape(call)}rank", body, re.MULTILINE))
            self.assertEqual(count * ranks, sum(task["kind"] == kind for task in tasks), kind)
        return body

    def test_schedules(self):
        for machine, gpus in (("h200_2", 2), ("h200_4", 4), ("mi300x_8", 8)):
            for number, schedule in enumerate(SCHEDULES):
                for agent in ("dma", "cu"):
                    pair = ["--collective", "reduce_scatter", "--order", "gemm_first"] if number % 2 else []
                    with self.subTest(machine=machine, schedule=schedule, agent=agent):
                        plan = self.plan("--topology", machine, "--schedule", schedule, "--gemm", "8192x2560x8192", *pair,
                                         "--set", f"agent={agent}")
                        program = self.code("plan.json").stdout
                        body = self.assert_steps(plan, program, gpus)
                        self.assertTrue("peer_1 = (rank + 1) % gpus" in body)
                        self.assertEqual(body.count("pick("), 0)
                        if machine != "mi300x_8" and number < 4:
                            self.assert_compiles(program)

    def test_events_are_recorded_before_they_are_waited_for(self):
        self.plan("--topology", "h200_4", "--schedule", "ring_chunked", "--gemm", "8192x2560x8192")
        body = re.search(r"void enqueue\(\) \{\n(.*?)\n\}\n", self.code("plan.json").stdout, re.DOTALL)[1]
        recorded, waits = set(), 0
        for step in body.split("for (int rank")[1:]:
            mine = set(recorded)
            for call, other, event in re.findall(r"(wait|record)\(rank, \w+, (?:(\w+), )?(\w+)\);", step):
                if call == "record":
                    mine.add(event)
                else:
                    waits += 1
                    self.assertIn(event, mine if other == "rank" else recorded)
            recorded = mine
        self.assertGreater(waits, 4)

    def test_searched_plans(self):
        for pair in ([], ["--collective", "reduce_scatter", "--order", "gemm_first"]):
            self.output("search", "--topology", "h200_2", "--gemm", "10240x1280x8192", "--draws", "50", "--executable", "replay",
                        "--agent", "dma", "--vary", "sizes,merging,order,direction,streams", "--save", "plan.json.gz", *pair)
            self.assert_compiles(self.code("plan.json.gz").stdout)
            self.code("plan.json.gz", "--to", "pytorch", "--out", "script.py")
            script = (self.folder / "script.py").read_text(encoding="utf-8")
            compile(script, "script.py", "exec")
            put, waited = (sorted(re.findall(call + r"_signal\(.*channel=(\d+)", script)) for call in ("put", "wait"))
            self.assertEqual(put, waited)
            self.assertTrue(put)
            self.assertIn("torch.mm(", script)

    def test_ranks_that_differ(self):
        """One statement a task, each rank by its number."""
        plan = self.plan("--topology", "h200_2", "--schedule", "shard_p2p", "--gemm", "8192x2560x8192")
        plan["tasks"][0]["each_rank"][-1]["stream"] = {"ranks": ["compute", "transfer 7"]}
        self.file("plan.json", plan)
        program = self.code("plan.json").stdout
        self.assertIn("{  // rank 1", program)
        self.assert_steps(plan, program, 2)
        self.assert_compiles(program)
        self.assertIn("ranks do different things", self.code("plan.json", "--to", "pytorch", expect=2).stderr)

    def test_refusals(self):
        pair = ["--topology", "h200_2", "--schedule", "shard_p2p", "--gemm", "8192x2560x8192"]
        plan = self.plan(*pair)
        task = plan["tasks"][0]["each_rank"][0]

        def changed(change):
            copy = json.loads(json.dumps(plan))
            change(copy, copy["tasks"][0]["each_rank"][0])
            return copy
        cases = [("no file", None, "No such file"), ("{", None, "no JSON"), ({"gpus": 2}, None, "is no plan"),
                 (changed(lambda all, one: all.pop("buffers")), None, "no places"),
                 (changed(lambda all, one: one.update(kind="collective")), None, "kind is collective, allowed: gemm"),
                 (changed(lambda all, one: one.update(prelaunched=True)), None, "prelaunched"),
                 (changed(lambda all, one: one.pop("from")), None, "0 blocks from"),
                 (changed(lambda all, one: all["config"].pop("workload")), None, "has no workload"),
                 (changed(lambda all, one: all["config"]["workload"]["gemm"].update(dtype="fp8")), None, "dtype: is fp8, allowed: bf16"),
                 (changed(lambda all, one: one.pop("stream")), None, "is no valid plan"),
                 (changed(lambda all, one: one.update(after=[{"task": 1, "from": 0.5, "to": 0.5}])), None, "gates")]
        self.assertIn("kind", task)
        for content, _, expected in cases:
            name = "none.json" if content == "no file" else self.file("bad.json", content)
            with self.subTest(expected):
                done = self.code(name, "--out", "out.cpp", expect=2)
                self.assertRegex(done.stderr, r"\Aplan_to_code: [^\n]+\n\Z")
                self.assertIn(expected, done.stderr)
                self.assertFalse((self.folder / "out.cpp").exists())
        self.plan(*pair, "--set", "agent=cu")
        self.assertIn("agent is cu", self.code("plan.json", "--to", "pytorch", expect=2).stderr)
        self.assertIn("none/out.cpp", self.code("plan.json", "--out", "none/out.cpp", expect=2).stderr)
