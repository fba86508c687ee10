#include "sim/commands/terminal.hpp"
#include "sim/compare/compare_cases.hpp"

#include <spdlog/spdlog.h>
#include <algorithm>
#include <memory>

#include "sim/calibrate/command/measured_archive.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

struct CompareFlags {
    std::vector<std::string> traces, cost_models, hosts, what_ifs;
    std::string tolerances, html, device;
    std::string format = "text";
};

/// Puts the host files `hosts` in the place of the hosts of the same names. Throws UserError if no case has such a
/// host.
void replace_hosts(std::vector<MeasuredCase>& cases, const std::vector<std::string>& hosts,
                   const ConfigFolder& folder) {
    for (const std::string& file : hosts) {
        const std::string name = folder.host(file).name;
        bool found = false;
        for (MeasuredCase& one : cases) {
            if (one.config.host != name) continue;
            one.config.host = file;
            found = true;
        }
        if (!found)
            throw UserError(file + ": /name: is '" + name + "', which is the host of no measured case");
    }
}

std::vector<MeasuredCase> read_cases(const CompareFlags& flags) {
    std::vector<MeasuredCase> cases;
    std::vector<std::string> files;
    for (const std::string& path : flags.traces)
        if (is_measured_archive(path))
            append(cases, schedules_of_archive(path, flags.device));
        else
            files.push_back(path);
    if (files.empty()) return cases;
    std::vector<MeasuredCase> others = read_measured_cases(files);
    if (!flags.device.empty())
        for (MeasuredCase& one : others) put_on_device(one, flags.device);
    append(cases, others);
    return cases;
}

/// `unchanged`: the cases without `what_if`. Remarks are on a run of the first case.
Remarks remarks_on(const std::vector<MeasuredCase>& cases, std::vector<MeasuredCase> unchanged,
                   const Json& what_if, const Comparison& comparison, const ConfigFolder& folder) {
    if (what_if.empty() || comparison.cases.empty()) return {{}, what_if};
    const auto is_same = [&](const Json& other) {
        std::vector<MeasuredCase> changed = unchanged;
        for (MeasuredCase& one : changed)
            for (const auto& [key, value] : what_if.items())
                if (other.contains(key)) one.config.what_if[key] = value;
        return mapped(compare(changed, folder).cases, &ComparedCase::predicted) ==
               mapped(comparison.cases, &ComparedCase::predicted);
    };
    const RunConfig& config = cases.front().config;
    const Scenario scenario = resolve(config, folder);
    Remarks remarks = Remarker(folder).on_what_if(config, scenario, makespan_of(scenario),
                                                  {"in any of these predictions", is_same});
    remarks.what_if = what_if;
    for (const std::string& note : remarks.notes) spdlog::warn("{}", note);
    return remarks;
}

int execute(const CompareFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    std::vector<MeasuredCase> cases = read_cases(flags);
    if (!flags.cost_models.empty())
        for (MeasuredCase& one : cases) one.config.cost_models = flags.cost_models;
    replace_hosts(cases, flags.hosts, folder);
    const std::vector<MeasuredCase> unchanged = cases;
    Json what_if = Json::object();
    assign_what_ifs(what_if, flags.what_ifs);
    for (MeasuredCase& one : cases) one.config.what_if.update(what_if);
    require_outputs(std::vector<std::filesystem::path>{flags.html},
                    std::vector<std::filesystem::path>{flags.tolerances});
    Comparison comparison = compare(cases, folder, ProgressReporter("cases", cases.size()).counter());
    comparison.remarks = remarks_on(cases, unchanged, what_if, comparison, folder);
    comparison.verdicts =
        flags.tolerances.empty() ? judge_cases(comparison) : judge(comparison, flags.tolerances);
    const auto throw_if_not_predicted = [&] {
        if (!comparison.not_predicted.empty())
            throw UserError(comparison.not_predicted.front() + " (not predicted: " +
                            std::to_string(comparison.not_predicted.size()) + " cases)");
    };
    if (comparison.cases.empty()) throw_if_not_predicted();
    if (!flags.html.empty()) write_page(flags.html, page_of(comparison));
    if (flags.format == "text")
        print_for_people(to_text(comparison));
    else
        print(flags.format == "json" ? json_text(to_json(comparison)) + "\n" : to_csv(comparison));
    throw_if_not_predicted();
    return std::ranges::any_of(comparison.verdicts, &Verdict::fails) ? 3 : 0;
}

}  // namespace

void add_compare_command(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "compare", "Predict measured cases and print the errors; exit 3 if one is outside its tolerance");
    auto flags = std::make_shared<CompareFlags>();
    command
        ->add_option(
            "traces", flags->traces,
            "Measured cases: *.json, *.jsonl, folders of such files; *.jsonl.gz; patterns; archives of "
            "scripts/measure")
        ->required();
    command->add_option(
        "--device", flags->device,
        "Device to predict them as; default: that of their topology, for an archive the shipped device that "
        "its facts match");
    command->add_option("--tolerances", flags->tolerances, "File of claims (configs/tolerances/*.json)");
    command->add_option(
        "--cost-model", flags->cost_models,
        "Cost model instead of the default; repeatable (gemm_tiled: no GEMM time is looked up)");
    command->add_option(
        "--host", flags->hosts,
        "Host file in the place of the host of its name, as scripts/measure_pytorch wrote it; repeatable");
    add_what_if_flag(*command, flags->what_ifs);
    command->add_option("--html", flags->html, "Write a self-contained page with plots");
    add_format_flag(*command, flags->format);
    command->callback([flags, &status] { status = execute(*flags); });
}

}  // namespace overlap
