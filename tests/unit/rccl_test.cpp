// Do collectives of AMD's library and of inference take what was measured?
#include <catch2/catch.hpp>

#include <map>

#include "models/cost_model_registry.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::rccl_test {
namespace {

constexpr double mebi = 1 << 20;

double predicted_us(const Machine& machine, const CollectiveKernelWork& work) {
    return to_microseconds(isolated_time(CostModels().cost(Task{work}, machine), machine.resources));
}

}  // namespace

TEST_CASE("RCCL's reduce-scatters and all-to-alls on 8 MI300X take what a framework's calls take") {
    // ryanswann-amd/rocm-libraries 385c7ac data/rccl_master_sweep.csv, 64 channels, medians; bytes of a rank
    const std::map<CollectiveKind, std::map<double, double>> measured_us{
        {CollectiveKind::reduce_scatter, {{1, 86.5}, {4, 97.4}, {16, 140.0}, {64, 277.0}, {256, 840.4}}},
        {CollectiveKind::all_to_all, {{4, 74.4}, {16, 116.7}, {64, 362.8}, {256, 954.5}, {1024, 3294.6}}}};
    const Machine machine = shipped_machine("mi300x_8");
    for (const auto& [kind, times] : measured_us)
        for (const auto& [size, us] : times) {
            INFO(name_of(kind) << " of " << size << " MiB");
            CHECK(predicted_us(machine, {kind, Bytes(size * mebi), 0}) == Approx(us).epsilon(0.02));
        }
}

TEST_CASE("RCCL's all-gather on 8 MI300X has no copies into a list in it") {
    // 16 and 256 MiB a rank take 561 and 7180 us in that sweep: 46 and 30 us for the call, and eight copies that read
    // and write 16 and 256 MiB at 4130 GB/s, 8.1 and 130 us, 2.1 us apart.
    const Machine machine = shipped_machine("mi300x_8");
    const auto us = [&](double mib_a_rank) {
        return predicted_us(machine, {CollectiveKind::all_gather, Bytes(8 * mib_a_rank * mebi), 0});
    };
    CHECK(us(16) == Approx(561 - 46 - 8 * (8.12 + 2.1)).epsilon(0.005));
    CHECK(us(256) == Approx(7180 - 30 - 8 * (130.0 + 2.1)).epsilon(0.005));
    CHECK(us(64) == Approx(1890 - 46 - 8 * (32.5 + 2.1)).epsilon(0.005));  // in no fit
    // Small ones take no longer than an all-reduce whose pieces are as large.
    CHECK(predicted_us(machine, {CollectiveKind::all_gather, Bytes(1024), 0}) == Approx(6.5).epsilon(0.01));
}

TEST_CASE("RCCL's reduce-scatter on MI355X is what its all-reduce takes beyond an all-gather") {
    // ROCm/mori pull request 200: 326 GB/s on the bus, 128 MiB a GPU, takes 360 us.
    const Machine machine = shipped_machine("mi355x_8");
    CHECK(predicted_us(machine, {CollectiveKind::reduce_scatter, Bytes(128 * mebi), 0}) ==
          Approx(360).epsilon(0.05));
    CHECK(predicted_us(machine, {CollectiveKind::all_gather, Bytes(mebi), 0}) == Approx(10.04).epsilon(0.04));
}

TEST_CASE("all-reduces of inference on AMD take what was measured") {
    const auto us = [](const std::string& topology, CollectiveKernel kernel, double bytes,
                       const RankGroup& group = {}) {
        CollectiveKernelWork work{CollectiveKind::all_reduce, Bytes(bytes), 0};
        work.kernel = kernel;
        work.group = group;
        return predicted_us(shipped_machine(topology), work);
    };
    // The smallest time is latency; behind it links take what they carry.
    // vllm-project/vllm pull request 39080: 24, 768 and 1536 KiB
    CHECK(us("mi355x_8", CollectiveKernel::one_shot, 24576) == Approx(6.3).epsilon(0.07));
    CHECK(us("mi355x_8", CollectiveKernel::two_shot, 786432) == Approx(16.0));
    CHECK(us("mi355x_8", CollectiveKernel::two_shot, 1572864) == Approx(24.2));
    // vllm-project/vllm pull request 19744, 4 GPUs: 32 KiB and 4 MiB
    const RankGroup four{.size = 4, .stride = 1};
    CHECK(us("mi300x_8", CollectiveKernel::one_shot, 32768, four) == Approx(7.58).epsilon(0.05));
    CHECK(us("mi300x_8", CollectiveKernel::two_shot, 4194304, four) == Approx(63.86));
}

}  // namespace overlap::test::rccl_test
