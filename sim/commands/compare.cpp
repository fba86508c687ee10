#include "sim/compare/compare_cases.hpp"

#include <algorithm>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

struct CompareFlags {
    std::vector<std::string> traces, cost_models;
    std::string tolerances, html;
    std::string format = "text";
};

int execute(const CompareFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    std::vector<MeasuredCase> cases = read_measured_cases(flags.traces);
    if (!flags.cost_models.empty())
        for (MeasuredCase& one : cases) one.config.cost_models = flags.cost_models;
    if (!flags.html.empty()) require_writable(flags.html);
    Comparison comparison = [&] {
        ProgressReporter progress("cases", cases.size());
        return compare(cases, folder, [&progress] { progress.add(); });
    }();
    comparison.verdicts =
        flags.tolerances.empty() ? judge_cases(comparison) : judge(comparison, flags.tolerances);
    if (!flags.html.empty()) write_file_atomically(flags.html, to_html(comparison));
    print(flags.format == "json"  ? json_text(to_json(comparison)) + "\n"
          : flags.format == "csv" ? to_csv(comparison)
                                  : to_text(comparison));
    if (!comparison.not_predicted.empty())
        throw UserError(comparison.not_predicted.front() +
                        " (not predicted: " + std::to_string(comparison.not_predicted.size()) + " cases)");
    return std::any_of(comparison.verdicts.begin(), comparison.verdicts.end(),
                       [](const Verdict& verdict) { return verdict.fails(); })
               ? 3
               : 0;
}

}  // namespace

void add_compare_command(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "compare", "Predict measured cases and print the errors; exit 3 if one is outside its tolerance");
    auto flags = std::make_shared<CompareFlags>();
    command
        ->add_option("traces", flags->traces,
                     "Measured cases: *.json, *.jsonl, folders of such files, patterns")
        ->required();
    command->add_option("--tolerances", flags->tolerances, "File of claims (configs/tolerances/*.json)");
    command->add_option(
        "--cost-model", flags->cost_models,
        "Cost model instead of the default; repeatable (gemm_tiled: no GEMM time is looked up)");
    command->add_option("--html", flags->html, "Write a self-contained page with plots");
    command->add_option("--format", flags->format, "Output: text, json or csv")
        ->check(CLI::IsMember({"text", "json", "csv"}));
    command->callback([flags, &status] { status = execute(*flags); });
}

}  // namespace overlap
