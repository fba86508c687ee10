#pragma once

#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// Which collective of ours a span is, by what was recorded of it and by its kernel's name: "all_gather"; empty for
/// what we have no collective for, and for RCCL's kernels, which have one name for all.
std::string collective_of(const RecordedSpan& span);

/// Names collectives whose kernels do not tell: by the sizes of their operands, by the calls of the library that were
/// recorded beside them, else as `given` (may be empty). `notes`: how, a line each.
void name_collectives(std::span<RecordedTrace> traces, const std::string& given,
                      std::vector<std::string>& notes);

/// Which copies whose GPUs are not recorded are between GPUs: by_rate, those that are no faster than a link.
enum class PeerCopyRule { by_rate, all, none };
inline const std::array<std::string, 3> peer_copies_names{"by_rate", "all", "none"};
void tell_peer_copies(std::span<RecordedTrace> traces, PeerCopyRule peers, std::vector<std::string>& notes);

}  // namespace overlap
