#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/formula.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"
#include "sim/sweep/axes.hpp"

namespace overlap {

struct DesignPoint {
    std::uint64_t number = 0;  ///< index in the product of all axes; the last axis changes fastest
    Json values;               ///< of the swept fields that are set
    RunConfig config;
};

/// The run configs of a sweep file (configs/schema/sweep.schema.json): `base` with every combination of the
/// axes' values that `where` allows. Points are created on demand, so a large space takes no memory.
///
/// A workload {"model", "tokens", …} is a layer of a model (transformer/step_request.hpp).
///
/// A swept parameter that a point's schedule (or agent) does not use is left out of the point. Of
/// combinations that become equal by this, only the first is a point.
class DesignSpace {
public:
    /// Throws UserError for an unknown field or name, an empty axis, a bad constraint, a value with which no
    /// point can run, or a space without a point. `looked` is called with the number of combinations checked
    /// while looking for a first point, and with their total.
    using Looked = std::function<void(std::uint64_t number, std::uint64_t size)>;
    DesignSpace(const std::filesystem::path& file, const ConfigFolder& folder,
                const Looked& looked = nullptr);
    /// Reads the content of a sweep file; `name` is for errors.
    DesignSpace(const Json& json, const std::string& name, const ConfigFolder& folder,
                const Looked& looked = nullptr);
    /// Reads a part of another file, at `pointer`, without "schema", "name" and "description".
    DesignSpace(ConfigObject space, const std::string& pointer, const ConfigFolder& folder);

    const std::string& name() const { return sweep_.name; }
    /// Number of combinations, including those that are no points.
    std::uint64_t size() const { return size_; }
    const std::vector<std::string>& fields() const { return fields_; }
    /// None if the combination is no point. Throws UserError if a constraint has no truth value.
    std::optional<DesignPoint> point(std::uint64_t number) const;
    /// What becomes of the combinations.
    struct Counts {
        std::uint64_t points = 0, not_allowed = 0, repeated = 0;
    };
    Counts counts(const Looked& looked) const;
    /// The run config of a point with these values.
    Json run_config(const Json& values) const;
    /// With expanded ranges and globs, and the version of the program.
    Json resolved() const;

private:
    void read(ConfigObject& sweep, const ConfigFolder& folder, bool whole_file, const Looked& looked);
    using Places = std::vector<std::size_t>;  ///< index of a combination on each axis
    void expand_layer(Json& config) const;
    Places places(std::uint64_t number) const;
    Json assigned(const Places& places) const;
    bool repeated(const Places& places, const Json& values) const;
    Json variables(const RunConfig& config) const;
    void learn_names(const ConfigFolder& folder);
    void read_constraints();
    void require_values_that_run() const;
    void require_a_point(const Looked& looked) const;

    std::string file_, place_;  ///< place: prefix of JSON pointers in errors
    SweepFile sweep_;
    Formulas constraints_;
    std::vector<std::string> fields_;
    std::uint64_t size_ = 1;
    std::map<std::string, SchedulePtr> schedules_;
    std::map<std::string, std::shared_ptr<const Topology>> topologies_;  ///< by the name in configs
    std::map<std::string, Json> workloads_;
    std::shared_ptr<Resolver> resolver_;  ///< of what constraints see; thread-safe
};

}  // namespace overlap
