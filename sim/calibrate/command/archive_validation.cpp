#include "sim/calibrate/command/archive_validation.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "sim/calibrate/fits/gemm_classes.hpp"
#include "sim/calibrate/fits/gemm_json.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/core/operators.hpp"
#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/resolver.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t worst_shown = 5;

bool is_unseen(const std::string& name) {
    return name.ends_with("in no fit") || name.ends_with("drawn shapes");
}

std::string errors_text(const ErrorSummary& errors) {
    return percent_text(errors.mean) + " (p90 " + percent_text(errors.p90) + ")";
}

// clang-format off
std::span<const OutputKey<ErrorSummary>> error_keys() {
    using E = ErrorSummary;
    static const std::array<OutputKey<E>, 4> keys{{
        {"cases", whole_from(1, "Measurements."), &E::count},
        {"mean_error_pct", any_number("Mean of |predicted / measured - 1|."), [](const E& errors) { return percent(errors.mean); }},
        {"p90_error_pct", any_number("Nine of ten are below."), [](const E& errors) { return percent(errors.p90); }},
        {"bias_pct", any_number("Mean with sign."), [](const E& errors) { return percent(errors.bias); }}}};
    return keys;
}

std::span<const OutputKey<RankingSummary>> choice_keys() {
    using R = RankingSummary;
    static const std::array<OutputKey<R>, 3> keys{{
        {"operators", whole_from(1, "Operators with two schedules and more."), &R::scenarios},
        {"best_within_2pct", any_number("Share of operators where it is within 2 % of the measured best, in %."), [](const R& of) { return percent(of.best_within_2pct); }},
        {"mean_regret_pct", any_number("How much longer than the measured best it takes, mean."), [](const R& of) { return percent(of.mean_regret); }}}};
    return keys;
}

Json class_errors(const ArchiveValidation& validation) {
    Json classes = Json::object();
    for (const auto& [name, errors] : validation.classes) classes[name] = written(errors, error_keys());
    return classes;
}

/// The comparison of schedules, if there is one with a case.
const Comparison* schedules_of(const ArchiveValidation& validation) {
    return validation.schedules && validation.schedules->all.count > 0 ? &*validation.schedules : nullptr;
}

/// Errors on the steps of traces/*/steps (models/calibration/step_errors.py). No archive has such steps: the group is
/// written by hand.
Json layers_schema() {
    Json schema = keys_schema("Layers of transformers, compiled, one after another in graphs on one GPU.", error_keys());
    schema["properties"]["machine"] = text_schema("GPU and program.", 1);
    schema["properties"]["file"] = text_schema("What was measured.", 1);
    for (const char* key : {"machine", "file"}) schema["required"].push_back(key);
    return schema;
}

/// The group "validation" of a calibration file.
std::span<const OutputKey<ArchiveValidation>> validation_keys() {
    using V = ArchiveValidation;
    static const std::array<OutputKey<V>, 6> keys{{
        {"provenance", {{"description", "Archive, machine and date."}, {"type", "object"}, {"minProperties", 1}}, [](const V& validation) {
            const MeasuredMachine& machine = validation.machine;
            return Json{{"file", validation.archive}, {"machine", std::to_string(machine.gpus) + " x " + machine.device}, {"date", machine.date}};
        }},
        {"sentence", text_schema("The same in a sentence.", 1), &V::sentence},
        {"classes", map_schema("Errors of single operations by class.", {{"minLength", 1}}, keys_schema("Errors of a class.", error_keys())), class_errors},
        {"schedules", keys_schema("Makespans of whole schedules of drawn operators.", error_keys()), [](const V& validation) {
            const Comparison* schedules = schedules_of(validation);
            return schedules != nullptr ? written(schedules->all, error_keys()) : left_out;
        }, false},
        {"choices", keys_schema("The schedule that is predicted to be the fastest of an operator.", choice_keys()), [](const V& validation) {
            const Comparison* schedules = schedules_of(validation);
            return schedules != nullptr && schedules->ranking.scenarios > 0 ? written(schedules->ranking, choice_keys()) : left_out;
        }, false},
        {"layers", layers_schema(), [](const V&) { return left_out; }, false}}};
    return keys;
}
// clang-format on

