
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/reproduce/reproduce.hpp"

namespace overlap {
namespace {

std::string range_text(const PublishedCase& one) {
    return significant(one.low) + " to " + significant(one.high);
}

std::string status_text(const ReproducedCase& one) {
    if (one.as_stated()) return one.known_gap ? "known gap" : "enforced";
    return one.known_gap ? "CLOSED GAP" : "OUTSIDE";
}

std::string status_text(const ReproducedConclusion& one) {
    if (!one.as_stated()) return one.holds ? "HOLDS" : "REVERSED";
    std::string state = conclusion_state_names[static_cast<std::size_t>(one.state)];
    std::ranges::replace(state, '_', ' ');
    return state;
}

template <class Visit>
void for_each_case(const std::vector<ReproducedExperiment>& experiments, Visit&& visit) {
    for (const ReproducedExperiment& experiment : experiments)
        for (const ReproducedCase& one : experiment.cases) visit(experiment, one);
}

std::string kind_text(CaseKind kind, char separator = '_') {
    std::string name = case_kind_names[static_cast<std::size_t>(kind)];
    std::ranges::replace(name, '_', separator);
    return name;
}

struct KindTally {
    std::size_t within = 0;  ///< inside their tolerance
    std::size_t of = 0;
    std::size_t inside_p90 = 0,
                judged = 0;  ///< in the interval that is meant to hold nine of ten, and with one

    std::string text() const { return of == 0 ? "" : std::to_string(within) + " of " + std::to_string(of); }
};

struct Tally {
    std::size_t enforced = 0, gaps = 0, wrong = 0;
    std::array<KindTally, std::tuple_size_v<decltype(case_kind_names)>> kinds;  ///< by CaseKind
    std::array<std::size_t, std::tuple_size_v<decltype(conclusion_state_names)>> conclusions{};  ///< by state

