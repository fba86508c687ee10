#pragma once

#include <functional>

#include "sim/compare/measured_case.hpp"
#include "sim/report/comparison/comparison.hpp"

namespace overlap {

/// Predicts every case and computes its error. A case that can't be predicted (unknown schedule or topology)
/// is listed, but not counted. Uses all cores; the result does not depend on their number. `predicted` is
/// called, by any thread, for each case.
Comparison compare(const std::vector<MeasuredCase>& cases, const ConfigFolder& folder,
                   const std::function<void()>& predicted = nullptr);

/// Computes all summaries from the cases.
void summarise(Comparison& comparison);

/// Labels that groups and tolerances use.
inline const std::vector<std::string> comparison_labels{"system",   "schedule", "agent", "transfer",
                                                        "operator", "size",     "run"};

/// Claims in the cases themselves. A case without a claim that is off by an implausible factor
/// adds a claim that fails.
std::vector<Verdict> judge_cases(const Comparison& comparison);
/// Verdicts on the claims of a tolerance file (configs/schema/tolerances.schema.json). A claim without
/// cases is an error of the file, so that no claim is skipped silently.
std::vector<Verdict> judge(const Comparison& comparison, const std::filesystem::path& tolerances);
Json tolerances_schema();

}  // namespace overlap
