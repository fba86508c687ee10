#pragma once

#include <string>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/sweep/design_space.hpp"

namespace overlap {

/// Results as written to points.csv and points.jsonl, one line for each point.
struct Rows {
    std::string csv, jsonl;
    std::uint64_t points = 0, errors = 0;
    Json files = Json::object();  ///< digests of files that another process has read for them (FilesRead)

    Rows& operator+=(const Rows& other);
};

/// What points share: files read and baselines simulated. Thread-safe.
struct SharedParts {
    /// `at_once`: number of points that run at the same time and share the machine's memory.
    explicit SharedParts(const ConfigFolder& folder, int at_once = 1) : resolver(folder, at_once) {}
    Resolver resolver;
    Baselines baselines;
};

/// Runs points and writes their rows. The bytes of a row do not depend on who runs the point. One
/// object serves one thread.
class PointRunner {
public:
    PointRunner(const DesignSpace& space, SharedParts& shared) : space_(space), shared_(shared) {}

    /// Rows of the combinations first … first + count − 1; a failed point becomes a row with the reason.
    Rows run(std::uint64_t first, std::uint64_t count);

    /// The columns of points.csv, without a line break.
    static std::string header(const DesignSpace& space);

private:
    const DesignSpace& space_;
    SharedParts& shared_;
};

}  // namespace overlap
