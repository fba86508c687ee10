#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/evidence.hpp"

namespace overlap {

/// One kind of price of a run.
struct PricedPart {
    std::string name;  ///< "GEMM bf16", "DMA copies", "contention with DMA"
    Evidence evidence;
    std::string kernels_of = {};  ///< whose kernels were timed; empty: the device does not say, or no kernels
};

/// How sure a run's makespan is.
struct Confidence {
    std::vector<PricedPart> parts;
    /// Expected |predicted / measured − 1| of the makespan by those parts whose error is known; none if none is
    std::optional<double> error_of_known;
    std::optional<SchedulesMeasured> measured;  ///< where the error is that of measured schedules

    /// That of the makespan; none if the error of any part is not known.
    std::optional<double> makespan_error() const;
    /// The weakest of the parts' bases.
    Basis basis() const;
    /// Names of parts that are not measured and whose error nobody measured, separated by commas.
    std::string unknown() const;
    /// Whose GEMMs the prices describe, by type where types differ; empty: unknown, or no GEMMs.
    std::string gemm_library() const;
};

/// "GEMM bf16 of hipBLASLt fitted ±7.1 % (117 rows; 25 of 30 prior)".
std::string text_of(const PricedPart& part);
Json to_json(const PricedPart& part);
/// The parts and the makespan, in a line; ± is the mean of |predicted / measured − 1|. Empty without parts.
std::string to_text(const Confidence& confidence);
/// The same as a field of a report, of at most `most` lines; of what is shipped the longest takes 5. Empty without
/// parts.
std::vector<std::string> lines_of(const Confidence& confidence, std::size_t most = 6);
Json to_json(const Confidence& confidence);
Json confidence_schema();

}  // namespace overlap
