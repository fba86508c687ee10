// The list of questions, and medians.

#include <algorithm>
#include <cmath>

#include "models/calibration/hip/question.hpp"

namespace overlap::hip {

Question gemm_alone();
Question local_copy();
Question memory_rate();
Question latency();
Question residency();
Question sustained();
Question energy();

const std::vector<Question>& questions() {
    static const std::vector<Question> all = {gemm_alone(), local_copy(), memory_rate(), latency(),
                                              residency(),  sustained(),  energy()};
    return all;
}

void need_gpus(const Machine& machine, std::int64_t count) {
    if (machine.gpus() < count) throw Skipped("needs " + std::to_string(count) + " GPUs");
    if (count > 1 && !machine.peers()) throw Skipped("needs GPUs that reach each other's memory");
}

double median(std::vector<double> samples) {
    if (samples.empty()) return std::nan("");
    std::sort(samples.begin(), samples.end());
    const std::size_t middle = samples.size() / 2;
    return samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double percentile_90(std::vector<double> samples) {
    if (samples.empty()) return std::nan("");
    std::sort(samples.begin(), samples.end());
    return samples[(samples.size() - 1) * 9 / 10];
}

}  // namespace overlap::hip