std::vector<std::string> errors_row(const std::string& name, const ErrorSummary& errors) {
    return {name, std::to_string(errors.count), percent_text(errors.mean), percent_text(errors.p90),
            signed_percent_text(errors.bias)};
}

std::vector<const ComparedCase*> worst(const Comparison& comparison) {
    std::vector<const ComparedCase*> cases = by_error(comparison);
    cases.resize(std::min(cases.size(), worst_shown));
    return cases;
}

void add_machine(Page& page, const ArchiveValidation& validation) {
    const MeasuredMachine& machine = validation.machine;
    std::vector<std::pair<std::string, std::string>> facts{
        {"machine", std::to_string(machine.gpus) + " x " + machine.device},
        {"measured", machine.date + ", " + validation.archive}};
    for (const auto& [key, value] : machine.values) facts.emplace_back(key, plain(value));
    for (const std::string& missing : machine.missing) facts.emplace_back("not measured", missing);
    for (const std::string& warning : machine.warnings) facts.emplace_back("noticed", warning);
    page.facts(facts);
}

void add_fits(Page& page, const ArchiveValidation& validation) {
    Page::Cells rows;
    for (const FitOrigins& fit : validation.fits)
        rows.push_back({fit.name, std::to_string(fit.cases), joined(fit.undetermined, " ")});
    page.heading("What the fits are made of",
                 "Parameters that the measurements do not determine stay near their priors.");
    page.table({"fit", "measurements", "not determined"}, rows);
}

void add_worst_operations(Page& page, const ArchiveValidation& validation) {
    Page::Cells rows;
    const std::span unseen(validation.unseen);
    for (const UnseenCase& one : unseen.first(std::min(unseen.size(), worst_shown)))
        rows.push_back({one.kind, one.name, significant(one.measured) + " " + one.unit,
                        significant(one.predicted) + " " + one.unit, signed_percent_text(one.error())});
    page.heading("The worst single operations");
    page.table({"kind", "case", "measured", "predicted", "error"}, rows);
}

}  // namespace

std::string ArchiveValidation::sentence() const {
    if (const Comparison* compared = schedules_of(*this)) {
        std::string text = "Schedules on this machine are predicted within " + errors_text(compared->all) +
                           " of " + std::to_string(compared->all.count) + " measured ones that no fit saw";
        if (const RankingSummary& ranking = compared->ranking; ranking.scenarios > 0)
            text += "; the one predicted to be the fastest is within 2 % of the fastest for " +
                    percent_text(ranking.best_within_2pct, 0) + " of " + std::to_string(ranking.scenarios) +
                    " operators";
        return text + ".";
    }
    if (classes.empty())
        return "Nothing that no fit saw was measured: how well this machine is predicted is not known.";
    const auto& [name, errors] = classes.front();
    return "On this machine, " + name + " are predicted within " + errors_text(errors) + " of " +
           std::to_string(errors.count) + " measurements that no fit saw; schedules were not measured.";
}

ArchiveValidation validate_fits(const std::string& device, const std::string& archive,
                                const MeasuredMachine& machine, const std::vector<MeasuredCalibration>& gemms,
                                const std::vector<DeviceCalibration>& others) {
    ArchiveValidation result{device, archive, machine, {}, {}, {}, {}};
    for (const MeasuredCalibration& gemm : gemms) {
        const std::string name = name_of(gemm.recipe.dtype) + " GEMMs";
        result.fits.push_back({name, gemm.data.rows.size(), undetermined_parameters(gemm.fit)});
        for (const ErrorClass& one : gemm_classes(gemm.unseen))
            if (one.name == all_gemms_class && one.count > 0)
                result.classes.emplace_back(name + " of 50 us and more", one.fitted);
        for (const JudgedGemm& one : gemm.unseen)
            if (one.measured.time >= shortest_class_time)
                result.unseen.push_back({name, shape_name(one.measured.shape), "us",
                                         to_microseconds(one.measured.time), to_microseconds(one.fitted)});
    }
    for (const DeviceCalibration& other : others) {
        result.fits.push_back({other.problem.name, other.problem.rows.size(), other.undetermined()});
        const bool is_factor = other.problem.unit.starts_with('1');  // of the time alone
        for (const ErrorClass& one : other.classes())
            if (is_unseen(one.name) && one.count > 0) result.classes.emplace_back(one.name, one.fitted);
        for (std::size_t i = 0; i < other.problem.rows.size(); ++i) {
            const DeviceRow& row = other.problem.rows[i];
            if (std::ranges::any_of(row.classes, is_unseen))
                result.unseen.push_back({other.problem.name, row.name,
                                         is_factor ? "times" : other.problem.unit, row.measured,
                                         other.predicted[i]});
        }
    }
    std::ranges::stable_sort(result.unseen, std::ranges::greater(),
                             [](const UnseenCase& one) { return std::abs(one.error()); });
    return result;
}

