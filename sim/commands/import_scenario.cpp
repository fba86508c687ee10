#include "sim/commands/import_scenario.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "models/cost_model_registry.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

using KindOfGpu = std::pair<int, TaskKind>;

/// Places in `spans` of each GPU's tasks of a kind, by start.
std::map<KindOfGpu, std::vector<std::size_t>> by_start(const std::vector<Span>& spans) {
    std::map<KindOfGpu, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < spans.size(); ++i) places[{spans[i].gpu, spans[i].kind}].push_back(i);
    for (auto& [key, of_kind] : places)
        std::ranges::stable_sort(of_kind, {}, [&](std::size_t place) { return spans[place].start; });
    return places;
}

}  // namespace

std::string topology_of(const std::string& device, int gpus, const ConfigFolder& folder) {
    const std::string lower = lower_case(device);
    std::string best;
    for (const std::string& name : folder.names("devices"))
        if (lower.find(name) != std::string::npos && name.size() > best.size()) best = name;
    const std::string topology = best + "_" + std::to_string(gpus);
    return !best.empty() && contains(folder.names("topologies"), topology) ? topology : "";
}

std::optional<GemmShape> guessed_shape(const ShapeHint& hint, const Machine& machine) {
    constexpr std::int64_t step = 128, largest = 1 << 18;
    std::int64_t rows = 0;
    for (std::int64_t side = step; side * side <= hint.operand; side += step)
        if (hint.operand % side == 0 && side % hint.parts == 0) rows = side;
    if (rows == 0) return std::nullopt;
    const CostModels models;
    const auto shape_of = [&](std::int64_t free) {
        const std::int64_t other = hint.operand / rows;
        return hint.of_a ? GemmShape{rows, free, other, hint.dtype}
                         : GemmShape{rows, other, free, hint.dtype};
    };
    const auto off = [&](std::int64_t free) {
        GemmShape part = shape_of(free);
        part.m /= hint.parts;
        return std::abs(isolated_time(models.cost({.work = part}, machine), machine.resources) / hint.time -
                        1);
    };
    std::map<std::int64_t, double> errors;  // by the free side
    double least = off(step);
    for (std::int64_t free = step; free <= largest; free += step) {
        const double error = errors[free] = off(free);
        least = std::min(least, error);
        if (error > least + 1) break;  // already twice too long
    }
    if (least >= 0.1) return std::nullopt;
    // Models have sides with large powers of two as factors. Times of neighbours differ by less than a recorded time is
    // off.
    constexpr double alike = 0.03;
    const auto rank = [&](const auto& one) {
        const auto& [free, error] = one;
        return error > least + alike ? std::pair(0, 0.0)
                                     : std::pair(std::countr_zero(static_cast<std::uint64_t>(free)), -error);
    };
    return shape_of(std::ranges::max_element(errors, {}, rank)->first);
}

Timeline with_names_of(const Scenario& scenario, const Timeline& recorded, std::string& notes) {
    const Timeline predicted = predict(scenario).timeline;
    std::vector<Span> spans(recorded.spans().begin(), recorded.spans().end());
    const std::vector<Span> tasks(predicted.spans().begin(), predicted.spans().end());
    const auto of_tasks = by_start(tasks);
    std::map<TaskKind, std::pair<std::size_t, std::size_t>> differ;  // recorded and predicted
    for (const auto& [key, places] : by_start(spans)) {
        const std::vector<std::size_t>* found = value_at(of_tasks, key);
        const std::size_t count = found == nullptr ? 0 : found->size();
        if (count != places.size()) {
            differ[key.second].first += places.size();
            differ[key.second].second += count;
            continue;
        }
        for (std::size_t i = 0; i < count; ++i) spans[places[i]].name = tasks[(*found)[i]].name;
    }
    for (const auto& [kind, counts] : differ)
        notes += "not paired  " + std::to_string(counts.first) + " x " +
                 task_kind_names[static_cast<std::size_t>(kind)] + " recorded, " +
                 std::to_string(counts.second) + " predicted\n";
    return Timeline(std::move(spans));
}

}  // namespace overlap
