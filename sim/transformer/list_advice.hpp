#pragma once

#include "sim/transformer/study.hpp"

namespace overlap {

/// Advice for the pairs of an operator list: a schedule for each, chosen by the time of the whole list.
struct ListAdvice {
    ListStudy list;
    /// The list with these schedules; serial time and speed-up refer to the advice's baseline.
    RunResult run;
    AdviceBaseline baseline;
    std::string vendors_library;  ///< as of SimulatedAdvice
};

/// None for a pair, and for a list without pairs that a schedule serves. `advice`: of the whole list. Throws UserError.
std::optional<ListAdvice> advise_pairs(const Workload& workload, const StudyOptions& options,
                                       const SimulatedAdvice& advice, Resolver& resolver);

/// What follows the text of the whole list's advice.
std::string to_text(const ListAdvice& pairs);
Json to_json(const ListAdvice& pairs);
/// Rows in the columns of the whole list's advice: of each pair its choice, and the next one if there is another.
std::string to_csv_rows(const ListAdvice& pairs, const Remarks& remarks);

}  // namespace overlap
