#include "sim/importers/time_shares.hpp"

#include <algorithm>

#include "sim/importers/recorded_list.hpp"
#include "sim/importers/told_apart.hpp"

namespace overlap {
namespace {

const std::string gemm = "GEMM", attention = "attention", others = "other kernels",
                  host_copies = "copies with the host", host = "host (nothing was enqueued)",
                  idle = "idle (launches, waits)";

/// What runs while nothing computes.
std::string communication_of(const RecordedSpan& span) {
    if (span.with_host) return host_copies;
    if (span.kind == TaskKind::copy) return "exposed copies between GPUs";
    if (span.kind != TaskKind::collective) return "exposed barriers";
    const std::string kind = collective_of(span);
    return "exposed " + (kind.empty() ? "collectives of unknown kind" : kind);
}

bool communicates(const RecordedSpan& span) {
    return span.with_host || span.waits || span.kind == TaskKind::copy || span.kind == TaskKind::collective;
}

std::string computation_of(const RecordedSpan& span) {
    return span.kind == TaskKind::gemm ? gemm : span.attention ? attention : others;
}

/// Begins and ends of spans, by time.
struct Change {
    std::int64_t at = 0;
    const RecordedSpan* span = nullptr;
    bool begins = false;
};

class Sweep {
public:
    explicit Sweep(const std::vector<const RecordedSpan*>& spans) {
        for (const RecordedSpan* span : spans) {
            changes_.push_back({span->start_ns, span, true});
            changes_.push_back({span->end_ns, span, false});
        }
        std::ranges::stable_sort(changes_, {}, &Change::at);
    }

    std::map<std::string, std::int64_t> times() && {
        std::int64_t at = changes_.front().at;
        for (const Change& change : changes_) {
            if (change.at > at) count(at, change);
            at = change.at;
            running_[communicates(*change.span) ? communication_of(*change.span)
                                                : computation_of(*change.span)] += change.begins ? 1 : -1;
        }
        return std::move(times_);
    }

private:
    void count(std::int64_t from, const Change& next) {
        const std::int64_t lasted = next.at - from;
        const auto runs = [&](const std::string& what) {
            const auto found = running_.find(what);
            return found != running_.end() && found->second > 0;
        };
        for (const std::string* what : {&gemm, &attention, &others})
            if (runs(*what)) {
                times_[*what] += lasted;
                return;
            }
        for (const auto& [what, count] : running_)
            if (count > 0) {
                times_[what] += lasted;
                return;
            }
        const std::int64_t launched = next.span->launch.ns.value_or(from);
        const std::int64_t late = std::clamp<std::int64_t>(launched - from, 0, lasted);
        times_[host] += late;
        times_[idle] += lasted - late;
    }

    std::vector<Change> changes_;
    std::map<std::string, int> running_;
    std::map<std::string, std::int64_t> times_;
};

}  // namespace

std::vector<TimeShare> time_shares(const std::vector<RecordedSpan>& iteration) {
    std::map<std::string, std::int64_t> times = Sweep(spans_of_longest_gpu(iteration)).times();
    std::vector<TimeShare> shares;
    const auto take = [&](const std::string& what) {
        const auto found = times.find(what);
        if (found == times.end()) return;
        if (found->second > 0) shares.push_back({what, static_cast<double>(found->second) * 1e-3});
        times.erase(found);
    };
    for (const std::string* what : {&gemm, &attention, &others}) take(*what);
    const std::int64_t last_host = times[host], last_idle = times[idle];
    times.erase(host);
    times.erase(idle);
    while (!times.empty())
        take(std::ranges::max_element(times, {}, [](const auto& one) { return one.second; })->first);
    for (const auto& [what, ns] : {std::pair(host, last_host), {idle, last_idle}})
        if (ns > 0) shares.push_back({what, static_cast<double>(ns) * 1e-3});
    return shares;
}

}  // namespace overlap
