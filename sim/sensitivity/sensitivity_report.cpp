#include <algorithm>
#include <array>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/gnuplot_parts.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/sensitivity/sensitivity.hpp"

namespace overlap {
namespace {

std::string change_text(const ChangedRuns& side) {
    return side.refusal.empty() ? signed_percent_text(side.change) : "not allowed";
}

std::string name_of(const Influence& one) {
    return one.key + (one.moves.empty() ? "" : " (+" + std::to_string(one.moves.size()) + ")");
}

std::string share_text(double by) {
    return plain(100 * by) + " %";
}

/// The first rows to show: those with an effect, and no more than `most`.
std::size_t shown_rows(const Sensitivity& result, std::size_t most) {
    const auto first_without =
        std::ranges::find_if(result.values, [](const Influence& one) { return one.effect < 5e-5; });
    return std::min(most, static_cast<std::size_t>(first_without - result.values.begin()));
}

// clang-format off
std::span<const OutputKey<ChangedRuns>> side_keys() {
    using S = ChangedRuns;
    const auto of_run = [](const std::string& key, const Json& schema, auto value) {
        return OutputKey<S>{key, schema, [=](const S& side) { return side.refusal.empty() ? Json(value(side)) : left_out; }, false};
    };
    static const std::vector<OutputKey<S>> keys{
        {"value", any_number("The changed value."), [](const S& side) { return side.value; }},
        of_run("makespan_us", number_from(0, "Of the best schedule then."), [](const S& side) { return to_microseconds(side.makespan); }),
        of_run("change", any_number("makespan / that of the result - 1."), [](const S& side) { return side.change; }),
        of_run("best", text_schema("That schedule.", 1), [](const S& side) { return side.best; }),
        {"error", text_schema("Why there is no such run: the value is out of range.", 1),
            [](const S& side) { return side.refusal.empty() ? left_out : Json(side.refusal); }, false}};
    return keys;
}

std::span<const OutputKey<Influence>> influence_keys() {
    using I = Influence;
    static const std::array<std::string, 6> marks{"measured", "fitted", "derived", "data sheet", "estimate", "published"};
    const auto side = [](const std::string& key, const std::string& doc, ChangedRuns Influence::*member) {
        return OutputKey<I>{key, keys_schema(doc, side_keys()), [=](const I& i) { return written(i.*member, side_keys()); }};
    };
    static const std::vector<OutputKey<I>> keys{
        {"key", {{"description", "As in a what-if."}, {"type", "string"}, {"pattern", "^(topology|device)\\."}}, [](const I& i) { return i.key; }},
        {"value", any_number("As the files have it."), [](const I& i) { return i.value; }},
        {"unit", text_schema("As the key ends; empty for shares and counts.", 0), [](const I& i) { return i.unit; }},
        {"kind", choice_of(influence_kinds, "hardware: of links, memory, units, engines and their latencies; fit: a constant of a cost model."), [](const I& i) { return i.kind; }},
        {"mark", choice_of(marks, "Kind of the value's source; published: none of the others."), [](const I& i) { return i.mark; }},
        {"source", text_schema("The source in words.", 0), [](const I& i) { return i.source; }},
        {"moves", {{"description", "Values that follow this one and change with it."}, {"type", "array"}, {"items", {{"type", "string"}}}}, [](const I& i) { return i.moves; }},
        {"effect", number_from(0, "The larger |change|."), [](const I& i) { return i.effect; }},
        side("low", "With the value lower by 'by'.", &Influence::low), side("high", "With the value higher by 'by'.", &Influence::high)};
    return keys;
}

std::span<const OutputKey<Sensitivity>> sensitivity_keys() {
    using S = Sensitivity;
    static const std::vector<OutputKey<S>> keys{
        {"schema", {{"description", "Version of this format."}, {"const", 1}}, [](const S&) { return 1; }},
        {"config", {{"description", "The best schedule's run config, every default filled in (run.schema.json)."}, {"type", "object"}}, [](const S& s) { return s.config; }},
        {"by", number_from(0, "Share by which each value is changed."), [](const S& s) { return s.by; }},
        {"schedules", list_schema("Those compared.", {{"type", "string"}}), [](const S& s) { return s.schedules; }},
        {"makespan_us", number_from(0, "Of the best schedule, nothing changed."), [](const S& s) { return to_microseconds(s.makespan); }},
        {"best", text_schema("That schedule.", 1), [](const S& s) { return s.best; }},
        {"notes", {{"description", "On what-ifs of the config, a sentence each."}, {"type", "array"}, {"items", {{"type", "string"}}}}, [](const S& s) { return s.remarks.notes; }},
        {"values", list_of("Numbers of the machine's files.", influence_keys()),
            [](const S& s) { return all_written(std::span(s.values), influence_keys()); }}};
    return keys;
}
// clang-format on

}  // namespace

std::string to_text(const Sensitivity& result, std::size_t most_rows) {
    constexpr std::size_t name = 46, value = 10, unit = 7, mark = 11, side = 12;
    const TimeScale scale(result.makespan);
    const bool several = result.schedules.size() > 1;
    std::string text =
        clipped(result.scenario + ", " + (several ? "best schedule " : "schedule ") + result.best +
                ": makespan " + scale.format(result.makespan) + " " + scale.unit()) +
        "\n";
    for (const std::string& line : lines_of(result.remarks)) text += line + "\n";
    text += "change of the makespan where one value changes by " + share_text(result.by) +
            "; (+n): n values that follow it move along\n";
    const auto add = [&](const Influence& one) {
        text += left(name_of(one), name) + right(plain(one.value), value) + " " + left(one.unit, unit) +
                left(one.mark, mark) + right(change_text(one.low), side) +
                right(change_text(one.high), side) + "\n";
        if (!one.other_best) return;
        for (const auto& [sign, at] : {std::pair("-", &one.low), std::pair("+", &one.high)})
            if (at->refusal.empty() && at->best != result.best)
                text += "    best at " + std::string(sign) + share_text(result.by) + ": " + at->best + "\n";
    };
    constexpr std::array titles{"hardware", "fit: constants of cost models"};
    for (std::size_t kind = 0; kind < influence_kinds.size(); ++kind) {
        Sensitivity part = result;
        std::erase_if(part.values, [&](const Influence& one) { return one.kind != influence_kinds[kind]; });
        if (part.values.empty()) continue;
        const std::size_t rows = shown_rows(part, most_rows),
                          effective = shown_rows(part, part.values.size());
        text += "\n" + left(titles[kind], name) + right("now", value) + " " + left("", unit) +
                left("source", mark) + right("-" + share_text(result.by), side) +
                right("+" + share_text(result.by), side) + "\n";
        for (std::size_t i = 0; i < part.values.size(); ++i)
            if (i < rows || part.values[i].other_best) add(part.values[i]);
        if (effective > rows) text += std::to_string(effective - rows) + " more values change less\n";
        text += std::to_string(part.values.size() - effective) + " values change it by less than 0.005 %\n";
    }
    if (several) {
        const auto others = std::ranges::count_if(result.values, &Influence::other_best);
        text += std::to_string(others) + " values change which schedule is best\n";
    }
    return text;
}

Json to_json(const Sensitivity& result) {
    return written(result, sensitivity_keys());
}

Json sensitivity_schema() {
    return file_of_keys(
        "Sensitivity",
        "What 'sim sensitivity --format json' prints: the makespan with each number of the machine "
        "changed, the largest effect first.",
        sensitivity_keys());
}

std::string to_csv(const Sensitivity& result) {
    std::string text =
        "key,value,unit,kind,mark,moves,effect,low_value,low_makespan_us,low_change,low_best,high_value,"
        "high_makespan_us,high_change,high_best," +
        remark_columns + "\n";
    const Json json = to_json(result);
    for (const Json& one : json["values"]) {
        for (const char* column : {"key", "value", "unit", "kind", "mark"})
            text += csv_cell(one[column]) + ",";
        text += std::to_string(one["moves"].size()) + "," + csv_cell(one["effect"]);
        for (const char* side : {"low", "high"})
            for (const char* column : {"value", "makespan_us", "change", "best"})
                text += "," + csv_cell(one[side].contains(column) ? one[side][column] : Json());
        text += "," + remark_cells(result.remarks) + "\n";
    }
    return text;
}

GnuplotScript tornado(const Sensitivity& result, std::size_t most_rows) {
    using namespace gnuplot;
    const std::size_t rows = std::max<std::size_t>(shown_rows(result, most_rows), 1);
    std::array<std::string, 2> bars;
    std::vector<std::string> names;
    double most = 0;
    for (std::size_t i = 0; i < std::min(rows, result.values.size()); ++i) {
        const Influence& one = result.values[i];
        names.push_back(name_of(one) + ", " + one.mark);
        for (std::size_t high = 0; high < 2; ++high) {
            const ChangedRuns& side = high == 1 ? one.high : one.low;
            if (!side.refusal.empty()) continue;
            const double percent = 100 * side.change;
            most = std::max(most, std::abs(percent));
            bars[high] +=
                numbers({std::min(0.0, percent), std::max(0.0, percent), static_cast<double>(i)}) + "\n";
        }
    }
    most = most > 0 ? 1.05 * most : 1;
    gnuplot::DataBlocks blocks;
    std::vector<std::string> layers;
    for (std::size_t high = 0; high < 2; ++high)
        if (!bars[high].empty())
            layers.push_back(blocks.add(bars[high]) +
                             " using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror fs solid noborder fc rgb '" +
                             (high == 1 ? "#C8553D" : "#3D7EA6") + "' title " +
                             gnuplot_quoted((high == 1 ? "+" : "-") + share_text(result.by)));
    constexpr int length = 620;
    GnuplotScript script{length + width_of(names) + 160, 150 + 28 * static_cast<int>(rows), ""};
    const TimeScale scale(result.makespan);
    const std::vector<std::string> changes = texts_of(result.remarks);
    script.text =
        blocks.text() + "set title " +
        broken(result.scenario + ", " + result.best + ": " + scale.format(result.makespan) + " " +
                   scale.unit() + (changes.empty() ? "" : "; " + joined(changes, "; ")),
               script.width) +
        "\nset border 3 lc rgb '#555555'\nset tics nomirror out\nset grid x lc rgb '#E6E6E6' lw 1\n" +
        "set key outside right top Left reverse samplen 2\n" + axis_title('x', "change of the makespan [%]") +
        named_tics('y', names) + number_tics("x", -most, most, length) + "set xrange [" + numbers({-most}) +
        ":" + numbers({most}) + "]\nset yrange [" + std::to_string(rows) + "-0.4:-0.6]\n" + plot_of(layers);
    return script;
}

}  // namespace overlap
