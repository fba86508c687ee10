// Predicted against measured: PyTorch's operators, blocks and iterations on two H200 (traces/h200_2/pytorch) and H100
// (traces/h100_2/drawn_4, which was predicted beforehand). The READMEs there say which rows gave a constant, or were looked
// at when a mechanism was decided; `others` and most blocks were not.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/compare/compare_cases.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::pytorch_operators_test {
namespace {

/// Eager cases by the host file `host`, if given, instead of the preset.
Comparison of_file(const std::string& name, const std::string& host = "") {
    const std::filesystem::path traces = source_folder / "traces";
    const std::vector<std::string> files{traces / (name + ".cases.jsonl")};
    std::vector<MeasuredCase> cases = read_measured_cases(files);
    for (MeasuredCase& one : cases)
        if (!host.empty() && one.config.host == "pytorch_eager")
            one.config.host = traces / (host + ".host.json");
    Comparison comparison = compare(cases, shipped);
    CHECK(comparison.not_predicted.empty());
    return comparison;
}

/// Scenarios whose fastest schedule is predicted within 2 %, of those on hosts with `host` in their name.
int right_choices(const Comparison& comparison, const std::string& host) {
    int right = 0;
    for (const auto& scenario : comparison.scenarios)
        right += scenario.regret <= 0.02 && scenario.name.find(host) != std::string::npos;
    return right;
}

/// Of steady cases by their run: "all_gather > gemm: async_tp, cuda_graph".
ErrorSummary errors(const Comparison& comparison, const std::string& run) {
    for (const GroupErrors& group : comparison.groups)
        if (group.key == "run" && group.value == run + ", steady") return group.errors;
    FAIL("no cases of " << run);
    return {};
}

/// Largest mean errors: by async-TP and by NCCL in graphs, by NCCL eager; all-gather before, reduce-scatter behind a GEMM.
void check_operators(const Comparison& comparison, const std::array<double, 6>& largest) {
    std::size_t next = 0;
    for (const std::string how : {"async_tp, cuda_graph", "serial, cuda_graph", "serial, pytorch_eager"})
        for (const std::string pair : {"all_gather > gemm: ", "gemm > reduce_scatter: "}) {
            INFO(pair << how);
            CHECK(errors(comparison, pair + how).mean < largest[next++]);
        }
}

}  // namespace

TEST_CASE("PyTorch's operators in graphs and steady state are predicted as the README says") {
    for (const std::string file : {"operators", "others"}) {
        INFO(file);
        const Comparison comparison = of_file("h200_2/pytorch/" + file);
        const bool seen = file == "operators";
        CHECK(comparison.all.count == (seen ? 192 : 80));
        const ErrorSummary gather = errors(comparison, "all_gather > gemm: async_tp, cuda_graph"),
                           scatter = errors(comparison, "gemm > reduce_scatter: async_tp, cuda_graph");
        CHECK(gather.count == 10);
        CHECK(gather.mean < 0.019);
        CHECK(scatter.count == 10);
        CHECK(scatter.mean < (seen ? 0.042 : 0.022));
        CHECK(errors(comparison, "all_gather > gemm: serial, cuda_graph").mean < 0.028);
        CHECK(errors(comparison, "gemm > reduce_scatter: serial, cuda_graph").mean < 0.024);
    }
}

TEST_CASE(
    "an async-TP operator is chosen where it is faster, in graphs and eager, on shapes that were not looked at") {
    const Comparison comparison = of_file("h200_2/pytorch/others");
    CHECK(comparison.scenarios.size() == 40);
    CHECK(right_choices(comparison, "cuda_graph") == 20);
    CHECK(right_choices(comparison, "pytorch_eager") == 18);
    // Known gap: asked are 8 %. By the median of 15 hosts, this one not among them.
    CHECK(errors(comparison, "all_gather > gemm: async_tp, pytorch_eager").mean < 0.114);
    CHECK(errors(comparison, "gemm > reduce_scatter: async_tp, pytorch_eager").mean < 0.112);
}

