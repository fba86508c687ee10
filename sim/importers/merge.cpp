#include <algorithm>
#include <compare>
#include <set>

#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {
namespace {

using Traces = std::span<const RecordedTrace>;

/// What tells a GPU apart from the others of a recording.
struct GpuKey {
    std::string place = {};  ///< machine, folder or file; the GPU's unique name
    std::int64_t process = 0, number = 0;
    auto operator<=>(const GpuKey&) const = default;
};

std::string folder_of(const RecordedTrace& trace) {
    return std::filesystem::path(trace.file).parent_path().string();
}

/// A trace's machine: its name, else the file's folder, because rocprofv3 writes a folder a machine.
std::string machine_of(const RecordedTrace& trace) {
    return trace.machine.empty() ? folder_of(trace) : trace.machine;
}

/// Whether files whose GPUs are agents are of several machines: they say so, or kernels of one agent are in two
/// folders.
bool of_several_machines(Traces traces) {
    std::map<std::int64_t, std::set<std::string>> machines;
    std::set<std::string> named;
    for (const RecordedTrace& trace : traces) {
        if (!trace.machine.empty()) named.insert(trace.machine);
        for (const RecordedSpan& span : trace.spans)
            if (span.kind != TaskKind::copy && !span.with_host) machines[span.gpu].insert(machine_of(trace));
    }
    return named.size() > 1 ||
           std::ranges::any_of(machines, [](const auto& agent) { return agent.second.size() > 1; });
}

class Merger {
public:
    explicit Merger(Traces traces) : traces_(traces), several_machines_(of_several_machines(traces)) {
        for (std::size_t i = 0; i < traces.size(); ++i) require_one_job(i);
    }

    std::vector<RecordedSpan> spans() {
        const std::map<GpuKey, std::int64_t> gpus = numbers();
        std::map<std::string, int> clocks;
        std::vector<RecordedSpan> result;
        std::map<std::int64_t, std::size_t> file_of_rank;
        for (std::size_t i = 0; i < traces_.size(); ++i) {
            const RecordedTrace& trace = traces_[i];
            const int clock = clocks.try_emplace(clock_of(i), static_cast<int>(clocks.size())).first->second;
            for (RecordedSpan span : trace.spans) {
                const GpuKey key = key_of(i, span);
                if (trace.gpu_numbers == GpuNumbers::ranks &&
                    file_of_rank.emplace(span.gpu, i).first->second != i)
                    throw UserError(
                        "GPU " + std::to_string(span.gpu) +
                        " is in two of the files, expected the files of one recording, a rank each");
                if (trace.gpu_numbers != GpuNumbers::ranks) span.gpu = gpus.at(key);
                span.clock = clock;
                result.push_back(std::move(span));
            }
            if (trace.clock_is_unknown || (trace.gpu_numbers == GpuNumbers::agents && several_machines_))
                unknown_clocks_.emplace(clock, trace.file);
        }
        return result;
    }
    /// Clocks that begin with their files, or with their machines, and a file of each.
    const std::map<int, std::string>& unknown_clocks() const { return unknown_clocks_; }

    /// A line if GPUs were told apart by more than their numbers.
    std::string note() const {
        std::set<std::int64_t> seen;
        std::set<GpuKey> keys;
        for (std::size_t i = 0; i < traces_.size(); ++i)
            for (const RecordedSpan& span : traces_[i].spans) {
                seen.insert(span.gpu);
                keys.insert(key_of(i, span));
            }
        if (keys.size() <= seen.size()) return "";
        return "identity    " + std::to_string(keys.size()) + " GPUs that have " +
               std::to_string(seen.size()) + (seen.size() == 1 ? " number" : " numbers") +
               " in the files, told apart by " +
               (traces_.front().gpu_numbers == GpuNumbers::agents ? "machine" : "process");
    }

private:
    /// Throws UserError if file `i` is of another kind of job than the first.
    void require_one_job(std::size_t i) const {
        const RecordedTrace &first = traces_[0], &one = traces_[i];
        const auto fail = [&](const std::string& what) {
            throw UserError(one.file + ": " + what + " in " + first.file +
                            ", expected the files of one recording");
        };
        if (one.spans.empty() || first.spans.empty()) return;
        if ((one.gpu_numbers == GpuNumbers::ranks) != (first.gpu_numbers == GpuNumbers::ranks))
            fail(one.gpu_numbers == GpuNumbers::ranks ? "names its rank (distributedInfo), which is not"
                                                      : "names no rank (distributedInfo), which is");
        if (one.ranks != first.ranks)
            fail("is of a job of " + std::to_string(one.ranks.value_or(1)) + " ranks, which are " +
                 std::to_string(first.ranks.value_or(1)));
    }

