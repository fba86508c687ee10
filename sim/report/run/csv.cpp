#include <array>
#include <charconv>
#include <cmath>

#include "sim/core/csv_reader.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

struct Column {
    const char* name;
    const char* pointer;  ///< JSON pointer into the result
};

// Fixed columns, so that rows of different schedules and workloads fit below each other. A cell is the value
// of the JSON rendering, so the two agree; missing values stay empty.
constexpr std::array columns{
    Column{"topology", "/config/topology"},
    Column{"schedule", "/config/schedule"},
    Column{"workload", "/config/workload/name"},
    Column{"collective", "/config/workload/collective"},
    Column{"order", "/config/workload/order"},
    Column{"m", "/config/workload/gemm/m"},
    Column{"n", "/config/workload/gemm/n"},
    Column{"k", "/config/workload/gemm/k"},
    Column{"dtype", "/config/workload/gemm/dtype"},
    Column{"chunks", "/config/params/chunks"},
    Column{"agent", "/config/params/agent"},
    Column{"transfer", "/config/params/transfer"},
    Column{"copy_cus", "/config/params/copy_cus"},
    Column{"makespan_us", "/makespan_us"},
    Column{"seeds", "/seeds"},
    Column{"makespan_p10_us", "/makespan_p10_us"},
    Column{"makespan_p90_us", "/makespan_p90_us"},
    Column{"serial_us", "/serial_us"},
    Column{"gemm_us", "/gemm_us"},
    Column{"comm_us", "/comm_us"},
    Column{"ideal_us", "/ideal_us"},
    Column{"speedup", "/speedup"},
    Column{"overlap_efficiency", "/overlap_efficiency"},
    Column{"exposed_comm_us", "/exposed_comm_us"},
    Column{"losses_us.decomposition", "/losses_us/decomposition"},
    Column{"losses_us.contention", "/losses_us/contention"},
    Column{"losses_us.fill_drain", "/losses_us/fill_drain"},
    Column{"losses_us.launch", "/losses_us/launch"},
    Column{"losses_us.packing", "/losses_us/packing"},
    Column{"losses_us.pattern", "/losses_us/pattern"},
    Column{"utilisation.cu", "/utilisation/cu"},
    Column{"utilisation.hbm", "/utilisation/hbm"},
    Column{"utilisation.link", "/utilisation/link"},
    Column{"utilisation.dma", "/utilisation/dma"},
    Column{"tasks", "/tasks"},
    Column{"engine", "/engine"},
    Column{"wall_ms", "/wall_ms"},
    Column{"params", "/config/params"},
    Column{"comm_cus", "/comm_cus"},
    Column{"staging_bytes", "/staging_bytes"},
    Column{"energy_J.total", "/energy_J/total"},
    Column{"energy_J.idle", "/energy_J/idle"},
    Column{"energy_J.active", "/energy_J/active"},
    Column{"energy_J.compute", "/energy_J/compute"},
    Column{"energy_J.hbm", "/energy_J/hbm"},
    Column{"energy_J.links", "/energy_J/links"},
    Column{"energy_J.copy_kernels", "/energy_J/copy_kernels"},
    Column{"energy_J.power_limit", "/energy_J/power_limit"},
};

bool has(CsvClock clock, const Column& column) {
    return clock == CsvClock::with || column.name != std::string_view("wall_ms");
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
    if (!value.is_number_float()) return quoted(json_text(value));
    const double number = value.get<double>();
    if (!std::isfinite(number)) return "";  // JSON has null there
    std::array<char, 32> digits;            // the longest shortest form of a double has 24 characters
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return {digits.data(), end};
}

std::string csv_header(CsvClock clock) {
    std::string line;
    for (const Column& column : columns)
        if (has(clock, column)) line += (line.empty() ? "" : ",") + std::string(column.name);
    return line;
}

std::string csv_row(const Json& result, CsvClock clock) {
    std::string line;
    bool first = true;
    for (const Column& column : columns) {
        if (!has(clock, column)) continue;
        const Json::json_pointer at(column.pointer);
        if (!first) line += ',';
        if (result.contains(at)) line += csv_cell(result.at(at));
        first = false;
    }
    return line;
}

}  // namespace overlap
