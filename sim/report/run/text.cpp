#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/gantt.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::size_t label_width = 22;
constexpr std::size_t number_width = 10;
using Lines = std::vector<std::string>;

std::string config_text(const RunResult& result, const char* key) {
    return result.config.contains(key) ? unquoted(result.config[key]) : "?";
}

bool is_pair(const RunResult& result) {
    return result.config.contains(Json::json_pointer("/workload/gemm"));
}

/// Schedules in which a GPU computes only one shard: hetero schedules do not apply.
bool gathers_results(const RunResult& result) {
    const Json& workload = result.config["workload"];
    return workload.value("order", "") == "gemm_first" && workload.value("collective", "") == "all_gather";
}

std::string schedule_text(const Json& config) {
    std::string text = schedule_or_plan(config);
    if (text.empty()) return "plan";  // of Python
    if (const auto params = config.find("params"); params != config.end() && params->is_object())
        for (const auto& [name, value] : params->items()) text += " " + name + "=" + unquoted(value);
    return text;
}

/// The schedules of a list's pairs that are cut, with the GEMMs of these pairs.
Lines pair_lines(const RunResult& result) {
    Lines lines;
    const auto pairs = result.config.find("schedules");
    if (pairs == result.config.end()) return lines;
    Json gemms = Json::object();  // by schedule
    for (const auto& [gemm, choice] : pairs->items()) gemms[schedule_text(choice)].push_back(gemm);
    for (const auto& [schedule, names] : gemms.items())
        append(lines, field(left(lines.empty() ? "pairs" : "", label_columns),
                            joined(names.get<std::vector<std::string>>()) + ": " + schedule));
    return lines;
}

/// The pair's dimensions by name, or the names of the operators.
std::string workload_text(const RunResult& result) {
    const Json& workload = result.config["workload"];
    if (!workload.is_object()) return unquoted(workload);
    std::string text;
    const auto put = [&](const Json& from, const char* key, const std::string& before) {
        if (from.contains(key)) text += before + unquoted(from[key]);
    };
    put(workload, "collective", "");
    put(workload, "order", " ");
    if (workload.contains("gemm")) {
        const Json& gemm = workload["gemm"];
        for (const auto& [key, value] : gemm.items())
            text += ((key == "m") ? ", m=" : " " + key + "=") + unquoted(value);
    }
    if (workload.contains("operators"))
        for (const Json& op : workload["operators"]) put(op, "name", text.empty() ? "operators " : ", ");
    return text;
}

Lines what_if_lines(const Json& what_if) {
    Lines lines;
    for (const auto& [path, value] : what_if.items())
        append(lines, field(left("what if", label_columns), path + " = " + unquoted(value), SIZE_MAX));
    return lines;
}

Lines note_lines(const Lines& notes) {
    Lines lines;
    for (const std::string& note : notes) append(lines, field(left("note", label_columns), note, SIZE_MAX));
    return lines;
}

Lines header(const RunResult& result, const Remarks& remarks) {
    Lines lines = field("", result.scenario);
    const auto add = [&](const char* label, const std::string& text) {
        append(lines, field(left(label, label_columns), text));
    };
    lines.push_back(left("topology", label_columns) + config_text(result, "topology"));
    if (const auto changes = result.config.find("what_if"); changes != result.config.end())
        append(lines, what_if_lines(*changes));
    if (result.config.contains("workload"))
        lines.push_back(left("workload", label_columns) + workload_text(result));
    add("schedule", schedule_text(result.config) + (result.own_kernel ? " (own kernel)" : ""));
    append(lines, pair_lines(result));
    std::string engine = result.simulation.engine + ", " + std::to_string(result.simulation.tasks) +
                         " tasks simulated in " + significant(result.simulation.wall_ms) + " ms";
    if (result.simulation.simulated_gpus < result.simulation.gpus)
        engine += ", " + std::to_string(result.simulation.simulated_gpus) + " of " +
                  std::to_string(result.simulation.gpus) + " GPUs, the others are alike";
    if (result.config.contains("host")) add("host", config_text(result, "host"));
    if (const auto off = result.config.find("without"); off != result.config.end() && !off->empty())
        engine += ", without " + off->dump();
    lines.push_back(left("engine", label_columns) + engine);
    append(lines, lines_of(result.confidence, SIZE_MAX));
    append(lines, note_lines(remarks.notes));
    return lines;
}

