#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"
#include "sim/sweep/axes.hpp"
#include "sim/sweep/expressions.hpp"

namespace overlap {

struct DesignPoint {
    std::uint64_t number = 0;  ///< in the product of all axes, the last of them the fastest
    Json values;               ///< of the swept fields that are set
    RunConfig config;
};

/// The run configs of a sweep file (configs/schema/sweep.schema.json): `base`, and every combination of the
/// axes' values that `where` allows. Points are made when asked for, so a large space takes no memory.
///
/// A swept parameter that a point's schedule (or agent) does not take is left out of it; of the combinations
/// that become the same by that, the first is a point and the others are not.
class DesignSpace {
public:
    /// Throws UserError for an unknown field or name, an empty axis, a bad constraint, a value with which no
    /// point can run, or a space without a point.
    /// `looked` is called with the number of combinations that were looked at for a first point, and of all.
    using Looked = std::function<void(std::uint64_t number, std::uint64_t size)>;
    DesignSpace(const std::filesystem::path& file, const ConfigFolder& folder,
                const Looked& looked = nullptr);
    /// The same from a part of another file, at `pointer`, without "schema", "name" and "description".
    DesignSpace(ConfigObject space, const std::string& pointer, const ConfigFolder& folder);

    const std::string& name() const { return name_; }
    /// Combinations, those that are no points too.
    std::uint64_t size() const { return size_; }
    const std::vector<std::string>& fields() const { return fields_; }
    /// For one thread's calls of point().
    Expressions constraints() const;
    /// None where the combination is no point. Throws UserError where a constraint has no truth value.
    std::optional<DesignPoint> point(std::uint64_t number, Expressions& constraints) const;
    /// The run config of a point with these values.
    Json run_config(const Json& values) const;
    /// With ranges and globs expanded, and the version that did it.
    Json resolved() const;

private:
    void read(ConfigObject& sweep, const ConfigFolder& folder, const Looked& looked = nullptr);
    using Places = std::vector<std::size_t>;  ///< of a combination, on each axis
    Places places(std::uint64_t number) const;
    Json assigned(const Places& places) const;
    bool repeated(const Places& places) const;
    Json variables(const RunConfig& config) const;
    void learn_names(const ConfigFolder& folder);
    void require_values_that_run(const ConfigFolder& folder) const;
    void require_a_point(const Looked& looked) const;

    std::string file_, place_, name_, description_;  ///< place: what JSON pointers in errors follow
    Json base_;
    std::vector<Axis> axes_;
    std::vector<std::string> fields_, where_;
    std::uint64_t size_ = 1;
    std::map<std::string, SchedulePtr> schedules_;
    std::map<std::string, std::shared_ptr<const Topology>> topologies_;  ///< by the name in configs
    std::map<std::string, Json> workloads_;
};

}  // namespace overlap
