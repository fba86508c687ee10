// Measures the time of a library GEMM alone.
//
// Samples: from the end of the previous run (or the release) to the run's own end, by events, µs. Runs that
// are released together fill about a millisecond. Before each release the GPU rests until it runs at its peak
// clock, so this is a GEMM in a short step (for long runs see `sustained`). A and C come from other memory in
// each run; B is the same, as for the parts of one operator, unless weights=cold. More fields: chain_us, time
// a GEMM in a chain of runs without events; clock_MHz just after the runs; algorithm, as the library names
// it. Before the samples one run into poisoned memory is compared with a plain kernel.

#include <algorithm>

#include "models/calibration/hip/clock.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/lanes.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

Result run(Machine& machine, const Case& c) {
    const GemmShape shape = gemm_shape(c);
    const int gpu = static_cast<int>(c.count("gpu"));
    need_gpus(machine, gpu + 1);
    check(hipSetDevice(gpu));
    const auto gemm = make_gemm(shape);
    const GemmOperands operands(machine, gpu, shape);
    operands.check_result(*gemm);

    const bool cold = c.word("weights") == "cold";
    std::int64_t next = 0;
    const Operation one = [&](hipStream_t stream) { operands.run(*gemm, next++, stream, cold); };
    double* clock = take_clocks(machine, gpu, 1);
    const auto release = [&](std::int64_t count, bool mark_each) {
        rest(machine, gpu, clock);
        Lane lane{gpu, std::vector<Operation>(count, one), mark_each};
        if (mark_each) lane.operations.push_back([&](hipStream_t stream) { count_clock(clock, stream); });
        return run_lanes(machine, {lane})[0];
    };
    const double about = release(2, true).duration(1);
    const auto per_release = std::clamp<std::int64_t>(static_cast<std::int64_t>(1000 / about), 1, 20);

    Result result;
    std::vector<double> clocks;
    while (static_cast<std::int64_t>(result.samples.size()) < c.count("n_samples")) {
        const LaneTimes times = release(per_release + (per_release > 1), true);
        // The first run of several also contains the start after the gate.
        for (std::size_t i = per_release > 1; i + 1 < times.ends.size(); ++i)
            result.samples.push_back(times.duration(i));
        clocks.emplace_back();
        check(hipMemcpy(&clocks.back(), clock, sizeof(double), hipMemcpyDeviceToHost));
    }
    std::vector<double> chains;
    for (int i = 0; i < 5; ++i) {
        const LaneTimes times = release(per_release, false);
        chains.push_back((times.end() - times.start) / static_cast<double>(per_release));
    }
    result.more.add("chain_us", median(chains))
        .add("clock_MHz", median(clocks))
        .add("chain_length", per_release)
        .add("algorithm", gemm->algorithm());
    return result;
}

}  // namespace

Question gemm_alone() {
    return {{"gemm", gemm_keys({{"weights", Type::word, "warm", {"warm", "cold"}},
                                {"gpu", Type::count, "0"},
                                {"n_samples", Type::count, "12"}})},
            run};
}

}  // namespace overlap::hip
