#include "sim/sweep/rows.hpp"

#include <new>
#include <system_error>

#include "sim/core/failure.hpp"
#include "sim/core/files_read.hpp"
#include "sim/core/interruption.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/run_config.hpp"

namespace overlap {
namespace {

/// Swept fields that a run's CSV has no column for.
std::vector<std::string> further_fields(const DesignSpace& space) {
    std::vector<std::string> fields;
    for (const std::string& field : space.fields())
        if (!csv_has_field(field)) fields.push_back(field);
    return fields;
}

/// "comm_shape" of "params.comm_shape", as "chunks" of "params.chunks", unless another column has that name.
std::string column_of(const std::string& field) {
    for (const std::string_view group : {"params.", "workload."})
        if (field.starts_with(group)) {
            const std::string name = field.substr(group.size());
            return name.find('.') == std::string::npos && !csv_has_column(name) ? name : field;
        }
    return field;
}

void add_row(const DesignSpace& space, const DesignPoint& point, Json result, Rows& rows) {
    std::string csv = std::to_string(point.number) + "," + csv_row(result, CsvClock::without);
    for (const std::string& field : further_fields(space))
        csv += "," + csv_cell(point.values.contains(field) ? point.values.at(field) : Json());
    csv += "," + csv_cell(result.contains("error") ? result.at("error") : Json()) + "\n";

    Json line{{"point", point.number}, {"values", point.values}};
    auto& members = line.get_ref<Json::object_t&>();
    members.reserve(members.size() + result.size());
    for (auto& [key, value] : result.get_ref<Json::object_t&>())
        if (key != "schema" && key != "config" && key != "wall_ms")
            members.emplace_back(key, std::move(value));
    std::string jsonl = json_text(line) + "\n";
    rows.csv += csv;  // last, so that both files have the row or neither
    rows.jsonl += jsonl;
    ++rows.points;
}

/// The row of a failed point.
Json failure(const DesignPoint& point, const std::string& reason) {
    const RunConfig& config = point.config;
    Json known{{"topology", config.topology}, {"schedule", config.schedule}, {"params", config.params}};
    if (config.has_plan()) return {{"config", to_json(config)}, {"error", reason}};
    known["workload"] = config.workload.is_string() ? Json{{"name", config.workload}} : config.workload;
    return {{"config", known}, {"error", reason}};
}

}  // namespace

Rows& Rows::operator+=(const Rows& other) {
    csv += other.csv;
    jsonl += other.jsonl;
    points += other.points;
    errors += other.errors;
    files.update(other.files);
    return *this;
}

std::string PointRunner::header(const DesignSpace& space) {
    std::string header = "point," + csv_header(CsvClock::without);
    for (const std::string& field : further_fields(space)) header += "," + csv_cell(column_of(field));
    return header + ",error";
}

Rows PointRunner::run(std::uint64_t first, std::uint64_t count) {
    Rows rows;
    for (std::uint64_t number = first; number < first + count; ++number) {
        DesignPoint known{number, Json::object(), {}};  // of a point whose constraint fails no more than this
        try {
            const std::optional<DesignPoint> point = space_.point(number);
            if (!point) continue;
            known = *point;
            const Scenario scenario = shared_.resolver.resolve_for_numbers(known.config);
            add_row(space_, known, to_json(overlap::run(scenario, {false, &shared_.baselines})), rows);
        } catch (const std::bad_alloc&) {
            throw;  // depends on this machine and moment; rows must not
        } catch (const std::system_error&) {
            throw;  // likewise: no further thread or file
        } catch (const ChangedFile&) {
            throw;  // likewise
        } catch (const Interrupted&) {
            throw;
        } catch (...) {
            add_row(space_, known, failure(known, current_failure().reason), rows);
            ++rows.errors;
        }
    }
    return rows;
}

}  // namespace overlap
