#include "sim/confidence/confidence.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"
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

constexpr std::size_t causes_shown = 3;

/// "contention with DMA 3.1, GEMM bf16 1.2": the largest.
std::string causes_text(const Confidence& confidence) {
    std::vector<std::pair<std::string, double>> causes(confidence.causes.begin(), confidence.causes.end());
    std::ranges::stable_sort(causes, std::ranges::greater(), &std::pair<std::string, double>::second);
    causes.resize(std::min(causes.size(), causes_shown));
    return joined(
        mapped(causes, [](const auto& one) { return one.first + " " + fixed(100 * one.second, 1); }));
}

std::string makespan_text(const Confidence& confidence) {
    if (!confidence.makespan_error())
        return "makespan: error unknown, as these configs have no accuracy.json";
    const std::string text = "makespan " + within(*confidence.makespan_error()) + ", nine of ten within " +
                             percent_text(*confidence.p90());
    if (!confidence.measured) return text + " (" + causes_text(confidence) + ")";
    return text + " (" + std::to_string(confidence.measured->cases) + " measured on " +
           confidence.measured->machine + ")";
}

double miss(const MissedFigure& figure) {
    return figure.published == 0 ? 0 : std::abs(std::log(std::abs(figure.predicted / figure.published)));
}

/// The farthest one of several.
std::string missed_text(const std::vector<MissedFigure>& missed) {
    if (missed.empty()) return "";
    const MissedFigure& worst = *std::ranges::max_element(missed, {}, miss);
    return "; " + std::to_string(missed.size()) +
           " published figures of such runs are not met, the farthest " + significant(worst.published) + " " +
           worst.unit + ", predicted " + significant(worst.predicted) + " (" + worst.experiment + ")";
}

Json percent(const std::optional<double>& error) {
    return error ? Json(100 * *error) : Json(nullptr);
}

using Cause = std::pair<const std::string, double>;

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
        {"error_pct", or_null(number_from(0, "Mean |predicted / measured - 1| on measurements of this machine that no fit saw; null: not measured here.")),
            [](const PricedPart& part) { return percent(part.evidence.error); }},
        {"expected_error_pct", or_null(number_from(0, "The same to expect here: error_pct, or that of such prices on other machines (configs/accuracy.json).")),
            [](const PricedPart& part) { return percent(part.expected); }}};
    return keys;
}

std::span<const OutputKey<Cause>> cause_keys() {
    static const std::vector<OutputKey<Cause>> keys{
        {"name", text_schema("Kind of price, or of run.", 1), [](const Cause& one) { return one.first; }},
        {"error_pct", number_from(0, "Its error, in % of the makespan."), [](const Cause& one) { return 100 * one.second; }}};
    return keys;
}

std::span<const OutputKey<Confidence>> confidence_keys() {
    static const std::array<std::string, 2> origins{"measured schedules", "errors of parts"};
    static const std::vector<OutputKey<Confidence>> keys{
        {"kind", or_null(text_schema("Kind of run: what communicates, beside what; null if nothing is priced.", 1)), [](const Confidence& c) { return or_null(c.kind); }},
        {"basis", choice_of(basis_names, "The weakest of the parts'."), [](const Confidence& c) { return name_of(c.basis()); }},
        {"makespan_error_pct", or_null(number_from(0, "Expected |predicted / measured - 1|; null where configs/accuracy.json is missing.")),
            [](const Confidence& c) { return percent(c.makespan_error()); }},
        {"p90_error_pct", or_null(number_from(0, "In nine of ten cases 100 |ln(predicted / measured)| is below this.")),
            [](const Confidence& c) { return percent(c.p90()); }},
        {"causes", list_of("What makespan_error_pct is made of, as independent errors.", cause_keys()),
            [](const Confidence& c) { return Json(mapped(c.causes, [](const Cause& one) { return written(one, cause_keys()); })); }},
        {"missed", list_of("Published figures of such runs on such a device that are predicted outside their tolerance (configs/experiments).", missed_keys()),
            [](const Confidence& c) { return Json(mapped(c.missed, [](const MissedFigure& one) { return written(one, missed_keys()); })); }},
        {"from", choice_of(origins, "Whether schedules of this machine were measured."),
            [](const Confidence& c) { return origins[c.measured ? 0 : 1]; }},
        {"parts", list_of("Each kind of price of the run.", part_keys()),
            [](const Confidence& c) { return all_written(std::span(c.parts), part_keys()); }}};
    return keys;
}
// clang-format on

}  // namespace

const std::vector<InputKey<MissedFigure>>& missed_keys() {
    using M = MissedFigure;
    constexpr auto number = [](const char* name, double M::*member, const char* doc) {
        return InputKey<M>(
            name, any_number(doc),
            [=](ConfigObject& from, const std::string& key, M& to) {
                to.*member = from.number(key, Range{-1e30, 1e30});
            },
            member);
    };
    static const std::vector<InputKey<M>> keys{
        text_key<M>("experiment", &M::experiment, "System and experiment."),
        text_key<M>("figure", &M::figure, "Name of the figure."),
        text_key<M>("unit", &M::unit, "Unit of both numbers."),
        text_key<M>("device", &M::device, "Device of the machine."),
        text_key<M>("kind", &M::kind, "Kind of run."),
        number("published", &M::published, "Published."),
        number("predicted", &M::predicted, "Predicted.")};
    return keys;
}

std::string text_of(const PricedPart& part) {
    const Evidence& evidence = part.evidence;
    std::string text = part.name + (part.kernels_of.empty() ? " " : " of " + part.kernels_of + " ") +
                       name_of(evidence.basis);
    if (part.expected) text += " " + within(*part.expected) + (evidence.error ? "" : " as elsewhere");
    std::string more = evidence.rows > 0 ? std::to_string(evidence.rows) + " rows" : "";
    if (evidence.basis != Basis::estimate && evidence.estimates > 0)
        more += (more.empty() ? "" : "; ") + std::to_string(evidence.estimates) + " of " +
                std::to_string(evidence.values) + (evidence.basis == Basis::fitted ? " prior" : " estimated");
    return more.empty() ? text : text + " (" + more + ")";
}

std::optional<double> Confidence::makespan_error() const {
    if (measured) return measured->mean;
    if (p90_over_mean == 0) return std::nullopt;
    double squares = 0;
    for (const auto& [cause, share] : causes) squares += share * share;
    return std::sqrt(squares);
}

std::optional<double> Confidence::p90() const {
    if (measured) return measured->p90;
    return p90_over_mean == 0 ? std::nullopt : std::optional(p90_over_mean * *makespan_error());
}

Basis Confidence::basis() const {
    Basis weakest = Basis::measured;
    for (const PricedPart& part : parts) weakest = std::max(weakest, part.evidence.basis);
    return weakest;
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
    return text + makespan_text(confidence) + missed_text(confidence.missed);
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
