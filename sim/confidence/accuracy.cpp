#include "sim/confidence/accuracy.hpp"

#include <array>

#include "sim/confidence/confidence.hpp"

namespace overlap {
namespace {

/// Kinds of prices, then kinds of runs, as makespan_error.cpp names them.
const std::array<std::string, 14> width_names{
    "GEMMs",      "grouped GEMMs",     "attention",         "DMA copies",   "copy kernels",
    "contention", "small collectives", "large collectives", "host calls",   "measured on another machine",
    "any run",    "another program",   "own kernels",       "several nodes"};

// clang-format off
void read_widths(ConfigObject& from, const std::string& key, Accuracy& to) {
    ConfigObject widths = from.object(key);
    for (const std::string& name : width_names) to.widths[name] = widths.number(name, Range{0, 10});
    widths.finish();
}

InputKeys<Accuracy> accuracy_keys() {
    using A = Accuracy;
    static const std::vector<InputKey<A>> keys{
        version_key<A>("accuracy"), text_key<A>("description", "Where the numbers come from."),
        {"p90_over_mean", number_from(1, "Ninth decile over mean of |ln(predicted / measured)|."),
            [](ConfigObject& from, const std::string& key, A& to) { to.p90_over_mean = from.number(key, Range{1, 10}); }},
        {"widths", {{"description", "Mean |ln(predicted / measured)| to expect, by kind of price or of run."}, {"type", "object"},
            {"additionalProperties", {{"type", "number"}, {"minimum", 0}, {"maximum", 10}}}}, read_widths},
        list_key<A>("missed", &A::missed, "Published figures that are predicted outside their tolerance.", missed_keys())};
    return keys;
}
// clang-format on

}  // namespace

std::shared_ptr<const Accuracy> read_accuracy(const std::filesystem::path& root) {
    const std::filesystem::path path = root / "accuracy.json";
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return nullptr;
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    return std::make_shared<const Accuracy>(read_keys<Accuracy>(file, accuracy_keys()));
}

Json accuracy_schema() {
    return file_of_keys("Accuracy",
                        "Errors to expect where a machine was not measured; written by scripts/accuracy.",
                        accuracy_keys());
}

}  // namespace overlap
