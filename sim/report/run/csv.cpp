#include <algorithm>
#include <cmath>

#include "sim/core/csv_reader.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

/// "losses_us.host" as a JSON pointer.
Json::json_pointer at(std::string path) {
    std::ranges::replace(path, '.', '/');
    return Json::json_pointer("/" + path);
}

struct Column {
    std::string name;
    Json::json_pointer place;  ///< of its value in the result

    Column(std::string of_column, const std::string& path) : name(std::move(of_column)), place(at(path)) {}
    /// The name is the path.
    Column(const std::string& of_column) : Column(of_column, of_column) {}
};

// Fixed columns, so that rows of different schedules and workloads fit below each other. A cell is the value
// of the JSON rendering, so the two agree; missing values stay empty.
// clang-format off
const std::vector<Column> columns{
    {"topology", "config.topology"}, {"schedule", "config.schedule"}, {"workload", "config.workload.name"},
    {"collective", "config.workload.collective"}, {"order", "config.workload.order"},
    {"m", "config.workload.gemm.m"}, {"n", "config.workload.gemm.n"}, {"k", "config.workload.gemm.k"},
    {"dtype", "config.workload.gemm.dtype"}, {"chunks", "config.params.chunks"}, {"agent", "config.params.agent"},
    {"transfer", "config.params.transfer"}, {"copy_cus", "config.params.copy_cus"},
    {"makespan_us"}, {"seeds"}, {"makespan_p10_us"}, {"makespan_p90_us"}, {"serial_us"}, {"gemm_us"}, {"comm_us"},
    {"ideal_us"}, {"speedup"}, {"overlap_efficiency"}, {"exposed_comm_us"},
    {"losses_us.decomposition"}, {"losses_us.contention"}, {"losses_us.fill_drain"}, {"losses_us.launch"},
    {"losses_us.packing"}, {"losses_us.pattern"},
    {"utilisation.cu"}, {"utilisation.hbm"}, {"utilisation.link"}, {"utilisation.dma"},
    {"tasks"}, {"engine"}, {"wall_ms"}, {"params", "config.params"}, {"comm_cus"}, {"staging_bytes"},
    {"energy_J.total"}, {"energy_J.idle"}, {"energy_J.active"}, {"energy_J.compute"}, {"energy_J.hbm"},
    {"energy_J.links"}, {"energy_J.copy_kernels"}, {"energy_J.power_limit"},
    {"losses_us.host"}, {"losses_us.power"}, {"steady.gemm_speed"}, {"steady.power_W"},
    {"confidence.basis"}, {"confidence.makespan_error_pct"}, {"simulated_gpus"}, {"gemm_library"},
    {"confidence.p90_error_pct"}, {"own_kernel"}, {"baseline_us"}, {"baseline"}, {"what_if", "config.what_if"}, {"notes"}};
// clang-format on

Json value_of(const Column& column, const Json& result) {
    const Json::json_pointer& place = column.place;
    return result.contains(place) ? result.at(place) : Json();
}

bool has(CsvClock clock, const Column& column) {
    return clock == CsvClock::with || (column.name != "wall_ms" && column.name != "notes");
}

// RFC 4180: a field with a comma, a quote or a line break is quoted, and its quotes are doubled.
std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string field = "\"";
    for (const char letter : text) {
        if (letter == '"') field += '"';
        field += letter;
    }
    return field + '"';
}

}  // namespace

std::string csv_cell(const Json& value) {
    if (value.is_null()) return "";
    if (value.is_string()) {
        const std::string text = valid_utf8(value.get_ref<const std::string&>());
        return quoted(is_formula(text) ? "'" + text : text);  // text_of_csv_cell takes the apostrophe off
    }
    if (value.is_number_integer() && !value.is_number_unsigned())
        return std::to_string(value.get<std::int64_t>());
    if (!value.is_number_float()) return quoted(json_text(value));
    const double number = value.get<double>();
    return std::isfinite(number) ? shortest(number) : "";  // JSON has null there
}

std::string csv_header(CsvClock clock) {
    std::vector<std::string> names;
    for (const Column& column : columns)
        if (has(clock, column)) names.push_back(column.name);
    return joined(names, ",");
}

bool csv_has_column(const std::string& name) {
    return std::ranges::any_of(columns, [&](const Column& column) { return column.name == name; });
}

bool csv_has_field(const std::string& field) {
    if (field == "plan") return true;  // in column schedule
    const std::string in_config = "config." + field + (field == "workload" ? ".name" : "");
    return std::ranges::any_of(columns, [&](const Column& column) {
        return column.place == at(field) || column.place == at(in_config);
    });
}

std::string schedule_or_plan(const Json& config) {
    if (const auto plan = config.find("plan"); plan != config.end()) {
        if (plan->is_string()) return "plan " + unquoted(*plan);
        const bool is_described = plan->is_object() && plan->contains("description");
        return is_described ? unquoted((*plan)["description"]) : "plan";
    }
    return config.contains("schedule") ? unquoted(config["schedule"]) : "";
}

std::string csv_row(const Json& result, CsvClock clock) {
    std::string row;
    for (const Column& column : columns) {
        if (!has(clock, column)) continue;
        const Json value = column.name == "schedule" && result.contains("config")
                               ? Json(schedule_or_plan(result["config"]))
                               : value_of(column, result);
        const bool empty = value.is_structured() && value.empty();
        row.append(&column == &columns.front() ? "" : ",").append(empty ? "" : csv_cell(value));
    }
    return row;
}

std::string remark_cells(const Remarks& remarks) {
    return (remarks.what_if.empty() ? "" : csv_cell(remarks.what_if)) + "," +
           (remarks.notes.empty() ? "" : csv_cell(Json(remarks.notes)));
}

void add_remarks(const Remarks& remarks, Json& result) {
    if (!remarks.what_if.empty()) result["what_if"] = remarks.what_if;
    result["notes"] = remarks.notes;
}

std::string confidence_cells(const Confidence* confidence) {
    if (confidence == nullptr) return ",,,";
    const Json json = to_json(*confidence);
    std::string cells = csv_cell(confidence->gemm_library());
    for (const std::string key : {"basis", "makespan_error_pct", "p90_error_pct"})
        cells += "," + csv_cell(json[key]);
    return cells;
}

}  // namespace overlap
