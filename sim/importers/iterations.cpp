#include "sim/importers/iterations.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

using Spans = std::vector<RecordedSpan>;
using StreamKey = std::pair<std::int64_t, std::string>;  ///< GPU and stream
/// Spans of each stream in order of their starts.
using Streams = std::map<StreamKey, std::vector<const RecordedSpan*>>;

Streams streams_of(const Spans& spans) {
    Streams streams;
    for (const RecordedSpan& span : spans) streams[{span.gpu, span.track}].push_back(&span);
    for (auto& [key, stream] : streams) std::ranges::stable_sort(stream, {}, &RecordedSpan::start_ns);
    return streams;
}

/// How many times a stream repeats the same kernels without remainder.
std::size_t repetitions(const std::vector<const RecordedSpan*>& stream) {
    // Knuth, Morris, Pratt: border[i] is the length of the longest proper prefix of the first i + 1 names
    // that is also their suffix. The shortest period is the length minus the last border.
    std::vector<std::size_t> border(stream.size(), 0);
    for (std::size_t i = 1; i < stream.size(); ++i) {
        std::size_t length = border[i - 1];
        while (length > 0 && stream[i]->name != stream[length]->name) length = border[length - 1];
        border[i] = stream[i]->name == stream[length]->name ? length + 1 : 0;
    }
    const std::size_t period = stream.size() - border.back();
    return stream.size() % period == 0 ? stream.size() / period : 1;
}

/// `count` times `length` spans, starting at `first`.
struct Window {
    std::size_t first = 0, length = 0;
};

/// The longest, and then latest, part of a stream that repeats `count` times; at most a given
/// number of spans is left out.
std::optional<Window> window_of(const std::vector<const RecordedSpan*>& stream, std::size_t count) {
    constexpr std::size_t most_left_out = 64;
    for (std::size_t length = stream.size() / count; length > 0; --length) {
        if (stream.size() - count * length > most_left_out) break;
        std::size_t same = 0;  // consecutive spans before i + length that equal those one length before
        std::optional<Window> found;
        for (std::size_t i = 0; i + length < stream.size(); ++i) {
            same = stream[i]->name == stream[i + length]->name ? same + 1 : 0;
            if (same >= (count - 1) * length) found = Window{i + 1 - (count - 1) * length, length};
        }
        if (found) return found;
    }
    return std::nullopt;
}

/// Cuts spans into `count` parts. Spans of streams that do not repeat go to
/// the part in whose time they start.
std::optional<std::vector<Spans>> fold(const Spans& spans, std::size_t count, std::size_t& outside) {
    std::vector<Spans> parts(count);
    std::map<std::int64_t, std::vector<std::int64_t>> starts;  // by GPU, of each part
    std::vector<const RecordedSpan*> others;
    for (const auto& [key, stream] : streams_of(spans)) {
        const std::optional<Window> window = window_of(stream, count);
        for (std::size_t i = 0; i < stream.size(); ++i) {
            if (!window || i < window->first || i >= window->first + count * window->length) {
                others.push_back(stream[i]);
                continue;
            }
            const std::size_t part = (i - window->first) / window->length;
            auto& of_gpu = starts.try_emplace(key.first, count, INT64_MAX).first->second;
            of_gpu[part] = std::min(of_gpu[part], stream[i]->start_ns);
            parts[part].push_back(*stream[i]);
        }
    }
    for (const RecordedSpan* span : others) {
        const auto of_gpu = starts.find(span->gpu);
        if (of_gpu == starts.end()) return std::nullopt;
        const auto after = std::ranges::upper_bound(of_gpu->second, span->start_ns);
        if (after == of_gpu->second.begin())
            ++outside;
        else
            parts[static_cast<std::size_t>(after - of_gpu->second.begin()) - 1].push_back(*span);
    }
    return parts;
}

std::map<std::int64_t, std::size_t> gemms_by_gpu(const Spans& spans) {
    std::map<std::int64_t, std::size_t> counts;
    for (const RecordedSpan& span : spans) counts[span.gpu] += span.kind == TaskKind::gemm;
    return counts;
}

/// Number of runs, of `gemms` GEMMs a GPU, in the spans; 1, with a doubt, if the spans have fewer GEMMs.
std::size_t runs_in(const Spans& spans, std::size_t gemms, std::string& doubt) {
    std::set<std::size_t> counts;
    for (const auto& [gpu, count] : gemms_by_gpu(spans)) counts.insert(count);
    const std::size_t most = *counts.rbegin();
    if (most < gemms)
        doubt = "no GPU ran more than " + std::to_string(most) + " GEMMs, and one run of the scenario has " +
                std::to_string(gemms) + " a GPU";
    if (most <= gemms) return 1;
    if (counts.size() == 1 && most % gemms == 0) return most / gemms;
    const auto seen = mapped(counts, [](std::size_t count) { return std::to_string(count); });
    throw UserError(
        "GPUs ran " + joined(seen, " or ") + " GEMMs, and one run of the scenario has " +
        std::to_string(gemms) +
        " a GPU: record whole runs, mark them by torch.profiler's step(), or take all as one run by "
        "--iteration all");
}

/// The spans of each profiler step, by step number.
std::vector<Iteration> steps_of(const Spans& spans, std::size_t& outside) {
    std::map<std::int64_t, Spans> steps;
    for (const RecordedSpan& span : spans) {
        if (span.launch.step)
            steps[*span.launch.step].push_back(span);
        else
            ++outside;
    }
    std::vector<Iteration> result;
    for (auto& [number, of_step] : steps)
        result.push_back({"ProfilerStep#" + std::to_string(number), std::move(of_step)});
    return result;
}

