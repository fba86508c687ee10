#include "sim/importers/told_apart.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iomanip>
#include <set>
#include <sstream>

#include "sim/core/operators.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// "allgather_base", "_allgather_base_" and "ncclAllGather" are an all_gather; "" for what we have no collective for.
std::string collective_called(const std::string& name) {
    static constexpr std::array parts{"allgather", "reducescatter", "allreduce",
                                      "alltoall"};  // by CollectiveKind
    std::string plain;
    for (const char c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (std::size_t kind = 0; kind < parts.size(); ++kind)
        if (plain.find(parts[kind]) != std::string::npos) return collective_names[kind];
    return "";
}

/// Tells collectives by the elements that a rank puts in and gets out.
std::string collective_by_size(const RecordedCollective& collective) {
    const std::int64_t in = collective.in_elements, out = collective.out_elements, ranks = collective.ranks;
    if (in <= 0 || out <= 0 || ranks < 2) return "";
    if (in <= out && out % in == 0 && out / in == ranks) return "all_gather";
    if (out <= in && in % out == 0 && in / out == ranks) return "reduce_scatter";
    return "";
}

void give_name(RecordedSpan& span, const std::string& name) {
    RecordedCollective collective = span.collective ? *span.collective : RecordedCollective{};
    collective.name = name;
    span.collective = std::make_shared<const RecordedCollective>(std::move(collective));
}

/// Whether the name is one of messages and collectives that are none of ours.
bool names_another(std::string name) {
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    static constexpr std::array others{"broadcast", "bcast", "reduce", "gather",
                                       "scatter",   "send",  "recv",   "barrier"};
    return std::ranges::any_of(others,
                               [&](const char* other) { return name.find(other) != std::string::npos; });
}

/// Collectives without a name, by start.
std::vector<RecordedSpan*> nameless(std::span<RecordedTrace> traces) {
    std::vector<RecordedSpan*> spans;
    for (RecordedTrace& trace : traces)
        for (RecordedSpan& span : trace.spans)
            if (span.kind == TaskKind::collective && collective_of(span).empty() &&
                !names_another(span.name) && !(span.collective && names_another(span.collective->name)))
                spans.push_back(&span);
    std::ranges::stable_sort(spans, {}, [](const RecordedSpan* span) { return span->start_ns; });
    return spans;
}

/// What the host asked the library for, by start: collectives, and messages.
std::vector<std::string> calls_of(std::span<const RecordedTrace> traces) {
    std::vector<LibraryCall> calls;
    for (const RecordedTrace& trace : traces) append(calls, trace.calls);
    std::ranges::stable_sort(calls, {}, &LibraryCall::start_ns);
    std::vector<std::string> names;
    for (const LibraryCall& call : calls)
        if (call.function.starts_with("nccl") &&
            (!collective_called(call.function).empty() || names_another(call.function)))
            names.push_back(call.function);
    return names;
}

/// Names the k-th kernel, of all GPUs or of each, by the k-th call. False if their numbers differ.
bool name_by_calls(const std::vector<RecordedSpan*>& spans, const std::vector<std::string>& calls) {
    if (calls.empty()) return false;
    const bool all_alike =
        std::ranges::all_of(calls, [&](const std::string& call) { return call == calls.front(); });
    std::map<std::int64_t, std::size_t> of_gpu;
    for (const RecordedSpan* span : spans) ++of_gpu[span->gpu];
    const bool each =
        std::ranges::all_of(of_gpu, [&](const auto& gpu) { return gpu.second == calls.size(); });
    if (!all_alike && !each && spans.size() != calls.size()) return false;
    std::map<std::int64_t, std::size_t> next;
    std::size_t place = 0;
    for (RecordedSpan* span : spans) {
        const std::size_t of_this_gpu = next[span->gpu]++;
        give_name(*span, calls[all_alike ? 0 : each ? of_this_gpu : place++]);
    }
    return true;
}

}  // namespace

std::string collective_of(const RecordedSpan& span) {
    if (span.kind != TaskKind::collective) return "";
    if (span.collective)
        if (const std::string named = collective_called(span.collective->name); !named.empty()) return named;
    return collective_called(span.name);
}

void name_collectives(std::span<RecordedTrace> traces, const std::string& given,
                      std::vector<std::string>& notes) {
    std::vector<RecordedSpan*> spans = nameless(traces);
    std::size_t by_size = 0;
    for (RecordedSpan*& span : spans) {
        const std::string kind = span->collective ? collective_by_size(*span->collective) : "";
        if (kind.empty()) continue;
        give_name(*span, kind);
        ++by_size;
        span = nullptr;
    }
    std::erase(spans, nullptr);
    const auto note = [&](std::size_t count, const std::string& how) {
        if (count > 0) notes.push_back("collectives " + std::to_string(count) + " kernels " + how);
    };
    note(by_size, "told by the sizes of their operands");
    if (spans.empty()) return;
    const std::vector<std::string> calls = calls_of(traces);
    if (name_by_calls(spans, calls))
        return note(spans.size(), "named by the library's " + std::to_string(calls.size()) + " calls");
    if (!calls.empty())
        note(spans.size(),
             "and " + std::to_string(calls.size()) + " calls of the library, which can't be paired");
    if (!given.empty()) {
        for (RecordedSpan* span : spans) give_name(*span, given);
        return note(spans.size(), "taken as " + given + " (--collective)");
    }
    note(spans.size(),
         "have one name for all collectives: add rocprofv3's *_rccl_api_trace.csv (--rccl-trace), or give "
         "--collective NAME");
}

void tell_peer_copies(std::span<RecordedTrace> traces, PeerCopyRule peers, std::vector<std::string>& notes) {
    // MI250X joins its two GPUs by four links of 50 GB/s, the fastest between two of AMD (data sheet). A copy inside one
    // reads and writes memory of 1,229 GB/s and more (MI100), so it is faster. Small copies mostly wait.
    constexpr double fastest_link_GBps = 200, least_bytes = 4 << 20;
    const auto rate = [](const RecordedSpan& span) {
        return span.bytes / static_cast<double>(std::max<std::int64_t>(1, span.end_ns - span.start_ns));
    };
    std::vector<RecordedSpan*> copies;
    for (RecordedTrace& trace : traces) {
        std::set<std::string> between;  // streams with copies that are as slow as a link
        for (const RecordedSpan& span : trace.spans)
            if (span.ends_unknown && span.bytes >= least_bytes && rate(span) < fastest_link_GBps)
                between.insert(span.track);
        for (RecordedSpan& span : trace.spans)
            if (span.ends_unknown && peers != PeerCopyRule::none &&
                (peers == PeerCopyRule::all || between.contains(span.track)))
                copies.push_back(&span);
    }
    if (copies.empty()) return;
    double bytes = 0, ns = 0;
    for (RecordedSpan* copy : copies) {
        copy->kind = TaskKind::copy;
        bytes += copy->bytes;
        ns += static_cast<double>(copy->end_ns - copy->start_ns);
    }
    std::ostringstream text;
    text << "copies      " << copies.size() << " x Memcpy DtoD are taken as copies between GPUs";
    if (peers == PeerCopyRule::by_rate)
        text << ": at " << std::fixed << std::setprecision(1) << bytes / std::max(1.0, ns)
             << " GB/s they are as fast as a link, not as memory (else --peer-copies none)";
    notes.push_back(text.str());
}

}  // namespace overlap
