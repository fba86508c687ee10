#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/confidence/evidence.hpp"
#include "sim/core/input_keys.hpp"

namespace overlap {

/// One kind of price of a run.
struct PricedPart {
    std::string name;  ///< "GEMM bf16", "DMA copies", "contention with DMA"
    Evidence evidence;
    std::string kernels_of = {};  ///< whose kernels were timed; empty: the device does not say, or no kernels
    /// Mean |predicted / measured − 1| to expect of this price: the evidence's error, or that of its kind elsewhere
    /// (Accuracy); none where neither is known
    std::optional<double> expected = {};
};

/// How sure a run's makespan is.
struct Confidence {
    std::vector<PricedPart> parts;
    std::string kind;                           ///< of run: "DMA copies beside GEMMs"
    std::optional<SchedulesMeasured> measured;  ///< where the error is that of measured schedules
    /// Parts of the expected error, as fractions of the makespan, by name of the price or of the width of Accuracy that
    /// each comes from. The parts count as independent.
    std::map<std::string, double> causes;
    double p90_over_mean = 0;          ///< of Accuracy; 0: the error is not known
    std::vector<MissedFigure> missed;  ///< published figures of such runs on such a device that are not met

    /// Expected |predicted / measured − 1| of the makespan; none if the error of any part is not known.
    std::optional<double> makespan_error() const;
    /// The measured time is between makespan · exp(−p90) and makespan · exp(p90) in nine of ten cases.
    std::optional<double> p90() const;
    /// The weakest of the parts' bases.
    Basis basis() const;
    /// Whose GEMMs the prices describe, by type where types differ; empty: unknown, or no GEMMs.
    std::string gemm_library() const;
};

/// Keys of a missed figure, in results and in configs/accuracy.json.
const std::vector<InputKey<MissedFigure>>& missed_keys();

/// "GEMM bf16 of hipBLASLt fitted ±7.1 % (117 rows; 25 of 30 prior)".
std::string text_of(const PricedPart& part);
Json to_json(const PricedPart& part);
/// The parts, the makespan and missed figures, in a line; ± is the mean of |predicted / measured − 1|. Empty without
/// parts.
std::string to_text(const Confidence& confidence);
/// That line as a field of a report, of at most `most` lines; the longest that is shipped takes 5. Empty without
/// parts.
std::vector<std::string> lines_of(const Confidence& confidence, std::size_t most = 6);
Json to_json(const Confidence& confidence);
Json confidence_schema();

}  // namespace overlap
