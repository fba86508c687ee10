// CSV and JSON of rocprofv3, of ROCprofiler-SDK. Source of both forms: github.com/ROCm/rocprofiler-sdk,
// source/docs/how-to/using-rocprofv3.rst and source/lib/output.
#include <map>

#include "sim/core/config_reader.hpp"
#include "sim/core/csv_reader.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/rocprof_records.hpp"

namespace overlap {
namespace {

/// All rows, the header first.
std::vector<CsvRow> read_csv_rows(const std::filesystem::path& path) {
    std::vector<CsvRow> rows;
    read_csv(path, [&](const CsvRow& row, std::size_t) { rows.push_back(row); });
    if (rows.empty()) throw UserError(path.string() + ":1: is empty");
    return rows;
}

/// A copy within a GPU, or between two.
KernelUse copy_between(std::int64_t from, std::int64_t to) {
    return {from == to ? TaskKind::local_copy : TaskKind::copy};
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
    std::int64_t agent(std::size_t row, const std::string& column) const {
        return integer(row, column, std::string(rocprof_agent(cell(row, column))));
    }
    std::int64_t time(std::size_t row, const std::string& column) const {
        return integer(row, column, cell(row, column));
    }
};

void add(RecordedTrace& trace, const CsvTrace& table, std::size_t row, RecordedSpan span,
         std::optional<KernelUse> use) {
    span.start_ns = table.time(row, "Start_Timestamp");
    span.end_ns = table.time(row, "End_Timestamp");
    trace.add(std::move(span), use, [&](const std::string& problem) {
        throw UserError(table.file + ":" + std::to_string(row + 1) + ": " + problem);
    });
}

void read_kernel(RecordedTrace& trace, const CsvTrace& table, std::size_t row, const KernelTable& kernels) {
    const std::string queue = table.has("Stream_Id") ? "Stream_Id" : "Queue_Id";
    const std::string& name = table.cell(row, "Kernel_Name");
    add(trace, table, row,
        {.name = name,
         .gpu = table.agent(row, "Agent_Id"),
         .track = (queue == "Stream_Id" ? "stream " : "queue ") + table.cell(row, queue)},
        kernels.use_of(name));
}

void read_copy(RecordedTrace& trace, const CsvTrace& table, std::size_t row) {
    RocprofCopy copy = rocprof_copy(table.cell(row, "Direction"), table.agent(row, "Source_Agent_Id"),
                                    table.agent(row, "Destination_Agent_Id"));
    add(trace, table, row, std::move(copy.span), copy.use);
}

/// *_rccl_api_trace.csv: what the host asked RCCL for.
void read_call(RecordedTrace& trace, const CsvTrace& table, std::size_t row) {
    trace.calls.push_back({table.cell(row, "Function"), table.time(row, "Start_Timestamp")});
}

std::int64_t handle(ConfigObject& record, const std::string& key) {
    return record.object(key).integer("handle", 0, INT64_MAX);
}

/// One process of a JSON file.
class RocprofTool {
public:
    RocprofTool(ConfigObject tool, RecordedTrace& trace) : tool_(std::move(tool)), trace_(trace) {
        // agents[].type: 1 is a CPU, 2 a GPU (rocprofiler_agent_type_t). Handles are of the process, node ids of the
        // machine.
        for (ConfigObject& agent : tool_.objects("agents")) {
            if (agent.integer("type", 0, 100) != 2) continue;
            const std::int64_t of_process = handle(agent, "id");
            gpus_[of_process] = agent.has("node_id") ? agent.integer("node_id", 0, INT64_MAX) : of_process;
            if (trace_.device.empty() && agent.has("product_name"))
                trace_.device = agent.text("product_name");
        }
        for (ConfigObject& symbol : tool_.objects("kernel_symbols"))
            names_[symbol.integer("kernel_id", 0, INT64_MAX)] = symbol.text("formatted_kernel_name");
    }

    void read(const KernelTable& kernels) {
        ConfigObject records = tool_.object("buffer_records");
        for (ConfigObject& record : records.objects("kernel_dispatch")) add_kernel(record, kernels);
        if (records.has("memory_copy"))
            for (ConfigObject& record : records.objects("memory_copy")) add_copy(record);
    }

private:
    void add(ConfigObject& record, RecordedSpan span, const std::optional<KernelUse>& use) {
        span.start_ns = record.integer("start_timestamp", 0, latest_recorded_ns);
        span.end_ns = record.integer("end_timestamp", 0, latest_recorded_ns);
        trace_.add(std::move(span), use, [&](const std::string& problem) { record.fail("", problem); });
    }