std::string named_time(const std::string& name, Seconds time, const TimeScale& scale) {
    return left(name, label_width) + right(scale.format(time), number_width) + " " + scale.unit();
}

std::string percent(double share, std::size_t width) {
    return right(fixed(100 * share, 1), width) + " %";
}

struct Loss {
    std::string name;
    Seconds time;
    const char* meaning;
    const char* remedy;  ///< what loses less of it
};

std::vector<Loss> largest_first(const Losses& all) {
    std::vector<Loss> table{
        {"decomposition", all.decomposition, "parts of a GEMM slower than the whole",
         "fewer or larger pieces"},
        {"contention", all.contention, "sharing of compute units, HBM, caches", "copy engines"},
        {"fill_drain", all.fill_drain, "waiting for first or last pieces", "smaller first and last pieces"},
        {"launch", all.launch, "launches, DMA commands, completions", "fewer pieces, or a graph"},
        {"packing", all.packing, "local copies around fused GEMMs", "an unfused schedule"},
        {"pattern", all.pattern, "links idle between transfers", "transfers to all peers at once"},
        {"host", all.host, "GPUs wait for their hosts' calls", "a graph, or fewer calls"},
        {"power", all.power, "GEMMs at the clock that the power limit leaves", "a higher limit"}};
    std::ranges::stable_sort(table, std::ranges::greater(),
                             [](const Loss& loss) { return std::abs(loss.time.si()); });
    return table;
}

/// The largest loss, in a sentence: what a user would change.
std::string what_decides(const RunResult& result) {
    constexpr double worth_saying = 0.02;
    const Loss loss = largest_first(result.losses).front();
    if (loss.time < worth_saying * result.makespan) return "nothing much is lost";
    // Where transfers follow one another, the share of the links says how many of them work at a time.
    if (loss.name == "pattern" && result.phases.comm > Seconds())
        return "it uses " +
               percent_text(result.used.utilisation.link * (result.makespan / result.phases.comm)) +
               " of the links' rate; hetero_fused_1d sends to all peers at once";
    return std::string(loss.meaning) + "; less with " + loss.remedy;
}

Lines verdict(const RunResult& result) {
    const auto& efficiency = result.baseline.overlap_efficiency;
    return {left("speed-up", label_width) + right(significant(result.baseline.speedup), number_width) +
                " x   of " + significant(result.baseline.time / result.ideal) + " x if ideal, over " +
                result.baseline.name,
            left("overlap efficiency", label_width) +
                (efficiency ? percent(*efficiency, number_width) + "   of the ideal gain"
                            : right("n/a", number_width) + "     nothing to gain"),
            left("what decides", label_width) + what_decides(result)};
}

Lines times(const RunResult& result, const TimeScale& scale) {
    const Seconds longest = std::max({result.makespan, result.phases.serial, result.baseline.time,
                                      result.ideal, result.phases.gemm, result.phases.comm});
    const auto line = [&](const std::string& name, Seconds time) {
        return named_time(name, time, scale) + "  " + bar(time / longest, 50);
    };
    Lines lines{line("makespan", result.makespan),
                line("without overlap", result.baseline.time),
                line("ideal", result.ideal),
                line(is_pair(result) ? "GEMM alone" : "computation alone", result.phases.gemm),
                line("transfers alone", result.phases.comm),
                line("exposed communication", result.phases.exposed_comm)};
    // Serial by this schedule's own transfers, where others are faster.
    if (result.phases.serial != result.baseline.time)
        lines.insert(lines.begin() + 2, line("serial", result.phases.serial));
    append(lines, verdict(result));
    if (result.simulation.seeds > 1)
        lines.push_back(
            left("drawn orders", label_width) + right(std::to_string(result.simulation.seeds), number_width) +
            "     who is first: makespan p10 " + scale.format(result.range.p10) + ", median " +
            scale.format(result.makespan) + ", p90 " + scale.format(result.range.p90) + " " + scale.unit());
    return lines;
}

