// What rocprofv3 --output-format pftrace writes. Source: github.com/ROCm/rocprofiler-sdk,
// source/lib/output/generatePerfetto.cpp. The annotations of a slice have its times, its agents and its queue, so that
// neither its end nor its track is looked at.
#include <google/protobuf/io/coded_stream.h>
#include <sim/importers/perfetto_trace.pb.h>
#include <climits>

#include "sim/core/archive.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/rocprof_records.hpp"

namespace overlap {
namespace {

using perfetto::DebugAnnotation, perfetto::TracePacket, perfetto::TrackEvent;
using Names = std::map<std::uint64_t, std::string>;

/// The packets of one writer, which gives each name once, with a number.
struct Sequence {
    bool complete = false;  ///< whether no packet was lost since the names were last cleared
    Names categories = {}, events = {}, annotations = {};

    void add(const perfetto::InternedData& data) {
        for (const auto& one : data.event_categories()) categories[one.iid()] = one.name();
        for (const auto& one : data.event_names()) events[one.iid()] = one.name();
        for (const auto& one : data.debug_annotation_names()) annotations[one.iid()] = one.name();
    }
};

class PerfettoTrace {
public:
    PerfettoTrace(const std::filesystem::path& path, const KernelTable& kernels)
        : file_(path.string()), content_(decompressed(path, "a Perfetto trace")), kernels_(kernels) {}

    RecordedTrace read() && {
        trace_.recorded_by = "rocprofv3";
        trace_.gpu_numbers = GpuNumbers::agents;
        for (TracePacket packet; next_ < content_.size();) {
            take_packet(packet);
            read_packet(packet);
        }
        if (trace_.spans.empty() && trace_.calls.empty())
            throw UserError(file_ +
                            ": is a Perfetto trace without a kernel or a copy of rocprofv3: record with "
                            "rocprofv3 --kernel-trace --memory-copy-trace (and --rccl-trace, which tells "
                            "RCCL's collectives apart)");
        return std::move(trace_);
    }

private:
    [[noreturn]] void fail(const std::string& problem) const {
        throw UserError(file_ + ": packet at byte " + std::to_string(at_) + ": " + problem);
    }

    void take_packet(TracePacket& packet) {
        constexpr std::uint32_t tag_of_packet = 1 << 3 | 2;  // field 1, bytes behind their length
        at_ = next_;
        const auto* const begin = reinterpret_cast<const std::uint8_t*>(content_.data()) + at_;
        const int left = static_cast<int>(std::min<std::size_t>(content_.size() - at_, INT_MAX));
        google::protobuf::io::CodedInputStream in(begin, left);
        int size = 0;
        if (in.ReadTag() != tag_of_packet || !in.ReadVarintSizeAsInt(&size))
            fail("is none of a Perfetto trace, or is cut off");
        const int head = in.CurrentPosition();
        if (size > left - head)
            fail("has " + std::to_string(size) + " bytes, but the file only " + std::to_string(left - head) +
                 " more");
        if (!packet.ParseFromArray(begin + head, size)) fail("is damaged");
        next_ = at_ + static_cast<std::size_t>(head + size);
    }

    void read_packet(const TracePacket& packet) {
        Sequence& sequence = sequences_[packet.trusted_packet_sequence_id()];
        if ((packet.sequence_flags() & TracePacket::SEQ_INCREMENTAL_STATE_CLEARED) != 0)
            sequence = {.complete = true};
        else if (packet.previous_packet_dropped() != 0)
            sequence.complete = false;
        sequence.add(packet.interned_data());
        if (packet.track_event().type() != TrackEvent::TYPE_SLICE_BEGIN) return;
        if ((packet.sequence_flags() & TracePacket::SEQ_NEEDS_INCREMENTAL_STATE) != 0 && !sequence.complete)
            fail("needs names of packets that were dropped; record with a larger --perfetto-buffer-size");
        read_slice(packet.track_event(), sequence);
    }

    const std::string& name_of(const Names& names, std::uint64_t number) const {
        const std::string* name = value_at(names, number);
        if (name == nullptr) fail("has no name for number " + std::to_string(number));
        return *name;
    }

    void read_slice(const TrackEvent& event, const Sequence& sequence) {
        if (event.categories().empty() && event.category_iids().empty()) return;
        const std::string& category = event.categories().empty()
                                          ? name_of(sequence.categories, event.category_iids(0))
                                          : event.categories(0);
        if (category != "kernel_dispatch" && category != "memory_copy" && category != "rccl_api") return;
        const std::string& name =
            event.name_iid() != 0 ? name_of(sequence.events, event.name_iid()) : event.name();
        values_.clear();
        for (const DebugAnnotation& value : event.debug_annotations())
            values_[value.name_iid() != 0 ? name_of(sequence.annotations, value.name_iid()) : value.name()] =
                &value;
        if (category == "kernel_dispatch")
            add_kernel(name);
        else if (category == "memory_copy")
            add_copy(name);
        else
            trace_.calls.push_back({name, number("begin_ns")});
    }

    const DebugAnnotation& value(const std::string& key) const {
        const auto* found = value_at(values_, key);
        if (found == nullptr) fail("has no annotation '" + key + "'");
        return **found;
    }
    std::int64_t number(const std::string& key) const {
        const DebugAnnotation& found = value(key);
        const std::int64_t number =
            found.has_int_value() ? found.int_value() : static_cast<std::int64_t>(found.uint_value());
        if ((!found.has_int_value() && !found.has_uint_value()) || number < 0)
            fail(key + " is no whole number of 63 bits");
        return number;
    }
    /// A number in older versions, now "Agent-4" or "GPU-4".
    std::int64_t agent(const std::string& key) const {
        const std::string& name = value(key).string_value();
        if (name.empty()) return number(key);
        const auto number = parsed<std::int64_t>(rocprof_agent(name));
        if (!number || *number < 0) fail(key + " is '" + name + "', expected an agent's number");
        return *number;
    }

    void add(RecordedSpan span, const std::optional<KernelUse>& use) {
        span.start_ns = number("begin_ns");
        span.end_ns = number("end_ns");
        trace_.add(std::move(span), use, [&](const std::string& problem) { fail(problem); });
    }
    void add_kernel(const std::string& name) {
        const bool has_stream = values_.contains("stream_ID");
        add({.name = name,
             .gpu = agent("agent"),
             .track = has_stream ? "stream " + std::to_string(number("stream_ID"))
                                 : "queue " + std::to_string(number("queue"))},
            kernels_.use_of(name));
    }
    void add_copy(const std::string& name) {
        RocprofCopy copy = rocprof_copy(name, agent("src_agent"), agent("dst_agent"));
        copy.span.bytes = static_cast<double>(number("copy_bytes"));
        add(std::move(copy.span), copy.use);
    }

    std::string file_, content_;
    const KernelTable& kernels_;
    RecordedTrace trace_;
    std::map<std::uint32_t, Sequence> sequences_;
    std::map<std::string, const DebugAnnotation*> values_;  ///< of the slice
    std::size_t at_ = 0, next_ = 0;                         ///< where this packet and the next one begin
};

}  // namespace

RecordedTrace read_rocprof_perfetto(const std::filesystem::path& path, const KernelTable& kernels) {
    return PerfettoTrace(path, kernels).read();
}

}  // namespace overlap
