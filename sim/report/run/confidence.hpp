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
};

/// "GEMM bf16 fitted ±7.1 % (117 rows)".
std::string text_of(const PricedPart& part);
/// The parts and the makespan, in a line; ± is the mean of |predicted / measured − 1|. Empty without parts.
std::string to_text(const Confidence& confidence);
Json to_json(const Confidence& confidence);
Json confidence_schema();

}  // namespace overlap