    KindTally right() const { return {conclusions[0], conclusions[0] + conclusions[1] + conclusions[2]}; }
};

Tally tally(const std::vector<ReproducedExperiment>& experiments) {
    Tally sums;
    for_each_case(experiments, [&](const ReproducedExperiment&, const ReproducedCase& one) {
        ++(one.known_gap ? sums.gaps : sums.enforced);
        if (!one.as_stated()) ++sums.wrong;
        KindTally& kind = sums.kinds[static_cast<std::size_t>(one.kind)];
        ++kind.of;
        if (one.inside()) ++kind.within;
        if (one.p90) ++kind.judged;
        if (one.inside_p90()) ++kind.inside_p90;
    });
    for (const ReproducedExperiment& experiment : experiments)
        for (const ReproducedConclusion& one : experiment.conclusions) {
            ++sums.conclusions[static_cast<std::size_t>(one.state)];
            if (!one.as_stated()) ++sums.wrong;
        }
    return sums;
}

/// "independent: 31 of 52 within tolerance; fitted: 12 of 12 within tolerance" of the kinds that occur, then all.
std::string summary(const Tally& sums) {
    std::vector<std::string> kinds;
    for (std::size_t kind = 0; kind < sums.kinds.size(); ++kind)
        if (sums.kinds[kind].of > 0)
            kinds.push_back(kind_text(static_cast<CaseKind>(kind), ' ') + ": " + sums.kinds[kind].text() +
                            " within tolerance");
    std::vector<std::string> intervals;
    for (std::size_t kind = 0; kind < sums.kinds.size(); ++kind)
        if (sums.kinds[kind].judged > 0)
            intervals.push_back(kind_text(static_cast<CaseKind>(kind), ' ') + ": " +
                                std::to_string(sums.kinds[kind].inside_p90) + " of " +
                                std::to_string(sums.kinds[kind].judged));
    const std::string expected =
        intervals.empty() ? ""
                          : "in the interval meant to hold nine of ten: " + joined(intervals, "; ") + '\n';
    std::string conclusions;
    if (sums.right().of > 0)
        conclusions = "conclusions: " + std::to_string(sums.conclusions[0]) + " right, " +
                      std::to_string(sums.conclusions[1]) + " reversed, " +
                      std::to_string(sums.conclusions[2]) + " not expressible\n";
    return joined(kinds, "; ") + '\n' + expected + conclusions + std::to_string(sums.enforced) +
           " enforced, " + std::to_string(sums.gaps) + " known gaps, " + std::to_string(sums.wrong) +
           " not as stated";
}

std::string text(const std::vector<ReproducedExperiment>& experiments) {
    std::string out;
    for (const ReproducedExperiment& experiment : experiments) {
        out += experiment.system + "/" + experiment.name + ": " + experiment.source + '\n';
        for (const ReproducedCase& one : experiment.cases) {
            out += "  " + left(status_text(one), 11) + left(kind_text(one.kind, ' '), 13) +
                   right(significant(one.published), 9) + " -> " +
                   left(significant(one.predicted) + " " + one.unit, 14) +
                   left("[" + range_text(one) + "]", 20) + one.name + '\n';
            if (!one.reason.empty()) out += "             because " + one.reason + '\n';
        }
        for (const ReproducedConclusion& one : experiment.conclusions) {
            out += "  " + left(status_text(one), 16) + one.name + '\n';
            if (!one.reason.empty()) out += "             because " + one.reason + '\n';
        }
    }
    return out + summary(tally(experiments)) + '\n';
}

std::string with_line_ends(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    return text;
}

std::string table_of_cases(const std::vector<ReproducedExperiment>& experiments) {
    std::string out =
        "| system | figure | kind | published | predicted | accepted | status |\n"
        "|---|---|---|---|---|---|---|\n";
    for_each_case(experiments, [&](const ReproducedExperiment& experiment, const ReproducedCase& one) {
        out += "| " + experiment.system + " | " + one.name + " | " + kind_text(one.kind, ' ') + " | " +
               significant(one.published) + " " + one.unit + " | " + significant(one.predicted) + " | " +
               range_text(one) + " | " + status_text(one) + (one.reason.empty() ? "" : ": " + one.reason) +
               " |\n";
    });
    return out;
}

/// Empty where no source concludes anything.
std::string table_of_conclusions(const std::vector<ReproducedExperiment>& experiments) {
    std::string rows;
    for (const ReproducedExperiment& experiment : experiments)
        for (const ReproducedConclusion& one : experiment.conclusions)
            rows += "| " + experiment.system + " | " + one.name + " | " + status_text(one) +
                    (one.reason.empty() ? "" : ": " + one.reason) + " |\n";
    return rows.empty() ? "" : "\n| system | conclusion | here |\n|---|---|---|\n" + rows;
}

std::string table_of_experiments(const std::vector<ReproducedExperiment>& experiments) {
    std::string out = "| experiment | of |", rule = "|---|---|";
    for (std::size_t kind = 0; kind < case_kind_names.size(); ++kind) {
        out += ' ' + kind_text(static_cast<CaseKind>(kind), ' ') + " |";
        rule += "---|";
    }
    out += " known gaps | conclusions right |\n" + rule + "---|---|\n";
    const auto counts = [](const Tally& sums) {
        std::string cells;
        for (const KindTally& kind : sums.kinds) cells += ' ' + kind.text() + (kind.of > 0 ? " |" : "|");
        cells += ' ' + std::to_string(sums.gaps) + " | " + sums.right().text();
        return cells + (sums.right().of > 0 ? " |\n" : "|\n");
    };
    for (const ReproducedExperiment& experiment : experiments)
        out += "| `" + experiment.system + "/" + experiment.name + "` | " + experiment.source + " |" +
               counts(tally({experiment}));
    return out + "| all | |" + counts(tally(experiments));
}

Json causes_json(const std::map<std::string, double>& causes) {
    Json json = Json::array();
    for (const auto& [cause, share] : causes) json.push_back({{"name", cause}, {"error_pct", 100 * share}});
    return json;
}

Json reproduced_json(const ReproducedCase& one) {
    return {{"name", one.name},
            {"kind", kind_text(one.kind)},
            {"published", one.published},
            {"predicted", one.predicted},
            {"low", one.low},
            {"high", one.high},
            {"low_p90", one.p90 ? Json(one.p90->low) : Json()},
            {"high_p90", one.p90 ? Json(one.p90->high) : Json()},
            {"inside_p90", one.p90 ? Json(one.inside_p90()) : Json()},
            {"p90_causes", causes_json(one.causes)},
            {"device", or_null(one.device)},
            {"run_kind", or_null(one.run_kind)},
            {"unit", one.unit},
            {"status", one.known_gap ? "known_gap" : "enforced"},
            {"reason", one.reason},
            {"scenarios", one.scenarios},
            {"as_stated", one.as_stated()}};
}

Json reproduced_json_of(const ReproducedConclusion& one) {
    return {{"name", one.name},
            {"status", conclusion_state_names[static_cast<std::size_t>(one.state)]},
            {"holds", one.state == ConclusionState::not_expressible ? Json() : Json(one.holds)},
            {"reason", one.reason},
            {"as_stated", one.as_stated()}};
}

std::string csv(const std::vector<ReproducedExperiment>& experiments, const Remarks& remarks) {
    std::string out =
        "system,experiment,case,kind,published,predicted,low,high,low_p90,high_p90,unit,status,as_stated,reason," +
        remark_columns + "\n";
    for_each_case(experiments, [&](const ReproducedExperiment& experiment, const ReproducedCase& one) {
        const Json json = reproduced_json(one);
        out += csv_cell(experiment.system) + "," + csv_cell(experiment.name);
        for (const char* key : {"name", "kind", "published", "predicted", "low", "high", "low_p90",
                                "high_p90", "unit", "status", "as_stated", "reason"})
            out += "," + csv_cell(json.at(key));
        out += "," + remark_cells(remarks) + '\n';
    });
    for (const ReproducedExperiment& experiment : experiments)
        for (const ReproducedConclusion& one : experiment.conclusions) {
            const Json json = reproduced_json_of(one);
            out += csv_cell(experiment.system) + "," + csv_cell(experiment.name) + "," +
                   csv_cell(json.at("name")) + ",conclusion,,,,,,,," + csv_cell(json.at("status")) + "," +
                   csv_cell(json.at("as_stated")) + "," + csv_cell(json.at("reason")) + "," +
                   remark_cells(remarks) + '\n';
        }
    return out;
}

Json json(const std::vector<ReproducedExperiment>& experiments) {
    Json list = Json::array();
    for (const ReproducedExperiment& experiment : experiments) {
        list.push_back({{"system", experiment.system},
                        {"name", experiment.name},
                        {"description", experiment.description},
                        {"source", experiment.source},
                        {"cases", mapped(experiment.cases, reproduced_json)},
                        {"conclusions", mapped(experiment.conclusions, reproduced_json_of)}});
    }
    const Tally sums = tally(experiments);
    Json kinds = Json::object();
    for (std::size_t kind = 0; kind < sums.kinds.size(); ++kind)
        kinds[case_kind_names[kind]] = {{"within_tolerance", sums.kinds[kind].within},
                                        {"of", sums.kinds[kind].of},
                                        {"inside_p90", sums.kinds[kind].inside_p90},
                                        {"judged", sums.kinds[kind].judged}};
    Json conclusions = Json::object();
    for (std::size_t state = 0; state < sums.conclusions.size(); ++state)
        conclusions[conclusion_state_names[state]] = sums.conclusions[state];
    return {{"schema", 1},
            {"kinds", kinds},
            {"conclusions", conclusions},
            {"enforced", sums.enforced},
            {"known_gaps", sums.gaps},
            {"not_as_stated", sums.wrong},
            {"experiments", list}};
}

}  // namespace

std::string render(const std::vector<ReproducedExperiment>& experiments, ReproductionFormat format,
                   const Remarks& remarks) {
    if (format == ReproductionFormat::json) {
        Json all = json(experiments);
        if (!remarks.what_if.empty()) add_remarks(remarks, all);
        return all.dump(2) + '\n';
    }
    if (format == ReproductionFormat::csv) return csv(experiments, remarks);
    if (format == ReproductionFormat::markdown)
        return table_of_experiments(experiments) + '\n' + table_of_cases(experiments) +
               table_of_conclusions(experiments) + with_line_ends(texts_of(remarks));
    return with_line_ends(lines_of(remarks)) + text(experiments);
}

}  // namespace overlap
