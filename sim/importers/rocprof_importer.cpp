// rocprofv3 of ROCprofiler-SDK. Source of both forms: github.com/ROCm/rocprofiler-sdk,
// source/docs/how-to/using-rocprofv3.rst and source/lib/output.
#include <iterator>
#include <set>

#include "sim/core/config_reader.hpp"
#include "sim/core/csv_reader.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

/// All rows, the header first.
std::vector<CsvRow> read_csv_rows(const std::filesystem::path& path) {
    std::vector<CsvRow> rows;
    read_csv(path, [&](const CsvRow& row, std::size_t) { rows.push_back(row); });
    if (rows.empty()) throw UserError(path.string() + ":1: is empty");
    return rows;
}

/// Kind of a copy between agents: between GPUs, within one, or none of our kinds (with the host).
std::optional<KernelUse> kind_of_copy(bool from_gpu, bool to_gpu, bool same) {
    if (!from_gpu || !to_gpu) return std::nullopt;
    return KernelUse{same ? TaskKind::local_copy : TaskKind::copy};
}

/// Cells of a trace by row and column.
struct CsvTrace {
    std::string file;
    const std::vector<CsvRow>& rows;

    bool has(const std::string& column) const { return contains(rows[0], column); }
    const std::string& cell(std::size_t row, const std::string& column) const {
        const std::size_t at = place_of(rows[0], column);
        if (at == rows[0].size()) throw UserError(file + ":1: has no column '" + column + "'");
        if (at >= rows[row].size())
            throw UserError(file + ":" + std::to_string(row + 1) + ": has no cell for '" + column + "'");
        return rows[row][at];
    }
    std::int64_t integer(std::size_t row, const std::string& column, const std::string& value) const {
        const auto number = parsed<std::int64_t>(value);
        if (!number || *number < 0)
            throw UserError(file + ":" + std::to_string(row + 1) + ": " + column + " is '" + value +
                            "', expected a whole number");
        return *number;
    }
    /// "Agent 4" or "4".
    std::int64_t agent(std::size_t row, const std::string& column) const {
        const std::string& value = cell(row, column);
        return integer(row, column, value.starts_with("Agent ") ? value.substr(6) : value);
    }
    std::int64_t time(std::size_t row, const std::string& column) const {
        return integer(row, column, cell(row, column));
    }
};

void add(RecordedTrace& trace, const CsvTrace& table, std::size_t row, const std::string& name,
         std::optional<KernelUse> use, std::int64_t gpu, const std::string& track) {
    trace.add({.name = name,
               .gpu = gpu,
               .track = track,
               .start_ns = table.time(row, "Start_Timestamp"),
               .end_ns = table.time(row, "End_Timestamp")},
              use, [&](const std::string& problem) {
                  throw UserError(table.file + ":" + std::to_string(row + 1) + ": " + problem);
              });
}

std::int64_t handle(ConfigObject& record, const std::string& key) {
    return record.object(key).integer("handle", 0, INT64_MAX);
}

void read_tool(ConfigObject& tool, const KernelTable& table_of_kernels, RecordedTrace& trace) {
    // agents[].type: 1 is a CPU, 2 a GPU (rocprofiler_agent_type_t).
    std::set<std::int64_t> gpus;  // handles; GPUs have the numbers 0, 1, … in their order
    for (ConfigObject& agent : tool.objects("agents"))
        if (agent.integer("type", 0, 100) == 2) gpus.insert(handle(agent, "id"));
    const auto gpu_of = [&](std::int64_t agent) {
        return std::distance(gpus.begin(), gpus.lower_bound(agent));
    };
    std::map<std::int64_t, std::string> kernels;
    for (ConfigObject& symbol : tool.objects("kernel_symbols"))
        kernels[symbol.integer("kernel_id", 0, INT64_MAX)] = symbol.text("formatted_kernel_name");

    ConfigObject records = tool.object("buffer_records");
    const auto add = [&](ConfigObject& record, const std::string& name, std::optional<KernelUse> use,
                         std::int64_t gpu, const std::string& track) {
        trace.add({.name = name,
                   .gpu = gpu,
                   .track = track,
                   .start_ns = record.integer("start_timestamp", 0, latest_recorded_ns),
                   .end_ns = record.integer("end_timestamp", 0, latest_recorded_ns)},
                  use, [&](const std::string& problem) { record.fail("", problem); });
    };
    for (ConfigObject& record : records.objects("kernel_dispatch")) {
        ConfigObject info = record.object("dispatch_info");
        const std::string* kernel = value_at(kernels, info.integer("kernel_id", 0, INT64_MAX));
        if (kernel == nullptr) info.fail("kernel_id", "is not in kernel_symbols");
        const std::int64_t agent = handle(info, "agent_id");
        if (!gpus.contains(agent)) info.fail("agent_id", "is no agent of type 2 (a GPU)");
        add(record, *kernel, table_of_kernels.use_of(*kernel), gpu_of(agent),
            "queue " + std::to_string(handle(info, "queue_id")));
    }
    if (!records.has("memory_copy")) return;
    for (ConfigObject& record : records.objects("memory_copy")) {
        const std::int64_t from = handle(record, "src_agent_id"), to = handle(record, "dst_agent_id");
        const std::optional<KernelUse> use = kind_of_copy(gpus.contains(from), gpus.contains(to), from == to);
        add(record, use ? "memory copy" : "memory copy with the host", use, gpu_of(to),
            "copy from " + std::to_string(gpu_of(from)));
    }
}

}  // namespace

RecordedTrace read_rocprof_csv(const std::filesystem::path& path, const KernelTable& table_of_kernels) {
    const std::vector<CsvRow> rows = read_csv_rows(path);
    const CsvTrace table{path.string(), rows};
    RecordedTrace trace;
    trace.recorded_by = "rocprofv3";
    trace.gpus_are_agents = true;
    const bool kernels = table.has("Kernel_Name");
    if (!kernels && !table.has("Direction"))
        throw UserError(table.file +
                        ":1: is neither a kernel trace (Kernel_Name) nor a memory copy trace (Direction)");
    const std::string queue = table.has("Stream_Id") ? "Stream_Id" : "Queue_Id";
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (kernels) {
            const std::string& name = table.cell(i, "Kernel_Name");
            const std::string track = (queue == "Stream_Id" ? "stream " : "queue ") + table.cell(i, queue);
            add(trace, table, i, name, table_of_kernels.use_of(name), table.agent(i, "Agent_Id"), track);
            continue;
        }
        const std::string& direction = table.cell(i, "Direction");
        const std::int64_t from = table.agent(i, "Source_Agent_Id");
        const std::int64_t to = table.agent(i, "Destination_Agent_Id");
        const bool devices = direction.ends_with("DEVICE_TO_DEVICE");
        add(trace, table, i, direction, kind_of_copy(devices, devices, from == to), to,
            "copy from agent " + std::to_string(from));
    }
    return trace;
}

RecordedTrace read_rocprof_json(const std::filesystem::path& path, const KernelTable& table_of_kernels) {
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    RecordedTrace trace;
    trace.recorded_by = "rocprofv3";
    for (ConfigObject& tool : file.objects("rocprofiler-sdk-tool")) read_tool(tool, table_of_kernels, trace);
    return trace;
}

}  // namespace overlap
