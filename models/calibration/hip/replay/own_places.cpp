// Places for plans that name none, their data, and the check of what was copied and computed.

#include "models/calibration/hip/replay/own_places.hpp"

#include <algorithm>
#include <set>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/data.hpp"

namespace overlap::hip {
namespace {

constexpr std::int64_t element = 2, vector = 16, page = 4096;  // bytes
constexpr std::int64_t most_bytes = std::int64_t{1} << 36;
constexpr int apart = 4;  // rows of `run_bytes`: from one to the next at the source

std::int64_t bytes_in(const PlanLine& json, std::string_view key, std::int64_t most) {
    const JsonValue& value = json.at(key);
    const std::int64_t bytes = value.whole();
    if (bytes < vector || bytes > most || bytes % vector)
        throw UserError(value.where() + ": is " + std::to_string(bytes) +
                        ", allowed: multiples of 16 up to " + std::to_string(most) +
                        ", where no places are given");
    return bytes;
}

Rows rows_of(const PlanBlock& block, const PlanBuffer& buffer) {
    return {static_cast<std::size_t>(block.rows), static_cast<std::size_t>(block.columns * element),
            static_cast<std::size_t>(buffer.columns * element)};
}

GemmShape shape_of(const PlanTask& task) {
    return {task.to[0].rows, task.to[0].columns, task.from[0].columns};
}

}  // namespace

std::size_t OwnPlaces::buffer(int gpu, const char* name, std::int64_t rows, std::int64_t columns) {
    buffers_.push_back({gpu, name, rows, columns});
    return buffers_.size() - 1;
}

void OwnPlaces::of_gemm(const PlanLine& json, PlanTask& task) {
    const auto side = [&](const char* key) {
        const std::int64_t length = json.at(key).whole();
        if (length < 8 || length > (1 << 24) || length % 8)
            throw UserError(json.at(key).where() + ": is " + std::to_string(length) +
                            ", allowed: multiples of 8, where no places are given");
        return length;
    };
    if (task.accumulate) throw UserError(json.json().where() + ": accumulates, where no places are given");
    const std::int64_t m = side("m"), n = side("n"), k = side("k");
    Gemms& gemms = gemms_[{task.gpu, m, n, k}];
    if (gemms.a.empty()) {
        const auto sets = [&](std::int64_t rows, std::int64_t columns, const char* name) {
            std::vector<std::size_t> all(sets_of(rows * columns * element));
            for (std::size_t& one : all) one = buffer(task.gpu, name, rows, columns);
            return all;
        };
        gemms.a = sets(m, k, "a");
        gemms.b = buffer(task.gpu, "b", k, n);
        gemms.c = sets(m, n, "c");
    }
    task.from = {{gemms.a[gemms.next % gemms.a.size()], 0, 0, m, k}, {gemms.b, 0, 0, k, n}};
    task.to = {{gemms.c[gemms.next++ % gemms.c.size()], 0, 0, m, n}};
}

void OwnPlaces::of_copy(const PlanLine& json, int src, int dst, PlanTask& task) {
    const std::int64_t bytes = bytes_in(json, "bytes", most_bytes);
    const std::int64_t run = json.find("run_bytes") ? bytes_in(json, "run_bytes", bytes) : bytes;
    if (bytes % run)
        throw UserError(json.json().where() +
                        ": has run_bytes that are no divisor of bytes, where no places are given");
    const bool strided = run < bytes;
    const std::int64_t row = strided ? run : bytes % page ? vector : page;
    const auto [found, is_new] = copies_.try_emplace({task.gpu, task.stream, src, dst, strided ? run : -row});
    auto& [from, to] = found->second;
    if (is_new) {
        from = buffer(src, "source", 0, row / element * (strided ? apart : 1));
        to = buffer(dst, "destination", 0, row / element);
    }
    for (const std::size_t one : {from, to}) buffers_[one].rows = std::max(buffers_[one].rows, bytes / row);
    task.from = {{from, 0, 0, bytes / row, row / element}};
    task.to = {{to, 0, 0, bytes / row, row / element}};
}

void fill_own_places(const PlacedPlan& placed) {
    for (std::size_t i = 0; i < placed.memory.size(); ++i) {
        const PlanBuffer& buffer = placed.plan->buffers[i];
        check(hipSetDevice(buffer.gpu));
        if (buffer.name == "source")
            fill_words(placed.memory[i], bytes_of(buffer), i);
        else if (buffer.name == "a" || buffer.name == "b")
            fill_elements(placed.memory[i], bytes_of(buffer) / element, DType::bf16, i);
        else
            poison(placed.memory[i], bytes_of(buffer));
    }
}

void check_own_places(const PlacedPlan& placed) {
    const Plan& plan = *placed.plan;
    std::set<std::pair<std::size_t, std::int64_t>> seen;
    for (auto each = plan.tasks.rbegin(); each != plan.tasks.rend(); ++each) {  // the last that wrote counts
        const PlanTask& task = *each;
        if (task.to.empty()) continue;
        const PlanBlock &from = task.from[0], &to = task.to[0];
        if (!seen.emplace(to.buffer, to.rows).second) continue;
        check(hipSetDevice(plan.buffers[to.buffer].gpu));
        if (task.kind == PlanKind::gemm)
            compare_result(shape_of(task), placed.memory[from.buffer], placed.memory[task.from[1].buffer],
                           placed.memory[to.buffer]);
        else
            expect_words(placed.memory[to.buffer], rows_of(to, plan.buffers[to.buffer]),
                         rows_of(from, plan.buffers[from.buffer]), 0, from.buffer);
    }
}

}  // namespace overlap::hip
