#include "sim/report/run/confidence.hpp"

#include <algorithm>

#include "sim/core/output_keys.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

std::string within(double error) {
    return "±" + percent_text(error);
}

const std::string& name_of(Basis basis) {
    return basis_names[static_cast<std::size_t>(basis)];
}

std::string makespan_text(const Confidence& confidence) {
    if (confidence.measured) {
        const SchedulesMeasured& all = *confidence.measured;
        return "makespan " + within(all.mean) + ", p90 " + fixed(100 * all.p90, 1) + " (" +
               std::to_string(all.cases) + " measured on " + all.machine + ")";
    }
    if (confidence.makespan_error()) return "makespan " + within(*confidence.makespan_error()) + " by these";
    std::string text =
        "makespan: error unknown, as no measurement of this machine tells that of " + confidence.unknown();
    if (confidence.error_of_known)
        text += " (errors of the other parts alone change it by " + percent_text(*confidence.error_of_known) +
                ")";
    return text;
}

Json percent(const std::optional<double>& error) {
    return error ? Json(100 * *error) : Json(nullptr);
}

// clang-format off
std::span<const OutputKey<PricedPart>> part_keys() {
    static const std::vector<OutputKey<PricedPart>> keys{
        {"name", text_schema("Kind of price.", 1), [](const PricedPart& part) { return part.name; }},
        {"library", or_null(text_schema("Whose kernels were timed; null where the device does not say, and of what is no kernel of a library.", 1)),
            [](const PricedPart& part) { return or_null(part.kernels_of); }},
        {"basis", choice_of(basis_names, "How the price came about: measured here, fitted to measurements, published, derived from what is published, or estimated."),
            [](const PricedPart& part) { return name_of(part.evidence.basis); }},
        {"rows_fitted", whole_from(0, "Measurements in the fit; 0: not fitted."), [](const PricedPart& part) { return part.evidence.rows; }},
        {"values", whole_from(0, "Values with a source each, or of the fit; 0: not counted."), [](const PricedPart& part) { return part.evidence.values; }},
        {"estimates", whole_from(0, "Those of them that are estimates; of a fit, those that stayed near their priors."), [](const PricedPart& part) { return part.evidence.estimates; }},
        {"error_pct", or_null(number_from(0, "Mean |predicted / measured - 1| on measurements that no fit saw; null: not known.")),
            [](const PricedPart& part) { return percent(part.evidence.error); }}};
    return keys;
}

std::span<const OutputKey<Confidence>> confidence_keys() {
    static const std::array<std::string, 2> origins{"measured schedules", "errors of parts"};
    static const std::vector<OutputKey<Confidence>> keys{
        {"basis", choice_of(basis_names, "The weakest of the parts'."), [](const Confidence& c) { return name_of(c.basis()); }},
        {"makespan_error_pct", or_null(number_from(0, "Expected |predicted / measured - 1|; null where the error of a part is not known.")),
            [](const Confidence& c) { return percent(c.makespan_error()); }},
        {"known_parts_error_pct", or_null(number_from(0, "The same by the parts whose error is known; null where none is.")),
            [](const Confidence& c) { return percent(c.error_of_known); }},
        {"from", choice_of(origins, "Whether schedules of this machine were measured."),
            [](const Confidence& c) { return origins[c.measured ? 0 : 1]; }},
        {"parts", list_of("Each kind of price of the run.", part_keys()),
            [](const Confidence& c) { return all_written(std::span(c.parts), part_keys()); }}};
    return keys;
}
// clang-format on

}  // namespace

std::string text_of(const PricedPart& part) {
    const Evidence& evidence = part.evidence;
    std::string text = part.name + (part.kernels_of.empty() ? " " : " of " + part.kernels_of + " ") +
                       name_of(evidence.basis);
    if (evidence.error) text += " " + within(*evidence.error);
    std::string more = evidence.rows > 0 ? std::to_string(evidence.rows) + " rows" : "";
    if (evidence.basis != Basis::estimate && evidence.estimates > 0)
        more += (more.empty() ? "" : "; ") + std::to_string(evidence.estimates) + " of " +
                std::to_string(evidence.values) + (evidence.basis == Basis::fitted ? " prior" : " estimated");
    return more.empty() ? text : text + " (" + more + ")";
}

std::optional<double> Confidence::makespan_error() const {
    return measured || unknown().empty() ? error_of_known : std::nullopt;
}

Basis Confidence::basis() const {
    Basis weakest = Basis::measured;
    for (const PricedPart& part : parts) weakest = std::max(weakest, part.evidence.basis);
    return weakest;
}

std::string Confidence::unknown() const {
    std::vector<std::string> names;
    for (const PricedPart& part : parts)
        if (!part.evidence.error && part.evidence.basis != Basis::measured) names.push_back(part.name);
    return joined(names);
}

std::string Confidence::gemm_library() const {
    std::string all, last;
    bool differ = false;
    for (const PricedPart& part : parts) {
        if (!part.name.starts_with("GEMM ")) continue;
        differ = differ || (!all.empty() && part.kernels_of != last);
        last = part.kernels_of;
        all += (all.empty() ? "" : ", ") + part.name.substr(5) + ": " + part.kernels_of;
    }
    return differ ? all : last;
}

std::string to_text(const Confidence& confidence) {
    if (confidence.parts.empty()) return "";
    std::string text;
    for (const PricedPart& part : confidence.parts) text += text_of(part) + "; ";
    return text + makespan_text(confidence);
}

std::vector<std::string> lines_of(const Confidence& confidence, std::size_t most) {
    if (confidence.parts.empty()) return {};
    return field(left("confidence", label_columns), to_text(confidence), most);
}

Json to_json(const PricedPart& part) {
    return written(part, part_keys());
}

Json to_json(const Confidence& confidence) {
    return written(confidence, confidence_keys());
}

Json confidence_schema() {
    return keys_schema("How sure the makespan is.", confidence_keys());
}

}  // namespace overlap