bool holds_cases(const fs::path& file) {
    std::ifstream in(file);
    std::size_t found = 0;
    for (std::string line; std::getline(in, line);) found += line.find("\"samples_us\"") != std::string::npos;
    return found > 0;
}

std::optional<Comparison> compare_replays(const fs::path& folder, const fs::path& topologies,
                                          const std::string& device) {
    const fs::path file = folder / "replays.jsonl";
    if (!holds_cases(file)) return std::nullopt;
    std::vector<MeasuredCase> cases = read_measured_cases(std::vector{file.string()});
    for (MeasuredCase& one : cases) put_on_device(one, device, topologies);
    Comparison comparison =
        compare(cases, ConfigFolder::standard(), ProgressReporter("schedules", cases.size()).counter());
    const std::vector<const ComparedCase*> shown = worst(comparison);
    for (ComparedCase& one : comparison.cases) {
        if (one.spans.errors || !contains(shown, &one)) continue;
        const auto given = std::ranges::find_if(
            cases, [&](const MeasuredCase& other) { return other.origin == one.origin; });
        one.spans.predicted = predict(resolve(given->config, ConfigFolder::standard())).timeline;
    }
    return comparison;
}

std::string to_text(const ArchiveValidation& validation) {
    std::string text = "in no fit, so what to expect of operators that were not measured:\n";
    for (const auto& [name, errors] : validation.classes)
        text += "  " + name + ": " + errors_text(errors) + " off, of " + std::to_string(errors.count) + "\n";
    if (validation.schedules) {
        const Comparison& schedules = *validation.schedules;
        text += "  whole schedules: " + errors_text(schedules.all) + " off, bias " +
                signed_percent_text(schedules.all.bias) + ", of " + std::to_string(schedules.all.count) +
                "\n";
        for (const GroupErrors& group : schedules.groups)
            if (group.key == "agent")
                text += "    by " + group.value + ": " + errors_text(group.errors) + " off, of " +
                        std::to_string(group.errors.count) + "\n";
        if (const RankingSummary& ranking = schedules.ranking; ranking.scenarios > 0)
            text += "  predicted best within 2 % of the best: " + percent_text(ranking.best_within_2pct, 0) +
                    " of " + std::to_string(ranking.scenarios) + " operators, mean regret " +
                    percent_text(ranking.mean_regret, 2) + "\n";
        for (const std::string& why : schedules.not_predicted) text += "  not predicted: " + why + "\n";
    }
    return text + validation.sentence() + "\n";
}

Json to_json(const ArchiveValidation& validation) {
    return written(validation, validation_keys());
}

Json validation_schema() {
    return keys_schema("How far predictions were from measurements that no fit saw.", validation_keys());
}

Page page_of(const ArchiveValidation& validation) {
    Page page("How well " + validation.device + " is predicted");
    page.text(validation.sentence());
    add_machine(page, validation);
    Page::Cells rows;
    for (const auto& [name, errors] : validation.classes) rows.push_back(errors_row(name, errors));
    if (validation.schedules) rows.push_back(errors_row("whole schedules", validation.schedules->all));
    page.heading("Errors on what no fit saw");
    page.table({"", "cases", "mean |error|", "p90", "bias"}, rows);
    add_worst_operations(page, validation);
    add_fits(page, validation);
    if (!validation.schedules) return page;
    page.heading("The worst schedules", "The first two GPUs; point at a bar for its times.");
    for (const ComparedCase* one : worst(*validation.schedules)) add_timelines(page, *one);
    add_comparison(page, *validation.schedules);
    return page;
}

}  // namespace overlap
