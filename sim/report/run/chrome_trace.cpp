#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

/// Whether `text` starts with `prefix` and a number. If so, removes both from `text`.
bool take_number(std::string_view& text, std::string_view prefix, int& number) {
    if (!text.starts_with(prefix)) return false;
    const char* const begin = text.data() + prefix.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

/// Order of a GPU's tracks: compute, local, transfers by stream, then tracks of measured timelines only.
using TrackOrder = std::tuple<int, int, std::string>;

TrackOrder order_of(const std::string& track) {
    if (track == stream_name(compute_stream)) return {0, 0, track};
    if (track == stream_name(local_stream)) return {1, 0, track};
    int number = 0;
    std::string_view rest = track;
    if (take_number(rest, "transfer ", number) && rest.empty()) return {2, number, track};
    return {3, 0, track};
}

/// The GPU in whose process a counter is shown; −1 for the fabric. A link has no GPU, but its name
/// ("link[gpu0->gpu3]") tells where it starts.
int home_of(const Counter& counter) {
    if (counter.gpu >= 0) return counter.gpu;
    int source = 0;
    std::string_view name = counter.name;
    return take_number(name, "link[gpu", source) && name.starts_with("->") ? source : -1;
}

std::string escaped(const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Rounds to nanoseconds, Perfetto's resolution; spans that touch still touch after rounding.
std::int64_t ticks(Seconds time) {
    return std::isfinite(time.si()) ? std::llround(time.si() * 1e9) : 0;
}

class TraceWriter {
public:
    explicit TraceWriter(std::size_t events) {
        text_.reserve(64 + 128 * events);
        text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
    }

    void process(int pid, const std::string& name) {
        metadata("process_name", pid, 0, "name", escaped(name));
        metadata("process_sort_index", pid, 0, "sort_index", std::to_string(pid));
    }

    void thread(int pid, int tid, const std::string& name) {
        metadata("thread_name", pid, tid, "name", escaped(name));
        metadata("thread_sort_index", pid, tid, "sort_index", std::to_string(tid));
    }

    /// `shown_end`, in ticks: earlier than the end of the span if the track's next span begins before that.
    void span(int pid, int tid, const Span& span, std::int64_t shown_end) {
        open("X", escaped(span.name), pid);
        const std::int64_t start = ticks(span.start);
        text_ += R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)";
        microseconds_of(start);
        text_ += R"(,"dur":)";
        microseconds_of(std::max<std::int64_t>(shown_end - start, 0));
        text_ += R"(,"cat":")" + task_kind_names[static_cast<std::size_t>(span.kind)] + '"';
        if (shown_end < ticks(span.end)) {
            text_ += R"(,"args":{"whole_dur_us":)";
            microseconds_of(ticks(span.end) - start);
            text_ += '}';
        }
        text_ += '}';
    }

    void sample(int pid, const std::string& escaped_name, const CounterSample& sample) {
        open("C", escaped_name, pid);
        text_ += R"(,"ts":)";
        microseconds_of(ticks(sample.time));
        text_ += R"(,"args":{"GB/s":)";
        number(std::isfinite(sample.value) ? to_gigabytes_per_second(BytesPerSecond(sample.value)) : 0.0);
        text_ += "}}";
    }

    std::string finish() { return std::move(text_ += "\n]}\n"); }

private:
    void open(const char* phase, const std::string& escaped_name, int pid) {
        text_ += std::exchange(first_, false) ? "\n" : ",\n";
        ((((text_ += R"({"ph":")") += phase) += R"(","name":)") += escaped_name) += R"(,"pid":)";
        text_ += std::to_string(pid);
    }

    void metadata(const char* what, int pid, int tid, const char* key, const std::string& value) {
        open("M", escaped(what), pid);
        text_ += R"(,"tid":)" + std::to_string(tid);
        ((((text_ += R"(,"args":{")") += key) += "\":") += value) += "}}";
    }

    template <class... Format>
    void number(double value, Format... format) {
        std::array<char, 400> digits;  // fixed notation of the largest double has 313 characters
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, format...).ptr;
        text_.append(digits.data(), end);
    }
    void microseconds_of(std::int64_t nanoseconds) {
        number(static_cast<double>(nanoseconds) / 1000.0, std::chars_format::fixed, 3);
    }

    std::string text_;
    bool first_ = true;
};

// Perfetto drops an event that overlaps another of its track without lying inside it (google/perfetto#4280).
// In a stream the completion of a task overlaps the start of the next task, so the earlier span is cut there.
std::int64_t shown_end(const std::vector<const Span*>& sorted, std::size_t index) {
    const std::int64_t end = ticks(sorted[index]->end);
    for (std::size_t next = index + 1; next < sorted.size() && ticks(sorted[next]->start) < end; ++next)
        if (ticks(sorted[next]->end) > end) return ticks(sorted[next]->start);
    return end;
}

void write_track(int gpu, int tid, std::vector<const Span*>& spans, TraceWriter& writer) {
    // Of two spans that start together the longer comes first; the other lies inside it.
    const auto key = [](const Span* span) {
        return std::make_tuple(ticks(span->start), -ticks(span->end), span->kind,
                               std::string_view(span->name));
    };
    std::sort(spans.begin(), spans.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < spans.size(); ++i) writer.span(gpu, tid, *spans[i], shown_end(spans, i));
}

void write_spans(const Timeline& timeline, TraceWriter& writer) {
    std::map<int, std::map<TrackOrder, std::vector<const Span*>>> tracks;
    for (const Span& span : timeline.spans()) tracks[span.gpu][order_of(span.track)].push_back(&span);
    for (auto& [gpu, of_gpu] : tracks) {
        int tid = 0;
        for (auto& [order, spans] : of_gpu) {
            writer.thread(gpu, ++tid, std::get<std::string>(order));
            write_track(gpu, tid, spans, writer);
        }
    }
}

}  // namespace

std::string to_chrome_trace(const RunResult& result) {
    std::size_t events = result.timeline.spans().size();
    int gpus = result.timeline.gpus();
    bool fabric = false;
    for (const Counter& counter : result.counters) {
        events += counter.samples.size();
        gpus = std::max(gpus, home_of(counter) + 1);
        fabric = fabric || home_of(counter) < 0;
    }
    TraceWriter writer(events);
    for (int gpu = 0; gpu < gpus; ++gpu) writer.process(gpu, "GPU " + std::to_string(gpu));
    if (fabric) writer.process(gpus, "fabric");
    write_spans(result.timeline, writer);
    for (const Counter& counter : result.counters) {
        const int home = home_of(counter);
        const std::string name = escaped(counter.name);
        for (const CounterSample& sample : counter.samples)
            writer.sample(home < 0 ? gpus : home, name, sample);
    }
    return writer.finish();
}

}  // namespace overlap