    void add_kernel(ConfigObject& record, const KernelTable& kernels) {
        ConfigObject info = record.object("dispatch_info");
        const std::string* kernel = value_at(names_, info.integer("kernel_id", 0, INT64_MAX));
        if (kernel == nullptr) info.fail("kernel_id", "is not in kernel_symbols");
        const std::int64_t* gpu = value_at(gpus_, handle(info, "agent_id"));
        if (gpu == nullptr) info.fail("agent_id", "is no agent of type 2 (a GPU)");
        const bool has_stream = record.has("stream_id");
        add(record,
            {.name = *kernel,
             .gpu = *gpu,
             .track = has_stream ? "stream " + std::to_string(handle(record, "stream_id"))
                                 : "queue " + std::to_string(handle(info, "queue_id"))},
            kernels.use_of(*kernel));
    }

    void add_copy(ConfigObject& record) {
        const std::int64_t* from = value_at(gpus_, handle(record, "src_agent_id"));
        const std::int64_t* to = value_at(gpus_, handle(record, "dst_agent_id"));
        if (from == nullptr && to == nullptr) return;  // no GPU took part
        const bool with_host = from == nullptr || to == nullptr;
        RecordedSpan span{
            .name = with_host ? "memory copy with the host" : "memory copy",
            .gpu = to == nullptr ? *from : *to,
            .track = "copy from " + (from == nullptr ? "the host" : "agent " + std::to_string(*from))};
        span.with_host = with_host;
        if (record.has("bytes")) span.bytes = record.number("bytes", {0, 1e18});
        add(record, std::move(span), with_host ? host_copy : copy_between(*from, *to));
    }

    ConfigObject tool_;
    RecordedTrace& trace_;
    std::map<std::int64_t, std::int64_t> gpus_;  ///< numbers on the machine, by handle
    std::map<std::int64_t, std::string> names_;  ///< of kernels
};

}  // namespace

std::string_view rocprof_agent(std::string_view name) {
    for (const std::string_view label : {"Agent", "GPU", "CPU"})
        if (name.starts_with(label) && name.size() > label.size()) return name.substr(label.size() + 1);
    return name;
}

RocprofCopy rocprof_copy(const std::string& direction, std::int64_t from, std::int64_t to) {
    const bool with_host = !direction.ends_with("DEVICE_TO_DEVICE");
    // The GPU is the source of a copy to the host.
    RecordedSpan span{.name = direction,
                      .gpu = direction.ends_with("DEVICE_TO_HOST") ? from : to,
                      .track = "copy from agent " + std::to_string(from)};
    span.with_host = with_host;
    return {std::move(span), with_host ? host_copy : copy_between(from, to)};
}

RecordedTrace read_rocprof_csv(const std::filesystem::path& path, const KernelTable& table_of_kernels) {
    const std::vector<CsvRow> rows = read_csv_rows(path);
    const CsvTrace table{path.string(), rows};
    RecordedTrace trace;
    trace.recorded_by = "rocprofv3";
    trace.gpu_numbers = GpuNumbers::agents;
    const bool kernels = table.has("Kernel_Name"), calls = table.has("Function");
    if (!kernels && !calls && !table.has("Direction"))
        throw UserError(table.file +
                        ":1: is neither a kernel trace (Kernel_Name) nor a memory copy trace (Direction), "
                        "nor one of calls (Function)");
    for (std::size_t row = 1; row < rows.size(); ++row) {
        if (kernels)
            read_kernel(trace, table, row, table_of_kernels);
        else if (calls)
            read_call(trace, table, row);
        else
            read_copy(trace, table, row);
    }
    return trace;
}

RecordedTrace read_rocprof_json(const std::filesystem::path& path, const KernelTable& kernels) {
    const Json json = read_json_trace(path);
    ConfigObject file(json, path.string());
    RecordedTrace trace;
    trace.recorded_by = "rocprofv3";
    trace.gpu_numbers = GpuNumbers::agents;
    for (ConfigObject& tool : file.objects("rocprofiler-sdk-tool")) {
        if (tool.has("metadata")) {
            ConfigObject metadata = tool.object("metadata");
            if (metadata.has("node")) {
                ConfigObject node = metadata.object("node");
                if (node.has("hostname")) trace.machine = node.text("hostname");
            }
        }
        RocprofTool(tool, trace).read(kernels);
    }
    return trace;
}

}  // namespace overlap
