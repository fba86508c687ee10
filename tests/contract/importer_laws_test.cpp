// Laws of every registered importer, on one run as each profiler would have written it: a GEMM on each of two GPUs.
#include <sqlite3.h>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "sim/importers/trace_importer.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::importer_laws_test {
namespace {

/// Times of the two kernels, in ns.
struct Run {
    std::int64_t start[2], end[2];
    Run later(std::int64_t by) const { return {{start[0] + by, start[1] + by}, {end[0] + by, end[1] + by}}; }
};
constexpr Run usual{{1'000, 3'000}, {51'000, 43'000}}, backwards{{1'000, 43'000}, {51'000, 3'000}};
constexpr const char* kernel = "Cijk_Ailk_Bljk_BBS_MT256x256x64";

/// `text` with $0, $1 and so on replaced: start and end of the first kernel, start and end of the second one, name.
std::string filled(std::string text, const Run& run) {
    const std::vector<std::string> values{std::to_string(run.start[0]), std::to_string(run.end[0]),
                                          std::to_string(run.start[1]), std::to_string(run.end[1]), kernel};
    for (std::size_t i = 0; i < values.size(); ++i)
        for (auto at = text.find("$" + std::to_string(i)); at != std::string::npos;
             at = text.find("$" + std::to_string(i)))
            text.replace(at, 2, values[i]);
    return text;
}

/// A field of Protocol Buffers: a number, or bytes behind their length.
std::string number(std::uint64_t value) {
    std::string bytes;
    for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
    return bytes + static_cast<char>(value);
}
std::string field(std::uint64_t id, std::uint64_t value) {
    return number(id << 3) + number(value);
}
std::string field(std::uint64_t id, const std::string& bytes) {
    return number(id << 3 | 2) + number(bytes.size()) + bytes;
}
std::string annotation(const std::string& name, std::int64_t value) {
    return field(4, field(10, name) + field(3, static_cast<std::uint64_t>(value)));
}
/// A packet with a clock, and slices, whose annotations have their times.
std::string perfetto_trace(const Run& run) {
    std::string packets = field(1, field(6, ""));
    for (int gpu = 0; gpu < 2; ++gpu)
        packets += field(1, field(11, field(9, 1) + field(22, "kernel_dispatch") + field(23, kernel) +
                                          annotation("begin_ns", run.start[gpu]) +
                                          annotation("end_ns", run.end[gpu]) + annotation("agent", 4 + gpu) +
                                          annotation("corr_id", 1) + annotation("queue", 1)));
    return packets;
}

struct Format {
    std::string importer, file;
    bool database;
    std::string content;  ///< see filled
};
/// An importer without a row here breaks the first law.
const std::vector<Format>& formats() {
    static const std::vector<Format> all{
        {"rocpd", "1_results.db", true, R"(
CREATE TABLE rocpd_string_u(id INTEGER PRIMARY KEY, string TEXT);
CREATE TABLE rocpd_info_agent_u(id INTEGER PRIMARY KEY, type TEXT, absolute_index INTEGER, product_name TEXT);
CREATE TABLE rocpd_info_kernel_symbol_u(id INTEGER PRIMARY KEY, display_name TEXT);
CREATE TABLE rocpd_kernel_dispatch_u(id INTEGER PRIMARY KEY, agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER,
                                     stream_id INTEGER, pid INTEGER, start INTEGER, end INTEGER);
INSERT INTO rocpd_info_agent_u VALUES (2, 'GPU', 4, 'AMD'), (3, 'GPU', 5, 'AMD');
INSERT INTO rocpd_info_kernel_symbol_u VALUES (7, '$4');
INSERT INTO rocpd_kernel_dispatch_u VALUES (1, 2, 7, 1, 0, 1, $0, $1), (2, 3, 7, 1, 0, 1, $2, $3);)"},
        {"nsight", "report.sqlite", true, R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
                                         demangledName INTEGER);
INSERT INTO StringIds VALUES (1, '$4');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ($0, $1, 4, 7, 1), ($2, $3, 5, 7, 1);)"},
        {"rocprof_csv", "1_kernel_trace.csv", false,
         "Kind,Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,Agent 4,1,$4,$0,$1\n"
         "KERNEL_DISPATCH,Agent 5,1,$4,$2,$3\n"},
        {"rocprof_json", "results.json", false, R"({"rocprofiler-sdk-tool": [{
"agents": [{"id": {"handle": 22}, "type": 2}, {"id": {"handle": 33}, "type": 2}],
"kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name": "$4"}], "buffer_records": {"kernel_dispatch": [
{"start_timestamp": $0, "end_timestamp": $1, "dispatch_info": {"agent_id": {"handle": 22}, "queue_id": {"handle": 3},
 "kernel_id": 5}}, {"start_timestamp": $2, "end_timestamp": $3, "dispatch_info": {"agent_id": {"handle": 33},
 "queue_id": {"handle": 3}, "kernel_id": 5}}]}}]})"},
        {"rocprof_perfetto", "1_results.pftrace", false, ""},
        {"kineto", "trace.json", false, R"({"traceEvents": [
{"ph": "X", "cat": "kernel", "name": "$4", "ts": $0e-3, "dur": #0, "args": {"device": 4, "stream": 7}},
{"ph": "X", "cat": "kernel", "name": "$4", "ts": $2e-3, "dur": #1, "args": {"device": 5, "stream": 7}}]})"},
        {"own", "case.json", false, R"({"schema": 1, "system": "x", "spans": [
{"name": "$4", "kind": "gemm", "gpu": 0, "stream": "s", "start_us": $0e-3, "end_us": $1e-3},
{"name": "$4", "kind": "gemm", "gpu": 1, "stream": "s", "start_us": $2e-3, "end_us": $3e-3}]})"}};
    return all;
}

