#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/input_file.hpp"

namespace overlap {

/// A database opened for reading, compressed or not, with the rows of one query at a time.
class SqliteDatabase {
public:
    explicit SqliteDatabase(const std::filesystem::path& path) : path_(path.string()) {
        constexpr std::string_view magic = "SQLite format 3";
        std::string head(magic.size(), '\0');
        open_input(path, expected).read(head.data(), static_cast<std::streamsize>(head.size()));
        // A compressed file, or a pipe, has no name that SQLite could open.
        const bool is_plain = head == magic && on_disk(path, expected) == path;
        sqlite3* opened = nullptr;
        const int state = sqlite3_open_v2(is_plain ? path_.c_str() : ":memory:", &opened,
                                          is_plain ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, nullptr);
        handle_.reset(opened);
        if (state != SQLITE_OK) fail();
        if (!is_plain) take(decompressed(path, expected));
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
        return !first_text("SELECT name FROM sqlite_master WHERE type = 'table' AND name = '" + name + "'")
                    .empty();
    }
    bool has_column(const std::string& table, const std::string& column) const {
        return !first_text("SELECT name FROM pragma_table_info('" + table + "') WHERE name = '" + column +
                           "'")
                    .empty();
    }
    /// The first column of the first row; empty if there is none.
    std::string first_text(const std::string& query) const {
        std::string found;
        for_each_row(query, [&](sqlite3_stmt* row) {
            if (found.empty()) found = text(row, 0);
        });
        return found;
    }

    static std::string text(sqlite3_stmt* row, int column) {
        const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
        return value == nullptr ? "" : value;
    }

    [[noreturn]] void fail() const { throw UserError(path_ + ": SQLite: " + sqlite3_errmsg(handle_.get())); }

private:
    static constexpr const char* expected = "an SQLite database";

    /// The contents of a database.
    void take(const std::string& content) {
        const auto size = static_cast<sqlite3_int64>(content.size());
        auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(content.size()));
        if (copy == nullptr) throw std::bad_alloc();
        std::copy(content.begin(), content.end(), copy);
        if (sqlite3_deserialize(handle_.get(), "main", copy, size, size,
                                SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
            fail();
    }

    std::string path_;
    std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle_{nullptr, sqlite3_close};
};

/// A row of a table of activities, whose first column is its number.
struct SqliteRow {
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
    /// None where the recording has none.
    std::optional<std::int64_t> known_integer(int column) const {
        return sqlite3_column_type(row, column) == SQLITE_NULL ? std::nullopt
                                                               : std::optional(integer(column));
    }
    std::string text(int column) const { return SqliteDatabase::text(row, column); }
};

}  // namespace overlap
