// Measures which of two kernels gets the compute units first that become ready at the same time on two streams of GPU 0.
//
// One is a GEMM with more thread blocks than compute units, the other a copy by a kernel (beside.hpp), which waits for the
// GEMM's last thread blocks to start if the GEMM is first.
//   at=start   both streams continue when one event is recorded
//   at=middle  the GEMM follows another GEMM on its stream; the copy's stream waits for a mark between the two
// streams=gemm_first or copy_first: whose stream was created first, and is the one that the gate holds.
// Samples: how much longer than alone the copy took, µs, from when it became ready. More fields: alone_us,
// gemm_alone_us, and gemm_first, the fraction of samples in which the copy waited for more than half a GEMM.

#include <algorithm>

#include "models/calibration/hip/beside.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

/// Enqueues operations on both streams behind one release.
struct Race {
    Machine& machine;
    hipStream_t gemm_stream, copy_stream;
    bool gemm_held;  ///< the gate holds the GEMM's stream; the other waits for the release

    /// From the release to the end of the copy (`until_copy`) or of the GEMM's stream, µs.
    template <class Gemm, class Copy>
    double run(Gemm&& gemms, Copy&& copies, bool until_copy) const {
        const hipStream_t held = gemm_held ? gemm_stream : copy_stream;
        const hipStream_t other = gemm_held ? copy_stream : gemm_stream;
        const hipEvent_t release = machine.event(0, 0), copied = machine.event(0, 1),
                         worked = machine.event(0, 2);
        gate().hold(held);
        check(hipEventRecord(release, held));
        check(hipStreamWaitEvent(other, release, 0));
        gemms(gemm_stream);
        copies(copy_stream);
        check(hipEventRecord(worked, gemm_stream));
        check(hipEventRecord(copied, copy_stream));
        gate().open();
        machine.synchronize();
        float milliseconds = 0;
        check(hipEventElapsedTime(&milliseconds, release, until_copy ? copied : worked));
        return milliseconds * 1e3;
    }
};

Result run(Machine& machine, const Case& c) {
    const std::string& kind = c.word("beside");
    if (kind.find("cu") == std::string::npos || kind.ends_with("out"))
        throw UserError("first_served is about kernels on GPU 0's own streams: no " + kind);
    need_gpus(machine, kind.starts_with("local") ? 1 : 2);
    const GemmShape shape = gemm_shape(c);
    check(hipSetDevice(0));
    const auto gemm = make_gemm(shape);
    const GemmOperands operands(machine, 0, shape);
    operands.check_result(*gemm);
    const Beside beside(machine, kind, 0, 1, static_cast<int>(c.count("blocks")), c.bytes("size"));
    const Operation copy = beside.lanes(false)[0].operations[0];
    check(hipSetDevice(0));

    const bool middle = c.word("at") == "middle", gemm_held = c.word("streams") == "gemm_first";
    const Race race{machine, machine.stream(0, gemm_held ? 0 : 1), machine.stream(0, gemm_held ? 1 : 0),
                    gemm_held};
    std::int64_t next = 0;
    const Operation work = [&](hipStream_t stream) { operands.run(*gemm, next++, stream); };
    const Operation nothing = [](hipStream_t) {};
    const Operation gemms = [&](hipStream_t stream) {
        if (middle) {
            work(stream);
            check(hipEventRecord(machine.mark(0, 0), stream));
        }
        work(stream);
    };
    const Operation copies = [&](hipStream_t stream) {
        if (middle) check(hipStreamWaitEvent(stream, machine.mark(0, 0), 0));
        copy(stream);
    };

    Result result;
    std::vector<double> alone, gemm_alone;
    race.run(gemms, copies, true);
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample) {
        alone.push_back(race.run(nothing, copy, true));
        gemm_alone.push_back(race.run(work, nothing, false));
        result.samples.push_back(race.run(gemms, copies, true));
    }
    beside.expect();
    const double gemm_us = median(gemm_alone), ready = median(alone) + (middle ? gemm_us : 0);
    for (double& sample : result.samples) sample -= ready;
    const auto waited = std::count_if(result.samples.begin(), result.samples.end(),
                                      [&](double extra) { return extra > gemm_us / 2; });
    result.more.add("alone_us", median(alone))
        .add("gemm_alone_us", gemm_us)
        .add("gemm_first", static_cast<double>(waited) / static_cast<double>(result.samples.size()));
    return result;
}

}  // namespace

Question first_served() {
    return {{"first_served", gemm_keys({{"beside", Type::word, "", beside_words},
                                        {"blocks", Type::count, "8"},
                                        {"size", Type::bytes, "4MiB"},
                                        {"at", Type::word, "", {"start", "middle"}},
                                        {"streams", Type::word, "gemm_first", {"gemm_first", "copy_first"}},
                                        {"n_samples", Type::count, "30"}})},
            run};
}

}  // namespace overlap::hip