    GpuKey key_of(std::size_t i, const RecordedSpan& span) const {
        const RecordedTrace& trace = traces_[i];
        if (trace.gpu_numbers == GpuNumbers::ranks) return {.number = span.gpu};
        if (trace.gpu_numbers == GpuNumbers::agents)
            return {several_machines_ ? machine_of(trace) : "", 0, span.gpu};
        if (const std::string* name = value_at(trace.gpu_names, std::pair(span.launch.process, span.gpu)))
            return {"named " + *name};
        return {traces_.size() > 1 ? "file " + std::to_string(i) : "", span.launch.process, span.gpu};
    }
    std::string clock_of(std::size_t i) const {
        const RecordedTrace& trace = traces_[i];
        if (trace.gpu_numbers == GpuNumbers::agents) return several_machines_ ? machine_of(trace) : "";
        return trace.own_clock ? "file " + std::to_string(i) : "";
    }

    std::map<GpuKey, std::int64_t> numbers() const {
        std::set<GpuKey> keys;
        for (std::size_t i = 0; i < traces_.size(); ++i)
            for (const RecordedSpan& span : traces_[i].spans) keys.insert(key_of(i, span));
        std::map<GpuKey, std::int64_t> numbers;
        for (const GpuKey& key : keys) numbers.emplace(key, static_cast<std::int64_t>(numbers.size()));
        return numbers;
    }

    Traces traces_;
    bool several_machines_;
    std::map<int, std::string> unknown_clocks_;
};

/// Collectives and barriers of the first GPU of a clock, by start.
std::vector<const RecordedSpan*> waits_of(const std::vector<RecordedSpan>& spans, int clock) {
    std::vector<const RecordedSpan*> waits;
    for (const RecordedSpan& span : spans) {
        if (span.clock != clock || !span.waits) continue;
        if (!waits.empty() && span.gpu > waits.front()->gpu) continue;
        if (!waits.empty() && span.gpu < waits.front()->gpu) waits.clear();
        waits.push_back(&span);
    }
    std::ranges::stable_sort(waits, {}, &RecordedSpan::start_ns);
    return waits;
}

/// How much later the second clock shows the same moment than the first: ranks end a collective together.
std::int64_t difference(const std::vector<const RecordedSpan*>& first,
                        const std::vector<const RecordedSpan*>& second) {
    std::vector<std::int64_t> apart;
    for (std::size_t i = 0; i < first.size(); ++i) apart.push_back(second[i]->end_ns - first[i]->end_ns);
    std::ranges::sort(apart);
    return apart[apart.size() / 2];
}

void align(std::vector<RecordedSpan>& spans, const std::map<int, std::string>& clocks,
           std::vector<std::string>& notes) {
    if (clocks.size() < 2) return;
    const auto& [reference, first_file] = *clocks.begin();
    const auto first = waits_of(spans, reference);
    for (auto clock = std::next(clocks.begin()); clock != clocks.end(); ++clock) {
        const auto others = waits_of(spans, clock->first);
        const auto same = [](const RecordedSpan* a, const RecordedSpan* b) { return a->name == b->name; };
        if (first.empty() || !std::ranges::equal(first, others, same))
            throw UserError(clock->second + ": its clock can't be compared with that of " + first_file +
                            " (no time of day in the files), and " +
                            (first.empty() && others.empty()
                                 ? std::string("no collective tells how far apart they are")
                                 : "the collectives, " + std::to_string(others.size()) + " and " +
                                       std::to_string(first.size()) + ", are not the same") +
                            "; expected files of one recording");
        const std::int64_t later = difference(first, others);
        for (RecordedSpan& span : spans) {
            if (span.clock != clock->first) continue;
            for (std::int64_t* time : {&span.start_ns, &span.end_ns}) *time -= later;
            if (span.launch.ns) *span.launch.ns -= later;
            for (auto& [start, end] : span.launch.host_waits) {
                start -= later;
                end -= later;
            }
        }
        notes.push_back("aligned     " + clock->second + " by the ends of " + std::to_string(first.size()) +
                        " collectives: its clock is " + std::to_string(later / 1000) + " us later");
    }
}

}  // namespace

std::vector<RecordedSpan> merged(std::span<const RecordedTrace> traces, std::vector<std::string>* notes) {
    std::vector<std::string> own_notes;
    if (notes == nullptr) notes = &own_notes;
    if (traces.empty()) return {};
    Merger merger(traces);
    std::vector<RecordedSpan> spans = merger.spans();
    if (const std::string note = merger.note(); !note.empty()) notes->push_back(note);
    align(spans, merger.unknown_clocks(), *notes);
    return spans;
}

std::int64_t ranks_of(std::span<const RecordedTrace> traces, std::span<const RecordedSpan> spans) {
    std::int64_t ranks = 1;
    std::set<std::int64_t> gpus;
    for (const RecordedSpan& span : spans) {
        gpus.insert(span.gpu);
        // A job has at least the ranks of its largest group.
        if (span.collective) ranks = std::max(ranks, span.collective->ranks);
    }
    for (const RecordedTrace& trace : traces) ranks = std::max(ranks, trace.ranks.value_or(1));
    return std::max<std::int64_t>(ranks, static_cast<std::int64_t>(gpus.size()));
}

}  // namespace overlap