/// The first start of the spans with each value of a member.
template <class Value>
std::map<Value, std::int64_t> first_starts(const Spans& spans, Value RecordedSpan::*member) {
    std::map<Value, std::int64_t> first;
    for (const RecordedSpan& span : spans) {
        const auto [found, is_new] = first.emplace(span.*member, span.start_ns);
        found->second = std::min(found->second, span.start_ns);
    }
    return first;
}

/// The number of repetitions common to all streams of all GPUs.
std::size_t common_repetitions(const Spans& spans) {
    std::size_t count = 0;
    for (const auto& [key, stream] : streams_of(spans)) count = std::gcd(count, repetitions(stream));
    return count;
}

}  // namespace

Timeline Iteration::timeline() const {
    const std::map<int, std::int64_t> first = first_starts(spans, &RecordedSpan::clock);
    Spans moved = spans;
    for (RecordedSpan& span : moved) {
        span.start_ns -= first.at(span.clock);
        span.end_ns -= first.at(span.clock);
    }
    return timeline_of(moved);
}

Seconds Iteration::starts_apart() const {
    const std::map<std::int64_t, std::int64_t> first = first_starts(spans, &RecordedSpan::gpu);
    const auto [low, high] =
        std::ranges::minmax_element(first, {}, [](const auto& start) { return start.second; });
    return Seconds(static_cast<double>(high->second - low->second) * 1e-9);
}

Iterations find_iterations(Spans spans, std::optional<std::size_t> gemms) {
    Iterations result;
    std::vector<Iteration> parts;
    if (std::ranges::any_of(spans, [](const RecordedSpan& span) { return span.launch.step.has_value(); })) {
        parts = steps_of(spans, result.outside);
        result.found_by = "steps of torch.profiler";
    } else {
        parts.push_back({"0", std::move(spans)});
    }
    const bool by_steps = !result.found_by.empty();
    for (Iteration& part : parts) {
        std::size_t runs = 1;
        if (gemms)
            runs = runs_in(part.spans, *gemms, result.doubt);
        else if (!by_steps)
            runs = common_repetitions(part.spans);
        if (runs == 1) {
            result.all.push_back(std::move(part));
            continue;
        }
        std::optional<std::vector<Spans>> folded = fold(part.spans, runs, result.outside);
        if (!folded)
            throw UserError(
                "a GPU ran the GEMMs of " + std::to_string(runs) +
                " runs, but not the same kernels in each: mark runs by torch.profiler's step(), or take all "
                "as one run by --iteration all");
        for (std::size_t run = 0; run < runs; ++run) {
            const std::string number = std::to_string(run);
            result.all.push_back({by_steps ? part.name + " " + number : number, std::move((*folded)[run])});
        }
        result.ambiguous = !gemms;
        if (!by_steps) result.found_by = gemms ? "the GEMMs of the scenario" : "kernels that repeat";
    }
    return result;
}

std::vector<std::size_t> steady_iterations(const std::vector<Iteration>& iterations) {
    constexpr double longest = 1.5;  // times the median
    const auto lasted = mapped(iterations, [](const Iteration& one) { return one.timeline().end(); });
    const auto gpus = mapped(iterations, [](const Iteration& one) { return gemms_by_gpu(one.spans).size(); });
    std::vector<Seconds> sorted = lasted;
    std::ranges::sort(sorted);
    const Seconds middle = sorted[(sorted.size() - 1) / 2];
    const std::size_t most = *std::ranges::max_element(gpus);
    std::vector<std::size_t> steady;
    for (std::size_t i = 0; i < iterations.size(); ++i)
        if (gpus[i] == most && lasted[i] <= longest * middle) steady.push_back(i);
    return steady;
}

Seconds clip_start_skew(Iteration& iteration) {
    std::map<std::int64_t, RecordedSpan*> first;  // by GPU: its first kernel that waits
    std::set<std::int64_t> gpus;
    for (RecordedSpan& span : iteration.spans) {
        gpus.insert(span.gpu);
        if (!span.waits) continue;
        RecordedSpan*& earliest = first[span.gpu];
        if (earliest == nullptr || span.start_ns < earliest->start_ns) earliest = &span;
    }
    if (first.size() < std::max<std::size_t>(2, gpus.size())) return Seconds();
    std::int64_t shortest = INT64_MAX, longest_wait = 0;
    for (const auto& [gpu, span] : first) {
        if (span->name != first.begin()->second->name) return Seconds();
        shortest = std::min(shortest, span->end_ns - span->start_ns);
    }
    for (const auto& [gpu, span] : first) {
        const std::int64_t wait = span->end_ns - span->start_ns - shortest, arrived = span->start_ns;
        longest_wait = std::max(longest_wait, wait);
        for (RecordedSpan& other : iteration.spans) {
            if (other.gpu != gpu || other.start_ns > arrived) continue;
            other.start_ns += wait;
            // What ran beside the wait keeps its end.
            if (&other != span)
                other.end_ns = std::max(other.start_ns, other.end_ns + (other.end_ns <= arrived ? wait : 0));
        }
    }
    return Seconds(static_cast<double>(longest_wait) * 1e-9);
}

}  // namespace overlap
