#include <sqlite3.h>

#include "sim/core/errors.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

/// A database opened for reading, and rows of one query at a time.
class Database {
public:
    explicit Database(const std::filesystem::path& path) : path_(path.string()) {
        if (sqlite3_open_v2(path_.c_str(), &handle_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) fail();
    }
    ~Database() { sqlite3_close(handle_); }
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    template <class Visit>
    void for_each_row(const std::string& query, Visit visit) const {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(handle_, query.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail();
        int state = 0;
        while ((state = sqlite3_step(statement)) == SQLITE_ROW) visit(statement);
        sqlite3_finalize(statement);
        if (state != SQLITE_DONE) fail();
    }

    bool has_table(const std::string& name) const {
        bool found = false;
        for_each_row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + name + "'",
                     [&](sqlite3_stmt*) { found = true; });
        return found;
    }

    [[noreturn]] void fail() const { throw UserError(path_ + ": SQLite: " + sqlite3_errmsg(handle_)); }

private:
    std::string path_;
    sqlite3* handle_ = nullptr;
};

std::string text(sqlite3_stmt* row, int column) {
    const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return value == nullptr ? "" : value;
}

// Tables of CUDA activity in what "nsys export --type sqlite" writes; times in ns. Copy kinds are CUPTI's:
// 8 within a device, 10 between devices. Source: docs.nvidia.com/nsight-systems, "SQLite Schema Reference".
class NsightImporter final : public TraceImporter {
public:
    RecordedTrace read(const std::filesystem::path& path) const override {
        const Database database(path);
        RecordedTrace trace;
        trace.recorded_by = "Nsight Systems";
        const bool kernels = database.has_table("CUPTI_ACTIVITY_KIND_KERNEL");
        const bool copies = database.has_table("CUPTI_ACTIVITY_KIND_MEMCPY");
        if (!kernels && !copies)
            throw UserError(path.string() +
                            ": has no CUDA activity (no table CUPTI_ACTIVITY_KIND_KERNEL or _MEMCPY)");
        const auto add = [&](sqlite3_stmt* row, const std::string& name, std::optional<TaskKind> kind) {
            if (!kind) {
                ++trace.not_mapped[name];
                return;
            }
            trace.spans.push_back({name, *kind, sqlite3_column_int(row, 2),
                                   "stream " + std::to_string(sqlite3_column_int(row, 3)),
                                   sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)});
        };
        if (kernels)
            database.for_each_row(
                "SELECT k.start, k.end, k.deviceId, k.streamId, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                "LEFT JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start",
                [&](sqlite3_stmt* row) { add(row, text(row, 4), kind_of_kernel(text(row, 4))); });
        if (copies)
            database.for_each_row(
                "SELECT start, end, deviceId, streamId, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY "
                "ORDER BY start",
                [&](sqlite3_stmt* row) {
                    const int kind = sqlite3_column_int(row, 4);
                    if (kind == 10) return add(row, "Memcpy PtoP", TaskKind::copy);
                    if (kind == 8) return add(row, "Memcpy DtoD", TaskKind::local_copy);
                    add(row, "Memcpy of kind " + std::to_string(kind), std::nullopt);
                });
        return trace;
    }
};

}  // namespace

std::unique_ptr<TraceImporter> make_nsight_importer() {
    return std::make_unique<NsightImporter>();
}

}  // namespace overlap