class Files {
public:
    std::filesystem::path write(const Format& format, const Run& run) const {
        std::string content = format.content.empty() ? perfetto_trace(run) : filled(format.content, run);
        for (int i = 0; i < 2; ++i)  // durations, in µs
            if (const auto at = content.find("#" + std::to_string(i)); at != std::string::npos)
                content.replace(at, 2, std::to_string(run.end[i] - run.start[i]) + "e-3");
        const auto path = folder_ / format.file;
        std::filesystem::remove(path);
        if (!format.database) {
            std::ofstream(path) << content;
            return path;
        }
        sqlite3* handle = nullptr;
        REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
        REQUIRE(sqlite3_exec(handle, content.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
        sqlite3_close(handle);
        return path;
    }
    /// The first half of the file.
    static void cut(const std::filesystem::path& path) {
        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    }

private:
    TemporaryFolder folder_;
};

RecordedTrace read(const std::filesystem::path& path) {
    static const KernelTable kernels = [] {
        KernelTable table;
        table.add(source_folder / "configs" / "kernels.json");
        return table;
    }();
    return find_trace_importer(path, "").read(path, kernels);
}

}  // namespace

TEST_CASE("every importer knows the files of its own format, and no other importer takes them") {
    const Files files;
    for (const TraceImporter& importer : trace_importers()) {
        INFO(importer.name);
        const auto format = std::ranges::find(formats(), importer.name, &Format::importer);
        REQUIRE(format != formats().end());
        const TraceImporter* recognised = recognised_trace(files.write(*format, usual));
        REQUIRE(recognised != nullptr);
        CHECK(recognised->name == importer.name);
    }
    CHECK(formats().size() == trace_importers().size());
}

TEST_CASE("one run is the same timeline, whichever profiler recorded it and whenever it began") {
    const Files files;
    for (const Format& format : formats())
        for (const std::int64_t later : {0, 7'000'000}) {
            INFO(format.importer << " " << later);
            const RecordedTrace trace = read(files.write(format, usual.later(later)));
            CHECK_FALSE(trace.recorded_by.empty());
            REQUIRE(trace.spans.size() == 2);
            const Timeline timeline = timeline_of(merged(std::vector{trace}));
            for (int gpu = 0; gpu < 2; ++gpu) {
                const Span& span = timeline.spans()[static_cast<std::size_t>(gpu)];
                CHECK(span.gpu == gpu);
                CHECK(span.kind == TaskKind::gemm);
                CHECK(span.name == kernel);
                CHECK(to_microseconds(span.start) ==
                      Approx(1e-3 * static_cast<double>(usual.start[gpu] - usual.start[0])));
                CHECK(to_microseconds(span.end) ==
                      Approx(1e-3 * static_cast<double>(usual.end[gpu] - usual.start[0])));
            }
        }
}

TEST_CASE("a kernel that ends before it begins, and half a file, are one line that names the file") {
    const Files files;
    for (const Format& format : formats())
        for (const bool half : {false, true}) {
            INFO(format.importer << (half ? " half" : " backwards"));
            const auto path = files.write(format, half ? usual : backwards);
            if (half) Files::cut(path);
            const std::string error = error_of([&] { read(path); });
            CHECK(error.starts_with(path.string()));
            CHECK(error.find('\n') == std::string::npos);
        }
}

}  // namespace overlap::test::importer_laws_test
