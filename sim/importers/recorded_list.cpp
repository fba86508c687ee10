#include "sim/importers/recorded_list.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/told_apart.hpp"

namespace overlap {
namespace {

using Ran = const RecordedSpan*;
constexpr std::size_t no_span = std::numeric_limits<std::size_t>::max();

/// Our name of a number format of PyTorch: "BFloat16" of collectives, "c10::BFloat16" of operators; "" if unknown.
std::string dtype_called(std::string name) {
    static const std::map<std::string, std::string> names{
        {"bfloat16", "bf16"},   {"half", "fp16"},           {"float16", "fp16"},
        {"float", "fp32"},      {"float32", "fp32"},        {"float8_e4m3fn", "fp8"},
        {"float8_e5m2", "fp8"}, {"float8_e4m3fnuz", "fp8"}, {"float8_e5m2fnuz", "fp8"},
        {"char", "int8"},       {"signed char", "int8"},    {"unsigned char", "int8"},
        {"byte", "int8"}};
    if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(0, colon + 1);
    const std::string* found = value_at(names, lower_case(name));
    return found == nullptr ? "" : *found;
}

DType type_called(const std::string& name) {
    return static_cast<DType>(place_of(dtype_names, name));
}

std::string plain_name(const RecordedOperator& op) {
    return op.name.substr(op.name.rfind(':') + 1);
}

std::int64_t lasted_ns(Ran span) {
    return span->end_ns - span->start_ns;
}
double to_us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}

/// "stream 13" as a name in a list: "stream_13".
std::string stream_name_of(std::string track) {
    for (char& c : track)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return track;
}

/// The spans of the GPU that takes longest, in the order in which they were enqueued.
std::vector<Ran> enqueued(const std::vector<RecordedSpan>& iteration) {
    std::vector<Ran> spans = spans_of_longest_gpu(iteration);
    std::ranges::stable_sort(spans, {}, &RecordedSpan::start_ns);
    if (std::ranges::all_of(spans, [](Ran span) { return span->launch.ns.has_value(); }))
        std::ranges::stable_sort(spans, {}, [](Ran span) { return *span->launch.ns; });
    return spans;
}

/// Evenly spaced ranks as a "group"; others as "ranks"; empty where all ranks are meant, null if they are not known.
Json members_json(const RecordedCollective& collective, std::int64_t ranks) {
    if (collective.ranks == ranks || (collective.ranks <= 0 && ranks > 0)) return Json::object();
    const std::vector<std::int64_t>& members = collective.members;
    if (static_cast<std::int64_t>(members.size()) != collective.ranks || members.size() < 2) return {};
    const std::int64_t stride = members[1] - members[0];
    for (std::size_t i = 1; i < members.size(); ++i)
        if (members[i] - members[i - 1] != stride) return {};
    if (stride < 1 || ranks % (stride * collective.ranks) != 0) return {};
    return {{"group", {{"size", collective.ranks}, {"stride", stride}}}};
}

class ListMaker {
public:
    ListMaker(std::vector<Ran> spans, std::int64_t ranks, Prices prices, const HasPrice& has_price)
        : spans_(std::move(spans)), ranks_(ranks), prices_(prices), has_price_(has_price) {
        for (const Ran span : spans_) begin_ = std::min(begin_, span->start_ns);
        name_streams();
    }

    RecordedList list() && {
        host_ = begin_;
        for (std::size_t i = 0; i < spans_.size(); ++i) add(i);
        result_.streams = last_.size();
        result_.spans = spans_;
        return std::move(result_);
    }

private:
    /// The stream with most work is the stream of computation. Those with least are one where there are too many.
    void name_streams() {
        std::map<std::string, std::int64_t> work;
        for (const Ran span : spans_)
            work[span->track] +=
                span->kind == TaskKind::collective || span->kind == TaskKind::copy ? 0 : lasted_ns(span);
        std::vector<std::pair<std::int64_t, std::string>> by_work;
        for (const auto& [track, ns] : work) by_work.emplace_back(-ns, track);
        std::ranges::sort(by_work);
        compute_ = by_work.front().second;
        constexpr auto most = static_cast<std::size_t>(most_side_streams);  // beside that of computation
        for (std::size_t i = 0; i < by_work.size(); ++i)
            tracks_[by_work[i].second] =
                by_work.size() > most + 1 && i >= most ? "other streams" : by_work[i].second;
        if (by_work.size() > most + 1)
            result_.notes.push_back("the GPU has " + std::to_string(by_work.size()) +
                                    " streams, of which the last " + std::to_string(by_work.size() - most) +
                                    " by work are one in the list");
    }
    const std::string& track_of(Ran span) const { return tracks_.at(span->track); }

