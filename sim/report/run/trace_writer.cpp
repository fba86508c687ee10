#include "sim/report/run/trace_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

template <class... Format>
void append_number(std::string& text, double value, Format... format) {
    std::array<char, 400> digits;  // fixed notation of the largest double has 313 characters
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, format...).ptr;
    text.append(digits.data(), end);
}

/// A viewer takes an arrow's end for that of the slice that is open at this time. At its end a slice is closed.
std::int64_t inside(const Slice& slice, std::int64_t time) {
    return std::clamp(time, slice.start, std::max(slice.start, slice.end - 1));
}

}  // namespace

std::string json_quoted(const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t trace_ticks(Seconds time) {
    return std::isfinite(time.si()) ? std::llround(time.si() * 1e9) : 0;
}

TraceWriter::TraceWriter(std::size_t events) {
    text_.reserve(64 + 128 * events);
    text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
}

void TraceWriter::process(int pid, const std::string& name, int place) {
    metadata("process_name", pid, 0, "name", json_quoted(name));
    metadata("process_sort_index", pid, 0, "sort_index", std::to_string(place));
}

void TraceWriter::thread(int pid, int tid, const std::string& name) {
    metadata("thread_name", pid, tid, "name", json_quoted(name));
    metadata("thread_sort_index", pid, tid, "sort_index", std::to_string(tid));
}

void TraceWriter::span(const Slice& at, const std::string& name, TaskKind kind, const Json& args) {
    open("X", json_quoted(name), at.pid);
    place(at.tid, at.start);
    text_ += R"(,"dur":)";
    microseconds_of(std::max<std::int64_t>(at.end - at.start, 0));
    text_ += R"(,"cat":")" + task_kind_names[static_cast<std::size_t>(kind)] + '"';
    if (!args.empty()) text_ += R"(,"args":)" + args.dump(-1, ' ', false, Json::error_handler_t::replace);
    text_ += '}';
}

void TraceWriter::sample(int pid, const std::string& quoted_name, const CounterSample& sample) {
    open("C", quoted_name, pid);
    text_ += R"(,"ts":)";
    microseconds_of(trace_ticks(sample.time));
    text_ += R"(,"args":{"GB/s":)";
    append_number(text_,
                  std::isfinite(sample.value) ? to_gigabytes_per_second(BytesPerSecond(sample.value)) : 0.0);
    text_ += "}}";
}

void TraceWriter::arrow(const Slice& from, std::int64_t leaves, const Slice& to, std::int64_t arrives) {
    const std::string id = R"(,"cat":"dependency","id":)" + std::to_string(++arrows_);
    const std::int64_t end = inside(to, arrives), begin = std::min(inside(from, leaves), end);
    const auto put = [&](const char* phase, const Slice& slice, std::int64_t time) {
        open(phase, R"("dependency")", slice.pid);
        place(slice.tid, time);
        text_ += id;
    };
    put("s", from, begin);
    text_ += '}';
    put("f", to, end);
    text_ += R"(,"bp":"e"})";
}

std::string TraceWriter::finish(const Json& other) {
    return std::move(text_ += "\n],\"otherData\":" + json_text(other) + "}\n");
}

void TraceWriter::open(const char* phase, const std::string& quoted_name, int pid) {
    text_ += std::exchange(first_, false) ? "\n" : ",\n";
    ((((text_ += R"({"ph":")") += phase) += R"(","name":)") += quoted_name) += R"(,"pid":)";
    text_ += std::to_string(pid);
}

void TraceWriter::place(int tid, std::int64_t time) {
    text_ += R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)";
    microseconds_of(time);
}

void TraceWriter::metadata(const char* what, int pid, int tid, const char* key, const std::string& value) {
    open("M", json_quoted(what), pid);
    text_ += R"(,"tid":)" + std::to_string(tid);
    ((((text_ += R"(,"args":{")") += key) += "\":") += value) += "}}";
}

void TraceWriter::microseconds_of(std::int64_t nanoseconds) {
    append_number(text_, static_cast<double>(nanoseconds) / 1000.0, std::chars_format::fixed, 3);
}

}  // namespace overlap