Lines losses(const RunResult& result, const TimeScale& scale) {
    const std::vector<Loss> table = largest_first(result.losses);
    const auto size = [](const Loss& loss) { return std::abs(loss.time.si()); };
    const auto line = [&](const std::string& name, Seconds time, const std::string& rest) {
        return named_time(name, time, scale) + percent(time / result.makespan, 8) + "  " + rest;
    };
    Lines lines{"where the time was lost, and its share of the makespan"};
    for (const auto& [name, time, meaning, remedy] : table)
        if (!scale.shows_zero(time))
            lines.push_back(line("  " + name, time, left(bar(time.si() / size(table[0]), 14), 15) + meaning));
    lines.push_back(line("  makespan - ideal", result.makespan - result.ideal,
                         lines.size() == 1 ? "nothing was" : "= sum of the above"));
    return lines;
}

std::string utilisation(const Utilisation& used) {
    return "utilisation (mean)    compute units " + percent(used.cu, 0) + "   HBM " + percent(used.hbm, 0) +
           "   links " + percent(used.link, 0) + "   DMA engines " + percent(used.dma, 0);
}

Lines steady(const RunResult& result) {
    if (!result.steady) return {};
    return {left("steady state", label_width) + percent(result.steady->gemm_speed, number_width) +
            "   of a cool GPU's GEMM speed at " + significant(result.steady->power.si()) + " W a GPU"};
}

/// Total joules and their largest part; empty if unknown.
Lines energy(const RunResult& result) {
    if (!result.used.energy) return {};
    const Energy& all = *result.used.energy;
    std::array parts{std::pair{"idle", all.idle},
                     std::pair{"active", all.active},
                     std::pair{"compute", all.compute},
                     std::pair{"HBM", all.hbm},
                     std::pair{"links", all.links},
                     std::pair{"copy kernels", all.copy_kernels},
                     std::pair{"power limit", all.power_limit}};
    const auto share = [&](const auto& part) { return part.second / all.total(); };
    const auto size = [&](const auto& part) { return std::abs(share(part)); };
    std::ranges::stable_sort(parts, std::ranges::greater(), size);
    std::string line =
        left("energy", label_width) + right(significant(all.total().si()), number_width) + " J ";
    for (std::size_t i = 0; i < 4; ++i)
        if (size(parts[i]) >= 0.0005)
            line += std::string("  ") + parts[i].first + " " + percent(share(parts[i]), 0);
    return {line};
}

Lines next_steps(const RunResult& result) {
    std::string what = "every task of every GPU; open it in ui.perfetto.dev";
    if (result.baseline.speedup < 1) {
        const bool has_fused = is_pair(result) && config_text(result, "schedule") != "hetero_fused_1d" &&
                               result.config["workload"].value("order", "") != "independent" &&
                               !gathers_results(result);
        what = std::string("slower than without overlap; try ") +
               (has_fused ? "--schedule hetero_fused_1d" : "sim list schedules");
    }
    return {left("next", label_columns) + left("--trace out.json", 30) + what};
}

Lines report_lines(const RunResult& result, const Remarks& remarks) {
    const TimeScale scale(std::max(result.makespan, result.phases.serial));
    Lines lines = header(result, remarks);
    const auto section = [&](const Lines& more) {
        if (more.empty()) return;
        lines.emplace_back();
        append(lines, more);
    };
    section(times(result, scale));
    section(losses(result, scale));
    Lines used{utilisation(result.used.utilisation)};
    append(used, steady(result));
    append(used, energy(result));
    section(used);
    section(gantt(result.observed.timeline, 0, scale));
    section(next_steps(result));
    return lines;
}

}  // namespace

std::vector<std::string> lines_of(const Remarks& remarks) {
    Lines lines = what_if_lines(remarks.what_if);
    append(lines, note_lines(remarks.notes));
    return lines;
}

std::string no_effect_note(const std::string& key, const Json& value, const std::string& place) {
    return "what-if " + key + "=" + unquoted(value) + ": changes nothing in " + place;
}

std::vector<std::string> texts_of(const Remarks& remarks) {
    Lines texts;
    for (const auto& [path, value] : remarks.what_if.items())
        texts.push_back("what if " + path + " = " + unquoted(value));
    append(texts, remarks.notes);
    return texts;
}

std::string to_text(const RunResult& result, const Remarks& remarks) {
    std::string text;
    for (const std::string& line : report_lines(result, remarks)) text += clipped(line) + "\n";
    return text;
}

}  // namespace overlap
