#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/report/run/report.hpp"
#include "sim/report/run/trace_writer.hpp"
#include "sim/report/text_format.hpp"

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

/// Four digits: enough to read, and short files.
double rounded(double value) {
    return std::stod(significant(value));
}

std::int64_t whole_bytes(Bytes bytes) {
    return std::llround(bytes.si());
}

std::string gpu_name(int gpu) {
    return "GPU " + std::to_string(gpu);
}

/// What a task did, for the arguments of its slice: "shape", "bytes", "GB/s", "TFLOP/s", "source", "destination",
/// "agent". Rates are those that the body achieved, beside all other tasks. `gpus`: of the run.
class SliceFacts {
public:
    SliceFacts(const Interval& body, int gpus) : lasted_(body.second - body.first), gpus_(gpus) {}

    void add(const GemmShape& gemm) {
        json_["shape"] = (gemm.batch > 1 ? std::to_string(gemm.batch) + " x " : "") + shape_name(gemm) + " " +
                         name_of(gemm.dtype);
        add_flops(gemm.flops());
    }
    void add(const CopyWork& copy) {
        json_["source"] = gpu_name(copy.src);
        json_["destination"] = gpu_name(copy.dst);
        if (const Broadcast* both = copy.broadcast()) json_["second destination"] = gpu_name(both->second);
        json_["agent"] = agent_names[static_cast<std::size_t>(copy.agent)] + " " +
                         direction_names[static_cast<std::size_t>(copy.direction)];
        add_bytes(copy.bytes);
        if (copy.run < copy.bytes) json_["contiguous bytes"] = whole_bytes(copy.run);
    }
    void add(const LocalCopyWork& copy) { add_bytes(copy.bytes); }
    void add(const ReduceWork& reduce) {
        json_["parts"] = reduce.parts;
        add_bytes(reduce.bytes);
    }
    void add(const MemoryBoundWork& work) {
        add_bytes(work.read + work.written);
        if (work.flops > Flops()) add_flops(work.flops);
    }
    /// The rate is the bus bandwidth (sim/README.md).
    void add(const CollectiveKernelWork& work) {
        json_["collective"] = name_of(work.kind);
        json_["bytes"] = whole_bytes(work.operand);
        const double ways = work.kind == CollectiveKind::all_reduce ? 2 : 1;
        add_rate(ways * (gpus_ - 1) / gpus_ * work.operand);
    }
    template <class Other>
    void add(const Other&) {}

    Json& json() { return json_; }

private:
    void add_bytes(Bytes bytes) {
        json_["bytes"] = whole_bytes(bytes);
        add_rate(bytes);
    }
    void add_rate(Bytes bytes) {
        if (lasted_ > Seconds()) json_["GB/s"] = rounded(to_gigabytes_per_second(bytes / lasted_));
    }
    void add_flops(Flops flops) {
        if (lasted_ > Seconds()) json_["TFLOP/s"] = rounded(to_teraflops(flops / lasted_));
    }

    Json json_ = Json::object();
    Seconds lasted_;
    int gpus_;
};

/// Spans of one track, in the order in which they are drawn.
using Track = std::vector<std::size_t>;

class TraceOfRun {
public:
    explicit TraceOfRun(const RunResult& result)
        : result_(result),
          spans_(result.observed.timeline.spans()),
          slices_(spans_.size()),
          writer_(events()) {
        for (const Counter& counter : result.observed.counters) gpus_ = std::max(gpus_, home_of(counter) + 1);
        if (result.observed.recording) {
            critical_.resize(spans_.size());
            for (const TaskId id : result.observed.recording->critical) critical_[id] = true;
        }
        const Json::json_pointer operators("/workload/operators");
        if (result.config.contains(operators))
            for (const Json& one : result.config[operators]) operators_.push_back(one.value("name", ""));
    }

    std::string text(Json other) {
        for (int gpu = 0; gpu < gpus_; ++gpu) writer_.process(gpu, gpu_name(gpu), gpu);
        write_spans();
        write_critical_path();
        write_arrows();
        write_counters();
        other["config"] = result_.config;
        return writer_.finish(other);
    }

private:
    std::size_t events() const {
        std::size_t count = spans_.size();
        for (const Counter& counter : result_.observed.counters) count += counter.samples.size();
        if (result_.observed.recording)
            count += 2 * result_.observed.recording->graph.edge_count() + spans_.size();
        return count;
    }

    void write_spans() {
        std::map<int, std::map<TrackOrder, Track>> tracks;
        for (std::size_t i = 0; i < spans_.size(); ++i)
            tracks[spans_[i].gpu][order_of(spans_[i].track)].push_back(i);
        for (auto& [gpu, of_gpu] : tracks) {
            int tid = 0;
            for (auto& [order, track] : of_gpu) {
                writer_.thread(gpu, ++tid, std::get<std::string>(order));
                for (const auto& [span, end] : drawn(track)) {
                    slices_[span] = {gpu, tid, trace_ticks(spans_[span].start), end};
                    writer_.span(slices_[span], name_of_slice(span), spans_[span].kind,
                                 args_of(span, slices_[span]));
                }
            }
        }
    }

