#include "sim/core/ranges.hpp"
#include "sim/importers/sqlite_database.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

const std::string kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL", copy_table = "CUPTI_ACTIVITY_KIND_MEMCPY",
                  call_table = "CUPTI_ACTIVITY_KIND_RUNTIME",
                  session_table = "TARGET_INFO_SESSION_START_TIME", device_table = "TARGET_INFO_CUDA_DEVICE",
                  gpu_table = "TARGET_INFO_GPU", system_table = "TARGET_INFO_SYSTEM_ENV";

/// The upper 40 bits of a global id of a process or thread: machine and process.
constexpr std::int64_t process_bits = std::int64_t{1} << 24;

class NsightReport {
public:
    NsightReport(const std::filesystem::path& path, const KernelTable& kernels)
        : file_(path.string()), database_(path), kernels_(kernels) {
        if (!database_.has_table(kernel_table) && !database_.has_table(copy_table))
            throw UserError(file_ + ": has no CUDA activity (no table " + kernel_table + " or _MEMCPY)");
    }

    RecordedTrace read() && {
        trace_.recorded_by = "Nsight Systems";
        trace_.own_clock = true;
        read_machine();
        if (database_.has_table(kernel_table)) read_kernels();
        if (database_.has_table(copy_table)) read_copies();
        if (database_.has_table(call_table)) read_waits();
        return std::move(trace_);
    }

private:
    /// When the session began, the names of the machine and of its GPUs.
    void read_machine() {
        std::string start;
        if (database_.has_table(session_table))
            start = database_.first_text("SELECT utcEpochNs FROM " + session_table);
        trace_.clock_is_unknown = start.empty();
        begin_ = start.empty() ? 0 : std::strtoll(start.c_str(), nullptr, 10);
        if (database_.has_table(gpu_table))
            trace_.device = database_.first_text("SELECT name FROM " + gpu_table);
        if (database_.has_table(system_table))
            trace_.machine =
                database_.first_text("SELECT value FROM " + system_table + " WHERE name = 'Hostname'");
        if (!database_.has_table(device_table)) return;
        database_.for_each_row("SELECT pid, cudaId, uuid FROM " + device_table, [&](sqlite3_stmt* row) {
            const std::string uuid = SqliteDatabase::text(row, 2);
            if (!uuid.empty())
                trace_.gpu_names[{sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)}] = uuid;
        });
    }

    /// "column", or 0 where reports of this version have none.
    std::string column(const std::string& table, const std::string& name,
                       const std::string& otherwise) const {
        return database_.has_column(table, name) ? name : otherwise;
    }

    /// Columns: rowid, start, end, deviceId, streamId, process, then those of the caller, then the launch.
    void read_rows(const std::string& table, const std::string& columns, const std::string& joins,
                   const std::function<void(const SqliteRow&, RecordedSpan)>& add) {
        const bool launches = database_.has_table(call_table) &&
                              database_.has_column(table, "correlationId") &&
                              database_.has_column(table, "globalPid");
        const std::string process = column(table, "globalPid", "0"), bits = std::to_string(process_bits);
        std::string query = "SELECT a.rowid, a.start, a.end, a.deviceId, a.streamId, " + process + ", " +
                            (launches ? "c.start" : "NULL") + ", " + columns + " FROM " + table + " a " +
                            joins;
        if (launches)
            query += " LEFT JOIN (SELECT correlationId, globalTid / " + bits +
                     " AS process, min(start) AS start FROM " + call_table +
                     " GROUP BY 1, 2) c ON c.correlationId = a.correlationId AND c.process = a.globalPid / " +
                     bits;
        database_.for_each_row(query + " ORDER BY a.start", [&](sqlite3_stmt* prepared) {
            const SqliteRow row{prepared, file_ + ": " + table};
            RecordedSpan span{.gpu = row.integer(3),
                              .track = "stream " + std::to_string(row.integer(4)),
                              .start_ns = moved(row.integer(1)),
                              .end_ns = moved(row.integer(2))};
            // The lower 24 bits of the upper ones are the process, above them stands the machine.
            span.launch.process = row.integer(5) / process_bits % process_bits;
            if (const auto launched = row.known_integer(6)) span.launch.ns = moved(*launched);
            add(row, std::move(span));
        });
    }
    std::int64_t moved(std::int64_t ns) const {
        std::int64_t sum = 0;
        return __builtin_add_overflow(ns, begin_, &sum) ? INT64_MAX : sum;
    }

    void read_kernels() {
        read_rows(kernel_table, "s.value", "LEFT JOIN StringIds s ON s.id = a.demangledName",
                  [&](const SqliteRow& row, RecordedSpan span) {
                      span.name = row.text(7);
                      const std::optional<KernelUse> use = kernels_.use_of(span.name);
                      trace_.add(std::move(span), use,
                                 [&](const std::string& problem) { row.fail(problem); });
                  });
    }

    // Copy kinds are CUPTI's: 8 within a device, 10 between devices.
    void read_copies() {
        read_rows(copy_table, "a.copyKind, " + column(copy_table, "bytes", "0"), "",
                  [&](const SqliteRow& row, RecordedSpan span) {
                      const std::int64_t kind = row.integer(7);
                      span.bytes = static_cast<double>(std::max<std::int64_t>(0, row.integer(8)));
                      span.name = kind == 10  ? "Memcpy PtoP"
                                  : kind == 8 ? "Memcpy DtoD"
                                              : "Memcpy of kind " + std::to_string(kind);
                      span.with_host = kind != 8 && kind != 10;
                      const KernelUse use = kind == 10  ? KernelUse{TaskKind::copy}
                                            : kind == 8 ? KernelUse{TaskKind::local_copy}
                                                        : host_copy;
                      trace_.add(std::move(span), use,
                                 [&](const std::string& problem) { row.fail(problem); });
                  });
    }

    void read_waits() {
        if (!database_.has_column(call_table, "nameId") || !database_.has_column(call_table, "globalTid"))
            return;
        std::vector<HostWait> waits;
        database_.for_each_row(
            "SELECT c.rowid, c.start, c.end, c.globalTid FROM " + call_table +
                " c JOIN StringIds s ON s.id = c.nameId WHERE s.value LIKE '%Synchronize%'",
            [&](sqlite3_stmt* prepared) {
                const SqliteRow row{prepared, file_ + ": " + call_table};
                waits.push_back({moved(row.integer(1)), moved(row.integer(2)),
                                 row.integer(3) / process_bits % process_bits});
            });
        trace_.add_host_waits(std::move(waits));
    }

    std::string file_;
    SqliteDatabase database_;
    const KernelTable& kernels_;
    RecordedTrace trace_;
    std::int64_t begin_ = 0;  ///< of the session, in the time of day
};

}  // namespace

// Tables of what "nsys export --type sqlite" writes; times in ns from the start of the session. Source:
// docs.nvidia.com/nsight-systems, "SQLite Schema Reference".
RecordedTrace read_nsight_trace(const std::filesystem::path& path, const KernelTable& kernels) {
    return NsightReport(path, kernels).read();
}

}  // namespace overlap
