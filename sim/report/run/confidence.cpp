#include "sim/report/run/confidence.hpp"

#include <algorithm>

#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

std::string off_by(const std::optional<double>& error) {
    return error ? percent_text(*error) + " off" : "";
}

/// "GEMM bf16 fitted (117 rows, 7.1 % off)"
std::string text_of(const PricedPart& part) {
    const Evidence& evidence = part.evidence;
    std::string details;
    const auto add = [&](const std::string& detail) {
        if (!detail.empty()) details += (details.empty() ? "" : ", ") + detail;
    };
    if (evidence.rows > 0) add(std::to_string(evidence.rows) + " rows");
    if (evidence.basis != Basis::estimate && evidence.estimates > 0)
        add(std::to_string(evidence.estimates) + " of " + std::to_string(evidence.values) + " estimated");
    add(off_by(evidence.error));
    return part.name + " " + basis_names[static_cast<std::size_t>(evidence.basis)] +
           (details.empty() ? "" : " (" + details + ")");
}

std::string makespan_text(const Confidence& confidence) {
    if (confidence.measured) {
        const SchedulesMeasured& all = *confidence.measured;
        return "makespan: " + std::to_string(all.cases) + " measured schedules (" + all.machine + ") were " +
               percent_text(all.mean) + " off (p90 " + fixed(100 * all.p90, 1) + ")";
    }
    const std::string unknown = confidence.unknown();
    if (confidence.makespan_error())
        return "makespan: about " + off_by(confidence.makespan_error()) + " by the errors of these";
    return "makespan: error not known (" + unknown + ")" +
           (confidence.error_of_known ? "; by the rest " + percent_text(*confidence.error_of_known) : "");
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

std::vector<std::string> to_text(const Confidence& confidence) {
    std::string all;
    for (const PricedPart& part : confidence.parts) all += (all.empty() ? "" : "; ") + text_of(part);
    return {all, makespan_text(confidence)};
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