    void add(std::size_t i) {
        const Ran span = spans_[i];
        const std::string& track = track_of(span);
        const auto before = last_.find(track);
        previous_.push_back(before == last_.end() ? no_span : before->second);
        known_.push_back(previous_[i] == no_span ? std::map<std::string, std::size_t>{}
                                                 : known_[previous_[i]]);
        Json op = operator_of(span);
        const bool is_priced = has_price(op, span);
        std::int64_t ready = previous_[i] == no_span ? begin_ : ends_[previous_[i]];
        Json needs = Json::array();
        if (previous_[i] != no_span) needs.push_back(name(previous_[i]));
        for (const std::size_t ended : ended_before(i)) {
            needs.push_back(name(ended));
            ready = std::max(ready, ends_[ended]);
        }
        const Json host_needs = call_host(span, op);
        ready = std::max(ready, host_);
        // Where two kernels overlap on a stream (programmatic dependent launch), the second has the rest of the time.
        const std::int64_t begins = std::max(span->start_ns, ready);
        ends_.push_back(std::max(span->end_ns, begins + 1));
        if (prices_ == Prices::recorded || !is_priced) {
            op["recorded_us"] = to_us(ends_[i] - begins);
            op["gap_us"] = to_us(begins - ready);
        }
        if (track != compute_) op["stream"] = stream_name_of(track);
        op["needs"] = std::move(needs);
        if (!host_needs.empty()) op["host_needs"] = host_needs;
        count(span, is_priced, to_us(ends_[i] - begins));
        last_[track] = i;
        names_.push_back(op.at("name").get<std::string>());
        result_.operators.push_back(std::move(op));
    }

    const std::string& name(std::size_t i) const { return names_[i]; }
    bool has_price(const Json& op, Ran span) const {
        if (op.at("type") != "gemm" || !has_price_) return op.at("type") != "memory_bound";
        return has_price_(*gemm_of(*span));
    }

    static bool computes(Ran span) {
        return span->kind == TaskKind::gemm ||
               (span->kind == TaskKind::memory_bound && !span->waits && !span->with_host);
    }
    /// Whether `before` had ended when `span` began. Of kernels that compute, the blocks of the later one fill the
    /// compute units that the last blocks of the earlier one leave: it counts as waiting for the earlier one, whose end
    /// it overlaps.
    static bool is_over(Ran before, Ran span) {
        if (before->end_ns <= span->start_ns) return true;
        const std::int64_t beside = before->end_ns - span->start_ns;
        return computes(before) && computes(span) && before->start_ns < span->start_ns &&
               2 * beside < std::min(lasted_ns(before), lasted_ns(span));
    }

    /// Each other stream's last operator that ended before this one began, unless another one that it waits for
    /// waited for it.
    std::vector<std::size_t> ended_before(std::size_t i) {
        std::vector<std::size_t> ended;
        for (const auto& [track, at] : last_) {
            if (track == track_of(spans_[i])) continue;
            std::size_t last = at;
            while (last != no_span && !is_over(spans_[last], spans_[i])) last = previous_[last];
            if (last == no_span) continue;
            auto& known = known_[i];
            const auto waited = known.find(track);
            if (waited != known.end() && waited->second >= last) continue;
            known[track] = last;
            ended.push_back(last);
        }
        return ended;
    }

    /// What the host did until it enqueued the span: a time, after the ends that it waited for. Writes the time.
    Json call_host(Ran span, Json& op) {
        Json needs = Json::array();
        if (!span->launch.ns) return needs;
        // Clocks of host and GPU differ by microseconds: no kernel begins before its launch.
        const std::int64_t called = std::max(host_, std::min(*span->launch.ns, span->start_ns));
        std::int64_t from = host_;
        for (const auto& [start, end] : span->launch.host_waits)
            for (const auto& [track, at] : last_) {
                std::size_t last = at;
                while (last != no_span && spans_[last]->end_ns > std::min(end, called))
                    last = previous_[last];
                if (last == no_span || spans_[last]->end_ns <= std::max(start, host_)) continue;
                if (!contains(needs, Json(name(last)))) needs.push_back(name(last));
                from = std::max(from, ends_[last]);
            }
        if (called > from) op["host_us"] = to_us(called - from);
        host_ = std::max(called, from);
        return needs;
    }

    /// Name, type and the keys of its type.
    Json operator_of(Ran span) {
        const bool short_name = span->launch.by && span->known;
        const std::string named = short_name ? plain_name(*span->launch.by) : span->name;
        Json op{{"name", named + "_" + std::to_string(counts_[named]++)}};
        if (span->kind == TaskKind::gemm)
            if (const auto shape = gemm_of(*span)) {
                op["type"] = "gemm";
                op.update(gemm_json(*shape));
                if (shape->batch > 1) op["batch"] = shape->batch;
                return op;
            }
        if (const Json collective = collective_json(span); !collective.empty()) {
            op["type"] = "collective";
            op.update(collective);
            return op;
        }
        op["type"] = "memory_bound";
        op["read_bytes"] = span->bytes;
        op["write_bytes"] = span->bytes;
        return op;
    }

