// rocpd, the SQLite database that rocprofv3 writes by default since ROCm 7.0. Source: github.com/ROCm/rocprofiler-sdk,
// source/share/rocprofiler-sdk-rocpd/*.sql. Tables end in the id of their recording; a merged database has several.
#include "sim/importers/sqlite_database.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

bool is_rocpd_database(const std::filesystem::path& path) {
    const SqliteDatabase database(path);
    return !database.first_text("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd%'").empty();
}

namespace {

const std::string dispatches = "rocpd_kernel_dispatch";

class RocpdRecording {
public:
    RocpdRecording(const std::string& file, const SqliteDatabase& database, std::string id,
                   RecordedTrace& trace)
        : file_(file), database_(database), id_(std::move(id)), trace_(trace) {}

    void read(const KernelTable& table_of_kernels) {
        read_machine();
        read_kernels(table_of_kernels);
        if (database_.has_table("rocpd_memory_copy" + id_)) read_copies();
        if (database_.has_table("rocpd_region" + id_)) read_calls();
    }

private:
    std::string named(const std::string& table) const { return "\"rocpd_" + table + id_ + "\""; }
    bool has(const std::string& table, const std::string& column) const {
        return database_.has_column("rocpd_" + table + id_, column);
    }
    /// The first of `columns` that the table has; NULL if it has none.
    std::string first_of(const std::string& table, const std::string& alias,
                         std::initializer_list<const char*> columns) const {
        for (const char* column : columns)
            if (has(table, column)) return alias + "." + column;
        return "NULL";
    }

    void read_machine() {
        if (has("info_node", "hostname"))
            trace_.machine = database_.first_text("SELECT hostname FROM " + named("info_node"));
        const std::string name = first_of("info_agent", "a", {"product_name", "model_name", "name"});
        if (name != "NULL")
            trace_.device = database_.first_text("SELECT " + name + " FROM " + named("info_agent") +
                                                 " a WHERE a.type = 'GPU'");
    }

    /// Columns 0 to 5 of an activity: number, start, end, stream, queue, process. Before version 3 of the tables a row
    /// has them; since then its track and its timestamps do.
    std::string columns(const std::string& table) const {
        const bool tracks = has(table, "track_id");
        const std::string holder = tracks ? "track" : table, alias = tracks ? "t" : "r";
        return "SELECT r.id, " + std::string(tracks ? "b.value AS start, e.value AS end" : "r.start, r.end") +
               ", " + first_of(holder, alias, {"stream_id"}) + ", " + first_of(holder, alias, {"queue_id"}) +
               ", " + first_of(holder, alias, {"pid"}) + ", ";
    }
    std::string rows(const std::string& table) const {
        std::string from = " FROM " + named(table) + " r";
        if (has(table, "track_id"))
            from += " JOIN " + named("track") + " t ON t.id = r.track_id JOIN " + named("timestamp") +
                    " b ON b.id = r.start_id JOIN " + named("timestamp") + " e ON e.id = r.end_id";
        return from;
    }
    /// Numbers of agents on the machine.
    std::string number(const std::string& alias) const {
        return first_of("info_agent", alias, {"absolute_index", "id"});
    }

    RecordedSpan span_of(const SqliteRow& row) const {
        const auto stream = row.known_integer(3), queue = row.known_integer(4);
        return {.track = stream ? "stream " + std::to_string(*stream)
                                : "queue " + std::to_string(queue.value_or(0)),
                .start_ns = row.integer(1),
                .end_ns = row.integer(2)};
    }

    void for_each_row(const std::string& table, const std::string& query,
                      const std::function<void(const SqliteRow&)>& visit) const {
        database_.for_each_row(query, [&](sqlite3_stmt* row) { visit({row, file_ + ": rocpd_" + table}); });
    }

    void read_kernels(const KernelTable& kernels) {
        const std::string table = "kernel_dispatch",
                          agent = has(table, "agent_id") ? "r.agent_id" : "t.agent_id",
                          name = first_of("info_kernel_symbol", "s", {"display_name", "kernel_name"});
        for_each_row(table,
                     columns(table) + number("a") + ", " + name + rows(table) + " JOIN " +
                         named("info_agent") + " a ON a.id = " + agent + " JOIN " +
                         named("info_kernel_symbol") + " s ON s.id = r.kernel_id ORDER BY start",
                     [&](const SqliteRow& row) {
                         RecordedSpan span = span_of(row);
                         span.gpu = row.integer(6);
                         span.name = row.text(7);
                         const std::optional<KernelUse> use = kernels.use_of(span.name);
                         trace_.add(std::move(span), use,
                                    [&](const std::string& problem) { row.fail(problem); });
                     });
    }

    void read_copies() {
        const std::string table = "memory_copy";
        for_each_row(
            table,
            columns(table) + number("d") + ", d.type, " + number("s") + ", s.type, " +
                first_of(table, "r", {"size"}) + rows(table) + " JOIN " + named("info_agent") +
                " d ON d.id = r.dst_agent_id JOIN " + named("info_agent") +
                " s ON s.id = r.src_agent_id ORDER BY start",
            [&](const SqliteRow& row) {
                RecordedSpan span = span_of(row);
                const bool to = row.text(7) == "GPU", from = row.text(9) == "GPU";
                span.gpu = to ? row.integer(6) : row.integer(8);
                span.with_host = !to || !from;
                span.name = span.with_host ? "memory copy with the host" : "memory copy";
                span.bytes = static_cast<double>(row.known_integer(10).value_or(0));
                const KernelUse use = span.with_host                     ? host_copy
                                      : row.integer(6) == row.integer(8) ? KernelUse{TaskKind::local_copy}
                                                                         : KernelUse{TaskKind::copy};
                trace_.add(std::move(span), use, [&](const std::string& problem) { row.fail(problem); });
            });
    }

    /// The collectives that the host asked RCCL for.
    void read_calls() {
        const std::string table = "region";
        for_each_row(table,
                     columns(table) + "n.string" + rows(table) + " JOIN " + named("string") +
                         " n ON n.id = r.name_id WHERE n.string LIKE 'nccl%' ORDER BY start",
                     [&](const SqliteRow& row) {
                         trace_.calls.push_back({row.text(6), row.integer(1)});
                     });
    }

    const std::string& file_;
    const SqliteDatabase& database_;
    std::string id_;
    RecordedTrace& trace_;
};

}  // namespace

RecordedTrace read_rocpd(const std::filesystem::path& path, const KernelTable& kernels) {
    const SqliteDatabase database(path);
    RecordedTrace trace;
    trace.recorded_by = "rocprofv3";
    trace.gpu_numbers = GpuNumbers::agents;
    std::vector<std::string> ids;
    database.for_each_row("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
                          [&](sqlite3_stmt* row) {
                              const std::string table = SqliteDatabase::text(row, 0);
                              if (table.starts_with(dispatches))
                                  ids.push_back(table.substr(dispatches.size()));
                          });
    const std::string file = path.string();
    for (const std::string& id : ids) RocpdRecording(file, database, id, trace).read(kernels);
    if (trace.spans.empty())
        throw UserError(
            file +
            ": is a rocpd database without a kernel or a copy: record with rocprofv3 --kernel-trace "
            "--memory-copy-trace (and --rccl-trace, which tells RCCL's collectives apart)");
    return trace;
}

}  // namespace overlap