TEST_CASE(
    "80 operators of two and of four H200, drawn before they were measured, eager by the machine's own host") {
    struct List {
        std::string name;
        std::array<double, 6> largest;
        int right;                                     ///< choices of 20, in graphs and eager
        double largest_of_gather, largest_of_scatter;  ///< async-TP, eager; asked are 0.08
    };
    for (const List& list : {
             List{"h200_2/drawn/list_4", {{0.019, 0.017, 0.024, 0.021, 0.027, 0.019}}, 20, 0.038, 0.029},
             List{"h200_4/drawn/list_1", {{0.027, 0.036, 0.018, 0.012, 0.019, 0.016}}, 19, 0.039, 0.037},
         }) {
        INFO(list.name);
        const Comparison comparison = of_file(list.name, list.name);
        CHECK(comparison.all.count == 80);
        check_operators(comparison, list.largest);
        CHECK(right_choices(comparison, "cuda_graph") == list.right);
        CHECK(right_choices(comparison, "pytorch_eager") == list.right);
        CHECK(errors(comparison, "all_gather > gemm: async_tp, pytorch_eager").mean < list.largest_of_gather);
        CHECK(errors(comparison, "gemm > reduce_scatter: async_tp, pytorch_eager").mean <
              list.largest_of_scatter);
    }
}

TEST_CASE("a GEMM of few rows and its all-reduce on four GPUs") {
    const ErrorSummary h200 = of_file("h200_4/allreduce/allreduce").all;
    CHECK(h200.count == 44);
    // Asked of two GPUs are 6 and 12 %.
    CHECK(h200.mean < 0.051);
    CHECK(h200.p90 < 0.112);
    const ErrorSummary h100 = of_file("h100_4/allreduce/allreduce").all;
    CHECK(h100.count == 54);
    CHECK(h100.mean < 0.048);
    CHECK(h100.p90 < 0.097);
}

TEST_CASE("a GEMM of few rows and its all-reduce, a graph of one") {
    const Comparison comparison = of_file("h200_2/pytorch/allreduce");
    CHECK(comparison.all.count == 60);
    std::vector<double> one_shot, by_nccl;
    for (const ComparedCase& one : comparison.cases)
        (one.name.find("one_shot") == std::string::npos ? by_nccl : one_shot).push_back(one.error);
    CHECK(summarise(one_shot).mean < 0.046);
    CHECK(summarise(by_nccl).mean < 0.063);
}

TEST_CASE("166 drawn cases of two H100, which were predicted before they were measured") {
    const Comparison comparison = of_file("h100_2/drawn_4/drawn");
    CHECK(comparison.all.count == 166);
    CHECK(errors(comparison, "operators: serial, cuda_graph").mean < 0.038);    // tokens, blocks
    CHECK(errors(comparison, "operators: async_tp, cuda_graph").mean < 0.038);  // blocks
    check_operators(comparison, {{0.038, 0.037, 0.021, 0.02, 0.052, 0.036}});
    CHECK(errors(comparison, "operators: serial, pytorch_fsdp2").mean < 0.019);
    CHECK(errors(comparison, "operators: concurrent, pytorch_fsdp2").mean < 0.017);
}

TEST_CASE("80 operators of two H100, which were predicted before they were measured") {
    const Comparison comparison = of_file("h100_2/drawn_7/drawn");
    CHECK(comparison.all.count == 80);
    check_operators(comparison, {{0.041, 0.027, 0.024, 0.021, 0.025, 0.027}});
}

TEST_CASE("168 drawn cases of two H100 whose errors decided what was measured since") {
    const Comparison comparison = of_file("h100_2/drawn_3/drawn");
    CHECK(comparison.all.count == 168);
    CHECK(errors(comparison, "operators: serial, cuda_graph").mean < 0.03);     // tokens, blocks
    CHECK(errors(comparison, "operators: async_tp, cuda_graph").mean < 0.029);  // blocks
    CHECK(errors(comparison, "all_gather > gemm: async_tp, cuda_graph").mean < 0.035);
    CHECK(errors(comparison, "gemm > reduce_scatter: async_tp, cuda_graph").mean < 0.049);
    CHECK(errors(comparison, "all_gather > gemm: serial, cuda_graph").mean < 0.021);
    CHECK(errors(comparison, "gemm > reduce_scatter: serial, cuda_graph").mean < 0.026);
    CHECK(errors(comparison, "operators: serial, pytorch_fsdp2").mean < 0.014);
}

TEST_CASE("blocks and FSDP2 iterations of two GPUs in steady state: 3.2 and 2.0 % off") {
    const Comparison blocks = of_file("h200_2/pytorch/layers"), iterations = of_file("h200_2/pytorch/fsdp");
    CHECK(errors(blocks, "operators: async_tp, cuda_graph").mean < 0.037);
    CHECK(errors(blocks, "operators: serial, cuda_graph").mean < 0.032);
    CHECK(errors(iterations, "operators: concurrent, pytorch_fsdp2").mean < 0.019);
    CHECK(errors(iterations, "operators: serial, pytorch_fsdp2").mean < 0.024);
}

}  // namespace overlap::test::pytorch_operators_test