    Json collective_json(Ran span) {
        if (span->kind != TaskKind::collective || !span->collective || ranks_ < 2) return {};
        const std::string kind = collective_of(*span), type = dtype_of(*span->collective);
        const std::int64_t elements =
            kind == "all_gather" ? span->collective->out_elements : span->collective->in_elements;
        if (kind.empty() || type.empty() || elements <= 0 || span->collective->ranks == 1) return {};
        const Json members = members_json(*span->collective, ranks_);
        if (members.is_null()) return {};
        result_.has_collectives = true;
        Json json{{"collective", kind},
                  {"bytes", static_cast<double>(elements) * element_size(type_called(type)).si()},
                  {"dtype", type}};
        json.update(members);
        return json;
    }

    void count(Ran span, bool is_priced, double us) {
        ListShares& shares = result_.shares;
        shares.without_price += !is_priced;
        (!span->known                                     ? shares.unknown_us
         : is_priced && prices_ == Prices::of_the_machine ? shares.priced_us
                                                          : shares.recorded_us) += us;
    }

    std::vector<Ran> spans_;
    std::int64_t ranks_;
    Prices prices_;
    const HasPrice& has_price_;
    std::int64_t begin_ = std::numeric_limits<std::int64_t>::max(), host_ = 0;  ///< the host's last call
    std::string compute_;                                                       ///< the stream of computation
    std::map<std::string, std::string> tracks_;  ///< of the list, by recorded stream
    std::map<std::string, std::size_t> last_;    ///< by stream: its last operator
    std::vector<std::size_t> previous_;          ///< on its stream
    std::vector<std::int64_t> ends_;             ///< in a run of the list
    std::vector<std::map<std::string, std::size_t>>
        known_;  ///< by operator: the last of each stream that it waits for
    std::map<std::string, std::size_t> counts_;
    std::vector<std::string> names_;
    RecordedList result_{.operators = Json::array()};
};

}  // namespace

std::vector<const RecordedSpan*> spans_of_longest_gpu(const std::vector<RecordedSpan>& iteration) {
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> times;  // start and end, by GPU
    for (const RecordedSpan& span : iteration) {
        auto& [start, end] = times.try_emplace(span.gpu, span.start_ns, span.end_ns).first->second;
        start = std::min(start, span.start_ns);
        end = std::max(end, span.end_ns);
    }
    const auto longest = std::ranges::max_element(
        times, {}, [](const auto& gpu) { return gpu.second.second - gpu.second.first; });
    std::vector<const RecordedSpan*> spans;
    for (const RecordedSpan& span : iteration)
        if (span.gpu == longest->first) spans.push_back(&span);
    return spans;
}

std::optional<GemmShape> gemm_of(const RecordedSpan& span) {
    const RecordedOperator* op = span.launch.by.get();
    if (op == nullptr) return std::nullopt;
    const std::string name = plain_name(*op);
    const std::size_t first = name == "addmm" || name == "baddbmm" ? 1 : 0;
    if (op->dims.size() < first + 2) return std::nullopt;
    const auto &a = op->dims[first], &b = op->dims[first + 1];
    if (a.size() < 2 || b.size() < 2) return std::nullopt;
    const bool linear = name == "linear", batched = name == "bmm" || name == "baddbmm";
    GemmShape shape;
    shape.batch = batched ? a[0] : 1;
    shape.k = a.back();
    shape.m = 1;
    for (auto size = batched ? a.begin() + 1 : a.begin(); size != a.end() - 1; ++size)
        if (__builtin_mul_overflow(shape.m, *size, &shape.m)) return std::nullopt;
    shape.n = linear ? b[b.size() - 2] : b.back();
    const std::string type = op->types.size() > first ? dtype_called(op->types[first]) : "";
    constexpr std::int64_t most = 1'000'000'000;
    const auto fits = [](std::int64_t size) { return size >= 1 && size <= most; };
    if (!fits(shape.m) || !fits(shape.n) || !fits(shape.k) || !fits(shape.batch)) return std::nullopt;
    if (shape.k != (linear ? b.back() : b[b.size() - 2])) return std::nullopt;
    if (!type.empty()) shape.dtype = type_called(type);
    // torch._grouped_mm: rows of A by rows of B, a matrix for each expert
    constexpr std::int64_t most_groups = 65536;
    if (!batched && a.size() == 2 && b.size() == 3 && b[0] > 1 && b[0] <= most_groups)
        shape.groups = static_cast<std::int32_t>(b[0]);
    return shape;
}

Json gemm_json(const GemmShape& shape) {
    Json json{{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"dtype", name_of(shape.dtype)}};
    if (shape.groups > 1) json["groups"] = shape.groups;
    return json;
}

std::string dtype_of(const RecordedCollective& collective) {
    return dtype_called(collective.dtype);
}

RecordedList list_of(const std::vector<RecordedSpan>& iteration, std::int64_t ranks, Prices prices,
                     const HasPrice& has_price) {
    return ListMaker(enqueued(iteration), ranks, prices, has_price).list();
}

}  // namespace overlap
