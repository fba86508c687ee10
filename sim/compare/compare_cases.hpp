#pragma once

#include "sim/compare/measured_case.hpp"
#include "sim/report/comparison/comparison.hpp"

namespace overlap {

/// Predicts every case and says how far each is off. A case that can't be predicted (a schedule or topology
/// that is not there) is listed, not counted. Uses all cores; the result does not depend on their number.
Comparison compare(const std::vector<MeasuredCase>& cases, const ConfigFolder& folder);

/// Fills in every summary from the cases.
void summarise(Comparison& comparison);

/// Labels that groups and tolerances go by.
const std::vector<std::string>& comparison_labels();

/// Claims that single cases bring along, and a claim that fails for each that brings none and is off by a
/// factor that no model error explains.
std::vector<Verdict> judge_cases(const Comparison& comparison);
/// These, and those of a tolerance file (configs/schema/tolerances.schema.json). A claim whose cases are
/// absent is an error of the file, so that none is passed over.
std::vector<Verdict> judge(const Comparison& comparison, const std::filesystem::path& tolerances);

}  // namespace overlap
