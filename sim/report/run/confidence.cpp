#include "sim/report/run/confidence.hpp"

#include <algorithm>

#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

std::string within(double error) {
    return "±" + percent_text(error);
}

/// "GEMM bf16 fitted ±7.1 % (117 rows)"
std::string text_of(const PricedPart& part) {
    const Evidence& evidence = part.evidence;
    std::string text = part.name + " " + basis_names[static_cast<std::size_t>(evidence.basis)];
    if (evidence.error) text += " " + within(*evidence.error);
    if (evidence.rows > 0) return text + " (" + std::to_string(evidence.rows) + " rows)";
    if (evidence.basis == Basis::estimate || evidence.estimates == 0) return text;
    return text + " (" + std::to_string(evidence.estimates) + " of " + std::to_string(evidence.values) +
           " estimated)";
}

std::string makespan_text(const Confidence& confidence) {
    if (confidence.measured) {
        const SchedulesMeasured& all = *confidence.measured;
        return "makespan " + within(all.mean) + ", p90 " + fixed(100 * all.p90, 1) + " (" +
               std::to_string(all.cases) + " measured on " + all.machine + ")";
    }
    if (confidence.makespan_error()) return "makespan " + within(*confidence.makespan_error()) + " by these";
    return "makespan's error not known" +
           (confidence.error_of_known ? ", " + within(*confidence.error_of_known) + " by those that are"
                                      : "");
}

}  // namespace

std::optional<double> Confidence::makespan_error() const {
    return measured || unknown().empty() ? error_of_known : std::nullopt;
}

Basis Confidence::basis() const {
    Basis weakest = Basis::measured;
    for (const PricedPart& part : parts) weakest = std::max(weakest, part.evidence.basis);
    return weakest;
}

std::string Confidence::unknown() const {
    std::string names;
    for (const PricedPart& part : parts)
        if (!part.evidence.error && part.evidence.basis != Basis::measured)
            names += (names.empty() ? "" : ", ") + part.name;
    return names;
}

std::string to_text(const Confidence& confidence) {
    if (confidence.parts.empty()) return "";
    std::string text;
    for (const PricedPart& part : confidence.parts) text += text_of(part) + "; ";
    return text + makespan_text(confidence);
}

Json to_json(const Confidence& confidence) {
    const auto percent = [](const std::optional<double>& error) {
        return error ? Json(100 * *error) : Json(nullptr);
    };
    Json json{{"basis", basis_names[static_cast<std::size_t>(confidence.basis())]},
              {"makespan_error_pct", percent(confidence.makespan_error())},
              {"known_parts_error_pct", percent(confidence.error_of_known)},
              {"from", confidence.measured ? "measured schedules" : "errors of parts"},
              {"parts", Json::array()}};
    for (const PricedPart& part : confidence.parts)
        json["parts"].push_back({{"name", part.name},
                                 {"basis", basis_names[static_cast<std::size_t>(part.evidence.basis)]},
                                 {"rows_fitted", part.evidence.rows},
                                 {"error_pct", percent(part.evidence.error)}});
    return json;
}

}  // namespace overlap