    /// The tasks of the critical path once more, below one another in time, in a process of their own.
    void write_critical_path() {
        if (!result_.observed.recording || result_.observed.recording->critical.empty()) return;
        const int pid = gpus_ + 1, tid = 1;
        writer_.process(pid, "critical path", -1);
        writer_.thread(pid, tid, "each waited for the one before");
        for (const auto& [span, end] : drawn(Track(result_.observed.recording->critical))) {
            const Slice slice{pid, tid, trace_ticks(spans_[span].start), end};
            writer_.span(slice, gpu_name(spans_[span].gpu) + ": " + name_of_slice(span), spans_[span].kind,
                         args_of(span, slice));
        }
    }

    /// The arrow of a progress edge leaves and arrives where the bodies are, if they progress evenly.
    void write_arrows() {
        if (!result_.observed.recording) return;
        const TaskGraph& graph = result_.observed.recording->graph;
        const auto at = [&](TaskId id, double share) {
            const auto& [begin, end] = result_.observed.recording->bodies[id];
            return trace_ticks(begin + share * (end - begin));
        };
        for (std::size_t number = 0; number < graph.edge_count(); ++number) {
            const Edge edge = graph.edge(number);
            const Slice &from = slices_[edge.predecessor], &to = slices_[edge.successor];
            writer_.arrow(from, edge.from < 1 ? at(edge.predecessor, edge.from) : from.end, to,
                          edge.to > 0 ? at(edge.successor, edge.to) : to.start);
        }
    }

    void write_counters() {
        bool fabric = false;
        for (const Counter& counter : result_.observed.counters) {
            const int home = home_of(counter);
            if (home < 0 && !std::exchange(fabric, true)) writer_.process(gpus_, "fabric", gpus_);
            const std::string name = json_quoted(counter.name);
            for (const CounterSample& sample : counter.samples)
                writer_.sample(home < 0 ? gpus_ : home, name, sample);
        }
    }

    /// A list's operator by its own name where its task is only called by its kind; the kind is the slice's category.
    std::string name_of_slice(std::size_t span) const {
        const std::string& name = spans_[span].name;
        if (!result_.observed.recording ||
            name != task_kind_names[static_cast<std::size_t>(spans_[span].kind)])
            return name;
        const auto op = static_cast<std::size_t>(result_.observed.recording->graph[span].op);
        return op < operators_.size() && !operators_[op].empty() ? operators_[op] : name;
    }

    Json args_of(std::size_t span, const Slice& slice) const {
        Json args = Json::object();
        if (result_.observed.recording) {
            const Task& task = result_.observed.recording->graph[span];
            SliceFacts facts(result_.observed.recording->bodies[span], gpus_);
            std::visit([&](const auto& work) { facts.add(work); }, task.work);
            args = std::move(facts.json());
            if (task.shard >= 0) args["shard"] = task.shard;
            if (task.chunk >= 0) args["step"] = task.chunk;
            if (task.op >= 0 && static_cast<std::size_t>(task.op) < operators_.size())
                args["operator"] = operators_[static_cast<std::size_t>(task.op)];
            if (critical_[span]) args["critical path"] = true;
        }
        const Span& whole = spans_[span];
        if (slice.end < trace_ticks(whole.end))
            args["whole_dur_us"] = static_cast<double>(trace_ticks(whole.end) - slice.start) / 1000.0;
        return args;
    }

    /// The spans of a track in order, each with the time at which it is shown to end. Perfetto drops an event that
    /// overlaps another of its track without lying inside it (google/perfetto#4280). In a stream the completion of a
    /// task overlaps the start of the next task, so the earlier span is cut there.
    std::vector<std::pair<std::size_t, std::int64_t>> drawn(Track track) const {
        // The longer of two spans that start together comes first; the other lies inside it.
        const auto key = [&](std::size_t span) {
            const Span& one = spans_[span];
            return std::make_tuple(trace_ticks(one.start), -trace_ticks(one.end), one.kind,
                                   std::string_view(one.name));
        };
        std::ranges::sort(track, {}, key);
        std::vector<std::pair<std::size_t, std::int64_t>> result;
        for (std::size_t i = 0; i < track.size(); ++i) {
            std::int64_t end = trace_ticks(spans_[track[i]].end);
            for (std::size_t next = i + 1;
                 next < track.size() && trace_ticks(spans_[track[next]].start) < end; ++next)
                if (trace_ticks(spans_[track[next]].end) > end) {
                    end = trace_ticks(spans_[track[next]].start);
                    break;
                }
            result.emplace_back(track[i], end);
        }
        return result;
    }

    const RunResult& result_;
    const std::vector<Span>& spans_;
    std::vector<Slice> slices_;   ///< by span
    std::vector<bool> critical_;  ///< by span; empty without a recording
    std::vector<std::string> operators_;
    int gpus_ = result_.observed.timeline.gpus();
    TraceWriter writer_;
};

}  // namespace

std::string to_chrome_trace(const RunResult& result, const Json& origin) {
    return TraceOfRun(result).text(origin);
}

}  // namespace overlap
