// Predicted against measured: PyTorch's operators on two H200 (traces/h200_2/pytorch). Rows of collectives alone gave NCCL's
// lines of two GPUs; nothing is fitted to these cases. The README there says what was decided on one of them.
#include <catch2/catch.hpp>

#include "sim/compare/compare_cases.hpp"
#include "tests/test_support.hpp"

using namespace overlap;
using namespace overlap::test;

TEST_CASE("PyTorch's operators in graphs and steady state: async-TP 2.5 and 5.4 %, NCCL 4.8 and 4.7 % off") {
    const std::vector<std::string> files{source_folder / "traces/h200_2/pytorch/operators.cases.jsonl"};
    const Comparison comparison = compare(read_measured_cases(files), shipped);
    CHECK(comparison.not_predicted.empty());
    CHECK(comparison.all.count == 192);
    const auto errors = [&](const std::string& run) {
        for (const GroupErrors& group : comparison.groups)
            if (group.key == "run" && group.value == run + ", cuda_graph, steady") return group.errors;
        FAIL("no cases of " << run);
        return ErrorSummary();
    };
    const ErrorSummary gather = errors("all_gather > gemm: async_tp"),
                       scatter = errors("gemm > reduce_scatter: async_tp");
    CHECK(gather.count == 10);
    CHECK(gather.mean < 0.026);
    CHECK(gather.p90 < 0.055);
    CHECK(scatter.count == 10);
    CHECK(scatter.mean < 0.056);
    CHECK(errors("all_gather > gemm: serial").mean < 0.05);
    CHECK(errors("gemm > reduce_scatter: serial").mean < 0.05);
}
