#include <sqlite3.h>
#include <memory>

#include "sim/core/errors.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

/// A database opened for reading, with the rows of one query at a time.
class Database {
public:
    explicit Database(const std::filesystem::path& path) : path_(path.string()) {
        sqlite3* opened = nullptr;
        const int state = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
        handle_.reset(opened);
        if (state != SQLITE_OK) fail();
    }

    template <class Visit>
    void for_each_row(const std::string& query, Visit visit) const {
        sqlite3_stmt* prepared = nullptr;
        if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail();
        const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared,
                                                                                   sqlite3_finalize);
        int state = 0;
        while ((state = sqlite3_step(prepared)) == SQLITE_ROW) visit(prepared);
        if (state != SQLITE_DONE) fail();
    }

    bool has_table(const std::string& name) const {
        bool found = false;
        for_each_row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + name + "'",
                     [&](sqlite3_stmt*) { found = true; });
        return found;
    }

    [[noreturn]] void fail() const { throw UserError(path_ + ": SQLite: " + sqlite3_errmsg(handle_.get())); }

private:
    std::string path_;
    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle_{nullptr, sqlite3_close};
};

/// A row of a CUDA activity table, whose columns begin with rowid, start, end, deviceId, streamId.
struct ActivityRow {
    sqlite3_stmt* row;
    std::string place;  ///< "report.sqlite: CUPTI_ACTIVITY_KIND_KERNEL"

    [[noreturn]] void fail(const std::string& problem) const {
        throw UserError(place + " row " + std::to_string(sqlite3_column_int64(row, 0)) + ": " + problem);
    }
    std::int64_t integer(int column) const {
        if (sqlite3_column_type(row, column) != SQLITE_INTEGER)
            fail(std::string(sqlite3_column_name(row, column)) + " is no whole number");
        return sqlite3_column_int64(row, column);
    }
};

std::string text(sqlite3_stmt* row, int column) {
    const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return value == nullptr ? "" : value;
}

}  // namespace

// Tables of CUDA activity in what "nsys export --type sqlite" writes; times in ns. Copy kinds are CUPTI's:
// 8 within a device, 10 between devices. Source: docs.nvidia.com/nsight-systems, "SQLite Schema Reference".
RecordedTrace read_nsight_trace(const std::filesystem::path& path, const KernelTable& table_of_kernels) {
    const Database database(path);
    RecordedTrace trace;
    trace.recorded_by = "Nsight Systems";
    const std::string kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL", copy_table = "CUPTI_ACTIVITY_KIND_MEMCPY";
    const bool kernels = database.has_table(kernel_table);
    const bool copies = database.has_table(copy_table);
    if (!kernels && !copies)
        throw UserError(path.string() +
                        ": has no CUDA activity (no table CUPTI_ACTIVITY_KIND_KERNEL or _MEMCPY)");
    const auto add = [&](const ActivityRow& row, const std::string& name, std::optional<KernelUse> use) {
        trace.add({.name = name,
                   .gpu = row.integer(3),
                   .track = "stream " + std::to_string(row.integer(4)),
                   .start_ns = row.integer(1),
                   .end_ns = row.integer(2)},
                  use, [&](const std::string& problem) { row.fail(problem); });
    };
    if (kernels)
        database.for_each_row(
            "SELECT k.rowid, k.start, k.end, k.deviceId, k.streamId, s.value FROM " + kernel_table +
                " k LEFT JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start",
            [&](sqlite3_stmt* row) {
                const std::string name = text(row, 5);
                add({row, path.string() + ": " + kernel_table}, name, table_of_kernels.use_of(name));
            });
    if (copies)
        database.for_each_row(
            "SELECT rowid, start, end, deviceId, streamId, copyKind FROM " + copy_table + " ORDER BY start",
            [&](sqlite3_stmt* row) {
                const ActivityRow copy{row, path.string() + ": " + copy_table};
                const std::int64_t kind = copy.integer(5);
                if (kind == 10) return add(copy, "Memcpy PtoP", KernelUse{TaskKind::copy});
                if (kind == 8) return add(copy, "Memcpy DtoD", KernelUse{TaskKind::local_copy});
                add(copy, "Memcpy of kind " + std::to_string(kind), std::nullopt);
            });
    return trace;
}

}  // namespace overlap
