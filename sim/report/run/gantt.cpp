#include "sim/report/run/gantt.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/ranges.hpp"
#include "sim/report/ticks.hpp"

namespace overlap {
namespace {

constexpr std::size_t bar_columns = 72;
constexpr std::size_t letters = 26;

constexpr std::array computation{TaskKind::gemm, TaskKind::memory_bound};
constexpr std::array local_work{TaskKind::local_copy, TaskKind::reduce};
constexpr std::array transfer{TaskKind::copy, TaskKind::collective};

using Spans = std::vector<const Span*>;

Spans select(const Timeline& timeline, int gpu, std::span<const TaskKind> kinds) {
    Spans result;
    for (const Span& span : timeline.spans())
        if (span.gpu == gpu && contains(kinds, span.kind)) result.push_back(&span);
    std::ranges::stable_sort(result, {}, &Span::start);
    return result;
}

/// Calls `visit(column, share)` for each column that the span touches, with the
/// fraction of the column it covers.
template <class Visit>
void for_each_column(const Span& span, Seconds end, Visit visit) {
    const double from = std::max(span.start / end * bar_columns, 0.0);
    const double to = std::min(span.end / end * bar_columns, static_cast<double>(bar_columns));
    for (auto column = static_cast<std::size_t>(from); column < bar_columns; ++column) {
        const auto edge = static_cast<double>(column);
        if (edge >= to) break;
        visit(column, std::min(to, edge + 1) - std::max(from, edge));
    }
}

/// The task that fills most of each column: one letter for each task, in order, or '#' for any task.
std::string task_row(const Spans& spans, Seconds end, bool lettered) {
    std::array<double, bar_columns> busy{};
    std::array<double, bar_columns> most{};
    std::string row(bar_columns, '.');
    for (std::size_t i = 0; i < spans.size(); ++i)
        for_each_column(*spans[i], end, [&](std::size_t column, double share) {
            busy[column] += share;
            if (share <= most[column]) return;
            most[column] = share;
            row[column] = lettered ? static_cast<char>('A' + i) : '#';
        });
    for (std::size_t column = 0; column < bar_columns; ++column)
        if (busy[column] > 0 && busy[column] < 0.5) row[column] = '-';
    return row;
}

/// Mean number of simultaneous spans in each column, rounded; at least 1 if there is any span.
std::string count_row(const Spans& spans, Seconds end) {
    std::array<double, bar_columns> active{};
    for (const Span* span : spans)
        for_each_column(*span, end, [&](std::size_t column, double share) { active[column] += share; });
    std::string row;
    for (const double count : active) {
        const int shown = count > 0 ? std::max(static_cast<int>(std::lround(count)), 1) : 0;
        row += shown == 0 ? '.' : shown > 9 ? '+' : static_cast<char>('0' + shown);
    }
    return row;
}

std::string axis(Seconds end, const TimeScale& scale) {
    constexpr double columns_per_label = 9;
    const double per_column = scale.value(end) / bar_columns;
    const double step = round_step(columns_per_label * per_column);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    std::string line;
    for (int i = 0;; ++i) {
        const std::string label = "|" + fixed(i * step, decimals);
        const auto at = static_cast<std::size_t>(std::lround(i * step / per_column));
        if (at + label.size() > bar_columns) break;
        line = left(line, at) + label;
    }
    return left(line, bar_columns) + "  " + scale.unit();
}

/// "A gemm s0, B gemm s7, ..." as far as the line goes.
std::string legend(const Spans& spans) {
    std::string text;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const std::string entry = std::string(1, static_cast<char>('A' + i)) + " " + spans[i]->name;
        const bool last = i + 1 == spans.size();
        if (label_columns + text.size() + entry.size() + (last ? 0 : 5) > report_columns) return text + "...";
        text += entry + (last ? "" : ", ");
    }
    return text;
}

}  // namespace

std::vector<std::string> gantt(const Timeline& timeline, int gpu, const TimeScale& scale) {
    const Seconds end = timeline.end();
    const std::array rows{select(timeline, gpu, computation), select(timeline, gpu, local_work),
                          select(timeline, gpu, transfer)};
    if (end <= Seconds() || std::ranges::all_of(rows, [](auto& row) { return row.empty(); })) return {};
    const auto row = [&](const char* label, const std::string& marks, std::span<const TaskKind> kinds) {
        const std::string busy = fixed(100 * (timeline.busy(gpu, kinds) / end), 1) + " %";
        return left(label, label_columns) + marks + right(busy, 9);
    };
    std::vector<std::string> lines{left("GPU " + std::to_string(gpu), label_columns) + axis(end, scale) +
                                   " busy"};
    const bool lettered = !rows[0].empty() && rows[0].size() <= letters;
    if (!rows[0].empty()) lines.push_back(row("compute", task_row(rows[0], end, lettered), computation));
    if (!rows[1].empty()) lines.push_back(row("local", task_row(rows[1], end, false), local_work));
    if (!rows[2].empty()) lines.push_back(row("transfers", count_row(rows[2], end), transfer));
    if (lettered) lines.push_back(clipped(std::string(label_columns, ' ') + legend(rows[0])));
    lines.emplace_back(label_columns, ' ');
    lines.back() += "(letter or #: a task; digit: transfers at once; -: under half busy; .: idle)";
    return lines;
}

}  // namespace overlap
