#pragma once

#include <string>
#include <string_view>

#include "sim/importers/trace_importer.hpp"

// What the forms of rocprofv3's traces share.
namespace overlap {

/// "4" of "Agent 4", "4" or, of --agent-index=type-relative, "GPU 4". A Perfetto trace has "-" for the blank.
std::string_view rocprof_agent(std::string_view name);

/// A copy's span without its times.
struct RocprofCopy {
    RecordedSpan span;
    KernelUse use;
};
/// `direction`: "MEMORY_COPY_DEVICE_TO_HOST"; the others are numbers of agents.
RocprofCopy rocprof_copy(const std::string& direction, std::int64_t from, std::int64_t to);

}  // namespace overlap
