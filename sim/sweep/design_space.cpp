#include "sim/sweep/design_space.hpp"

#include <algorithm>

#include "sim/chakra/chakra_workload.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/transformer/step_request.hpp"

namespace overlap {
namespace {

constexpr std::uint64_t most_combinations = 100'000'000;  // `where` is evaluated for each of them

/// Whether the swept field has no effect on a run with these values.
bool ignored(const std::string& field, const Json& values, const Json& base,
             const std::map<std::string, SchedulePtr>& schedules) {
    if (!field.starts_with("params.")) return false;
    const std::string parameter = field.substr(std::string("params.").size());
    // The reader of the run config refuses values of another type.
    const auto one_of = [](const Json& object, const std::string& name, const Json& by_default) {
        return object.contains(name) ? object.at(name) : by_default;
    };
    if (!one_of(values, "plan", one_of(base, "plan", Json())).is_null()) return true;
    const Json schedule = one_of(values, "schedule", one_of(base, "schedule", Json()));
    if (!schedule.is_string()) return false;
    const ScheduleEntry& entry = *schedules.at(schedule.get<std::string>());
    if (!entry.takes(parameter)) return true;
    const Json params = with_defaults(entry, base.value("params", Json::object()));
    const auto chosen = [&](const std::string& name, const std::string& by_default) {
        return one_of(values, "params." + name, one_of(params, name, by_default));
    };
    const bool by_dma =
        chosen("agent", agent_names.front()) == agent_names[static_cast<std::size_t>(Agent::dma)];
    const Json algorithm = chosen("algorithm", "direct");
    if (parameter == "copy_cus" || parameter == "copy_priority") return by_dma;
    if (parameter == "channels") return algorithm != "library";
    return (parameter == "dma_commands" || parameter == "prelaunch") && (!by_dma || algorithm != "direct");
}

/// Swept fields that constraints name by their path.
bool has_no_other_name(const std::string& field) {
    return field.starts_with("what_if.") || field.starts_with("workload.operators.");
}

}  // namespace

DesignSpace::DesignSpace(const std::filesystem::path& file, const ConfigFolder& folder, const Looked& looked)
    : DesignSpace(read_json_file(file), file.string(), folder, looked) {}

DesignSpace::DesignSpace(const Json& given, const std::string& name, const ConfigFolder& folder,
                         const Looked& looked)
    : file_(name), place_(file_ + ": ") {
    const Json json = upgraded(given, "sweep", file_);
    require_kind(json, file_, FileKind::sweep);
    ConfigObject sweep(json, file_);
    read(sweep, folder, true, looked);
    if (sweep_.name.empty()) sweep_.name = std::filesystem::path(file_).stem().string();
    if (sweep_.axes.empty()) sweep.fail("", "sweeps nothing, expected one of 'axes', 'zipped', 'points'");
}

DesignSpace::DesignSpace(ConfigObject space, const std::string& pointer, const ConfigFolder& folder)
    : file_(space.file()), place_(file_ + ": " + pointer) {
    read(space, folder, false, nullptr);
}

void DesignSpace::read(ConfigObject& sweep, const ConfigFolder& folder, bool whole_file,
                       const Looked& looked) {
    sweep_ = read_sweep(sweep, folder, whole_file);
    read_run_config(sweep_.base, place_ + "/base");
    for (const Axis& axis : sweep_.axes) {
        if (axis.values.size() > most_combinations / size_)
            sweep.fail("", "has more than " + std::to_string(most_combinations) + " combinations");
        size_ *= axis.values.size();
        append(fields_, axis.fields);
    }
    learn_names(folder);
    resolver_ = std::make_shared<Resolver>(folder);
    read_constraints();
    require_values_that_run();
    require_a_point(looked);
}

/// Checks every topology, schedule and workload that the file names.
void DesignSpace::learn_names(const ConfigFolder& folder) {
    const auto learn = [&](const std::string& field, const Json& value) {
        if (!value.is_string()) return;
        const std::string name = value.get<std::string>();
        try {
            if (field == "schedule") schedules_[name] = folder.schedule(name);
            if (field == "topology")
                topologies_[name] = std::make_shared<const Topology>(folder.topology(name));
            if (const std::string trace = chakra_trace(name, folder.path_beside(name));
                field == "workload" && !trace.empty()) {
                workloads_[name] = read_chakra(trace).workload;
            } else if (field == "workload") {
                const ConfigFile read = read_config_file(folder.find("workloads", name), "workload");
                require_kind(read.json, read.name, FileKind::workload);
                ConfigObject(read.json, read.name);  // checks that it is an object
                workloads_[name] = read.json;
            }
        } catch (const UserError& error) {
            throw UserError(place_ + field + ": " + error.what());
        }
    };
    for (const std::string field : {"schedule", "topology", "workload"})
        if (sweep_.base.contains(field)) learn(field, sweep_.base.at(field));
    for (const Axis& axis : sweep_.axes)
        for (const std::vector<Json>& row : axis.values)
            for (std::size_t i = 0; i < axis.fields.size(); ++i) learn(axis.fields[i], row[i]);
    const bool plans = sweep_.base.contains("plan") || contains(fields_, "plan");
    for (const char* field : {"schedule", "topology"})
        if (!plans && !sweep_.base.contains(field) && !contains(fields_, field))
            throw UserError(place_ + "/base/" + field + ": is missing and not swept");
    if (!sweep_.base.contains("workload")) learn("workload", default_workload);
}

DesignSpace::Places DesignSpace::places(std::uint64_t number) const {
    Places places(sweep_.axes.size());
    for (std::size_t axis = sweep_.axes.size(); axis-- > 0;) {
        places[axis] = number % sweep_.axes[axis].values.size();
        number /= sweep_.axes[axis].values.size();
    }
    return places;
}

Json DesignSpace::assigned(const Places& places) const {
    Json values = Json::object();
    for (std::size_t axis = 0; axis < sweep_.axes.size(); ++axis)
        for (std::size_t i = 0; i < sweep_.axes[axis].fields.size(); ++i)
            if (const Json& value = sweep_.axes[axis].values[places[axis]][i]; !value.is_null())
                values[sweep_.axes[axis].fields[i]] = value;
    for (auto field = values.begin(); field != values.end();)
        field =
            ignored(field.key(), values, sweep_.base, schedules_) ? values.erase(field) : std::next(field);
    return values;
}

/// Whether an earlier value on one of the axes gives the same assignment.
bool DesignSpace::repeated(const Places& at, const Json& values) const {
    for (std::size_t axis = 0; axis < sweep_.axes.size(); ++axis) {
        const std::vector<std::string>& fields = sweep_.axes[axis].fields;
        const bool all_set =
            std::ranges::all_of(fields, [&](const std::string& field) { return values.contains(field); });
        if (all_set) continue;
        Places earlier = at;
        for (earlier[axis] = 0; earlier[axis] < at[axis]; ++earlier[axis])
            if (assigned(earlier) == values) return true;
    }
    return false;
}

Json DesignSpace::run_config(const Json& values) const {
    Json config = sweep_.base;
    try {
        set_fields(config, values, [this](const std::string& name) { return workloads_.at(name); });
    } catch (const UserError& error) {
        throw UserError(place_ + error.what());
    }
    if (config.contains("workload") && is_layer_request(config.at("workload"))) expand_layer(config);
    return config;
}

/// A layer of a model as its operators on the machine that `config` has.
void DesignSpace::expand_layer(Json& config) const {
    Json without = config;
    without["workload"] = default_workload;
    const Resolver::MachinePtr machine = resolver_->machine(read_run_config(without, file_));
    config["workload"] = layer_workload(config.at("workload"), place_ + "/workload", machine->topology.gpus(),
                                        resolver_->folder());
}

/// Names and values that the constraints use at one point.
Json DesignSpace::variables(const RunConfig& config) const {
    const auto named_workload = [&] {
        const Json& given =
            config.workload.is_string() ? workloads_.at(config.workload.get<std::string>()) : config.workload;
        return read_workload({given, config.origin, "/workload"});
    };
    const Workload workload = config.read == nullptr ? named_workload()
                              : config.read->has_workload()
                                  ? resolver_->workload(with_plan(config, *config.read))
                                  : unknown_work();
    const Pair* pair = workload.pair();
    const auto* found = value_at(topologies_, config.topology);
    if (config.topology.empty()) throw UserError(config.origin + ": /topology: is missing");
    Resolver::MachinePtr changed;
    try {
        changed = resolver_->machine(config);
    } catch (const UserError&) {  // of a what-if or a host: the point itself reports it
        if (found == nullptr) throw;
    }
    const Topology& topology = changed == nullptr ? **found : changed->topology;
    Json result{{"topology", std::filesystem::path(config.topology).stem().string()},
                {"gpus", topology.gpus()},
                {"gpus_per_node", topology.gpus_per_node()},
                {"nodes", topology.nodes()},
                {"schedule", config.read == nullptr ? config.schedule : schedule_of_plans()->name},
                {"engine", config.engine},
                {"workload", workload.name},
                {"collective", pair == nullptr ? "" : name_of(pair->collective)},
                {"dtype", pair == nullptr ? "" : name_of(pair->gemm.dtype)},
                {"gemm.m", pair == nullptr ? 0 : pair->gemm.m},
                {"gemm.n", pair == nullptr ? 0 : pair->gemm.n},
                {"gemm.k", pair == nullptr ? 0 : pair->gemm.k}};
    std::vector<std::string> names;
    for (const ParameterInfo& parameter : schedule_parameters())
        if (std::ranges::any_of(constraints_, [&](const Formula& one) { return one.uses(parameter.name); }))
            names.push_back(parameter.name);
    const SchedulePtr* known = value_at(schedules_, config.schedule);
    const ScheduleEntry& schedule = config.read != nullptr ? *schedule_of_plans()
                                    : known == nullptr     ? find_schedule(config.schedule)
                                                           : **known;
    const auto parameters = [&](const Json& params) {
        return to_json(parameters_of(schedule, params, workload, topology, config.origin), names);
    };
    Json params;
    try {
        params = parameters(config.params);
    } catch (const UserError&) {  // the point itself reports the error
        params = parameters(Json::object());
        params.update(config.params);
    }
    for (const std::string& name : names) result[name] = params.value(name, Json(0));
    for (const std::string& field : fields_)
        if (has_no_other_name(field)) result[field] = 0;
    return result;
}

void DesignSpace::read_constraints() {
    std::vector<std::string> names{"topology", "gpus",       "gpus_per_node", "nodes",  "schedule", "engine",
                                   "workload", "collective", "dtype",         "gemm.m", "gemm.n",   "gemm.k"};
    for (const ParameterInfo& parameter : schedule_parameters()) names.push_back(parameter.name);
    for (const std::string& field : fields_)
        if (has_no_other_name(field)) names.push_back(field);
    constraints_ = formulas_at(place_ + "/where", sweep_.where, names);
}

std::optional<DesignPoint> DesignSpace::point(std::uint64_t number) const {
    const Places at = places(number);
    DesignPoint point{number, assigned(at), {}};
    if (repeated(at, point.values)) return std::nullopt;
    point.config = resolver_->with_machine(
        read_run_config(run_config(point.values), file_ + " point " + std::to_string(number)));
    if (constraints_.empty()) return point;
    Json names = variables(point.config);
    for (const auto& [field, value] : point.values.items())
        if (has_no_other_name(field)) names[field] = value;
    if (!std::ranges::all_of(constraints_, [&](const Formula& one) { return one.holds(names); }))
        return std::nullopt;
    return point;
}

/// A value is an error if points have it and none of them can run. If some can, the others
/// become rows with the reason.
void DesignSpace::require_values_that_run() const {
    constexpr std::uint64_t tries = 32;
    constexpr std::size_t most_looked_at = 2000;
    std::uint64_t stride = size_;  // between neighbours on the axis
    for (const Axis& axis : sweep_.axes) {
        stride /= axis.values.size();
        const std::uint64_t others = size_ / axis.values.size();
        for (std::size_t value = 0; value < std::min(axis.values.size(), most_looked_at); ++value) {
            std::string reason;
            for (std::uint64_t i = 0; i < std::min(tries, others); ++i) {
                const std::uint64_t other = others <= tries ? i : i * (others / tries);
                const std::uint64_t number =
                    other / stride * stride * axis.values.size() + value * stride + other % stride;
                try {
                    const std::optional<DesignPoint> point = this->point(number);
                    if (!point) continue;
                    resolver_->resolve(point->config);
                    reason.clear();
                    break;
                } catch (const UserError& error) {
                    if (reason.empty()) reason = error.what();
                }
            }
            if (!reason.empty()) throw UserError(reason);
        }
    }
}

void DesignSpace::require_a_point(const Looked& looked) const {
    for (std::uint64_t number = 0; number < size_; ++number) {
        if (point(number)) return;
        if (looked) looked(number + 1, size_);
    }
    throw UserError(place_ + "/where: allows none of the " + std::to_string(size_) + " combinations");
}

DesignSpace::Counts DesignSpace::counts(const Looked& looked) const {
    Counts counts;
    for (std::uint64_t number = 0; number < size_; ++number) {
        const Places at = places(number);
        std::uint64_t* kind = &counts.points;
        if (repeated(at, assigned(at))) {
            kind = &counts.repeated;
        } else if (!sweep_.where.empty()) {
            try {
                if (!point(number)) kind = &counts.not_allowed;
            } catch (const UserError&) {  // a point whose row has the reason
            }
        }
        ++*kind;
        if (looked) looked(number + 1, size_);
    }
    return counts;
}

Json DesignSpace::resolved() const {
    const Json axes = mapped(sweep_.axes, [](const Axis& axis) {
        return Json{{"fields", axis.fields}, {"values", axis.values}};
    });
    return {{"schema", 1},
            {"name", sweep_.name},
            {"description", sweep_.description},
            {"version", OVERLAP_VERSION},
            {"points", size_},
            {"base", sweep_.base},
            {"axes", axes},
            {"where", sweep_.where}};
}

}  // namespace overlap
