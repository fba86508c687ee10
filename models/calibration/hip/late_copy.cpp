// Measures when a copy starts that becomes ready in the middle of a GEMM.
//
// GEMM after GEMM on one stream of GPU 0; after wait_us a single copy of `size` (beside.hpp) on another
// stream. Samples: from the end of the wait to the copy's end, µs; this includes the time until the copy
// starts. More fields: alone_us, the same without the GEMMs; gemm_alone_us. Half the samples wait half a GEMM
// longer, so that the copy becomes ready at another point of a GEMM.

#include "models/calibration/hip/beside.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

constexpr int gemms = 6;

Result run(Machine& machine, const Case& c) {
    const std::string& kind = c.word("beside");
    const int blocks = static_cast<int>(c.count("blocks"));
    if (kind.ends_with("out"))
        throw UserError("late_copy measures copies on GPU 0's streams only, so beside= cannot be " + kind);
    need_gpus(machine, kind.starts_with("local") ? 1 : 2);
    const GemmShape shape = gemm_shape(c);
    check(hipSetDevice(0));
    const auto gemm = make_gemm(shape);
    const GemmOperands operands(machine, 0, shape);
    operands.check_result(*gemm);
    const Beside beside(machine, kind, 0, 1, blocks, c.bytes("size"));

    std::int64_t next = 0;
    const Operation one = [&](hipStream_t stream) { operands.run(*gemm, next++, stream); };
    const Lane worker{0, std::vector<Operation>(gemms, one)};
    const double gemm_us = run_lanes(machine, {worker})[0].duration(gemms / 2);
    const auto copier = [&](double wait) {
        Lane lane = beside.lanes(c.word("priority") == "high")[0];
        lane.delay_us = wait;
        return lane;
    };

    Result result;
    std::vector<double> alone;
    run_lanes(machine, {worker, copier(0)});
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample) {
        const double wait = static_cast<double>(c.count("wait_us")) + (sample % 2 ? gemm_us / 2 : 0);
        alone.push_back(run_lanes(machine, {copier(wait)})[0].duration(0));
        result.samples.push_back(run_lanes(machine, {worker, copier(wait)})[1].duration(0));
    }
    beside.expect();
    result.more.add("alone_us", median(alone)).add("gemm_alone_us", gemm_us).add("gemms", gemms);
    return result;
}

}  // namespace

Question late_copy() {
    return {{"late_copy", gemm_keys({{"beside", Type::word, "", beside_words},
                                     {"blocks", Type::count, "0"},
                                     {"size", Type::bytes, "1MiB"},
                                     {"priority", Type::word, "normal", {"normal", "high"}},
                                     {"wait_us", Type::count, "100"},
                                     {"n_samples", Type::count, "20"}})},
            run};
}

}  // namespace overlap::hip
