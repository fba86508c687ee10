#pragma once

#include <cstdint>
#include <string>

#include "sim/report/run/result.hpp"

namespace overlap {

/// Text in double quotes, as JSON wants it.
std::string json_quoted(const std::string& text);
/// Rounds to nanoseconds, Perfetto's resolution; spans that touch still touch after rounding.
std::int64_t trace_ticks(Seconds time);

/// Where a slice is drawn; times in nanoseconds.
struct Slice {
    int pid = 0, tid = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;  ///< earlier than the end of its span if the track's next span begins before that
};

/// Writes the Trace Event Format (JSON), which Perfetto and chrome://tracing read.
class TraceWriter {
public:
    explicit TraceWriter(std::size_t events);

    /// Processes are shown in the order of `place`.
    void process(int pid, const std::string& name, int place);
    void thread(int pid, int tid, const std::string& name);
    /// `args`: an object; without members it is left out.
    void span(const Slice& at, const std::string& name, TaskKind kind, const Json& args);
    void sample(int pid, const std::string& quoted_name, const CounterSample& sample);
    /// An arrow from inside one slice to inside another.
    void arrow(const Slice& from, std::int64_t leaves, const Slice& to, std::int64_t arrives);
    /// `other`: facts on the trace, its "otherData".
    std::string finish(const Json& other);

private:
    void open(const char* phase, const std::string& quoted_name, int pid);
    void place(int tid, std::int64_t time);
    void metadata(const char* what, int pid, int tid, const char* key, const std::string& value);
    void microseconds_of(std::int64_t nanoseconds);

    std::string text_;
    bool first_ = true;
    std::uint64_t arrows_ = 0;
};

}  // namespace overlap
