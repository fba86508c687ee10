#include "sim/search/robust.hpp"

#include <tbb/parallel_for.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "sim/confidence/evidence.hpp"
#include "sim/core/mixed.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// A draw of the normal distribution (Box-Muller).
double normal(std::uint64_t draw, std::uint64_t what) {
    constexpr double all = 18446744073709551616.0;  // 2^64
    const std::uint64_t first = mixed(mixed(draw) ^ what), second = mixed(first);
    const double radius = (static_cast<double>(first) + 1) / all, angle = static_cast<double>(second) / all;
    return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
}

std::uint64_t number_of(double value) {
    return std::bit_cast<std::uint64_t>(value);
}

/// Equal for work of one kind and size on all GPUs.
std::uint64_t size_of(const Task& task) {
    if (const auto* gemm = std::get_if<GemmShape>(&task.work))
        return mixed(mixed(mixed(static_cast<std::uint64_t>(gemm->m)) ^ static_cast<std::uint64_t>(gemm->n)) ^
                     static_cast<std::uint64_t>(gemm->k)) ^
               static_cast<std::uint64_t>(gemm->accumulate);
    if (const auto* copy = std::get_if<CopyWork>(&task.work))
        return mixed(mixed(number_of(copy->bytes.si())) ^ number_of(copy->run.si())) ^
               static_cast<std::uint64_t>(copy->direction);
    if (const auto* local = std::get_if<LocalCopyWork>(&task.work))
        return mixed(number_of(local->bytes.si()));
    if (const auto* sum = std::get_if<ReduceWork>(&task.work)) return mixed(number_of(sum->bytes.si()));
    return 0;
}

double error_of(const Task& task, const Lengthened& errors) {
    const TaskKind kind = task.kind();
    // Packs and sums are kernels that stream memory, as copy kernels are.
    return kind == TaskKind::local_copy || kind == TaskKind::reduce ? errors.kernels : errors.of(task);
}

constexpr std::uint64_t latencies = 99;

void draw(const Task& task, Cost& cost, const PriceErrors& errors, std::uint64_t number) {
    static const double deviation = std::sqrt(std::numbers::pi / 2);  // over the mean distance
    const std::uint64_t kind = task.work.index() + (task.by_dma() ? 16 : 0);
    const double common = normal(number, kind), own = normal(number, size_of(task) + kind);
    scale(cost, std::exp(deviation * error_of(task, errors.work) * (common + own) / std::numbers::sqrt2));
    const double late = std::exp(deviation * errors.latency * normal(number, latencies));
    cost.launch.time = late * cost.launch.time;
    cost.launch.queued = late * cost.launch.queued;
    cost.setup = late * cost.setup;
    cost.switch_over = late * cost.switch_over;
    for (Seconds* one : {&cost.handoffs.other_stream, &cost.handoffs.other_gpu, &cost.handoffs.flag})
        *one = late * *one;
    if (auto* end = std::get_if<Completion>(&cost.end)) end->latency = late * end->latency;
}

Lengthened errors_in(const Scenario& scenario) {
    const TaskGraph graph = scenario.graph();
    return expected_errors({graph, *scenario.machine, scenario.settings.cost_models, scenario.host.get(),
                            true, scenario.needs_own_kernel(), true});
}

}  // namespace

PriceErrors price_errors(const Scenario& one, const Scenario& other) {
    const MachineEvidence& known = evidence_of(*one.machine);
    const auto width = [&](const char* name) {
        const double* found = known.accuracy ? value_at(known.accuracy->widths, name) : nullptr;
        return found == nullptr ? 0.0 : *found;
    };
    const double least = width("any run");
    const Lengthened a = errors_in(one), b = errors_in(other);
    PriceErrors errors;
    for (const auto factor : {&Lengthened::gemm, &Lengthened::dma, &Lengthened::kernels,
                              &Lengthened::collectives, &Lengthened::host})
        errors.work.*factor = std::max({least, a.*factor, b.*factor});
    if (errors.work.kernels == least) errors.work.kernels = width("copy kernels");
    // Small copies take little but latencies.
    errors.latency = known.small_dma.error.value_or(known.small_dma.elsewhere.value_or(width("DMA copies")));
    return errors;
}

GainDraws drawn_gain(const Scenario& slow, const Scenario& fast, const PriceErrors& errors, int draws,
                     std::uint64_t seed) {
    const TaskGraph slow_graph = slow.graph(), fast_graph = fast.graph();
    const Experiment slow_runs(slow, slow_graph), fast_runs(fast, fast_graph);
    const auto gain = [&](const auto& change) {
        return slow_runs.makespan(effects_of(slow), 0, change) /
                   fast_runs.makespan(effects_of(fast), 0, change) -
               1;
    };
    const double undrawn = gain([](const Task&, Cost&) {});
    std::vector<double> gains(static_cast<std::size_t>(draws));
    tbb::parallel_for(std::size_t{0}, gains.size(), [&](std::size_t i) {
        gains[i] = gain([&](const Task& task, Cost& cost) { draw(task, cost, errors, mixed(seed) + i); });
    });
    GainDraws result{.draws = draws};
    for (const double one : gains) {
        result.error += std::abs(one - undrawn) / draws;
        result.ahead += one > 0 ? 1.0 / draws : 0;
    }
    std::ranges::sort(gains);
    result.p10 = gains[gains.size() / 10];
    return result;
}

}  // namespace overlap
