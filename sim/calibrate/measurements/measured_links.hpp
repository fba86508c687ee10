#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace overlap {

/// Which GPUs the driver says are joined by NVLink or xGMI; empty where it does not say.
using FastLinks = std::vector<std::vector<bool>>;

/// How the GPUs of a measured machine are joined.
struct MeasuredLinks {
    Json group;                      ///< of a topology's "fabric", without latency_us
    int gpus = 2;                    ///< of the island of GPU 0
    std::vector<std::string> notes;  ///< what the topology leaves out
};

/// Rate of a link: 64 MiB to 1 GiB from one GPU to another in two_gpus.jsonl, by whichever copies are fastest. Shape: a
/// switch if one GPU sends to all others at the rate of one link, a full mesh if at the rates of all (four_gpus.jsonl;
/// the nearer in logarithm); a ring or a list of pairs where `fast` says so. No links where no pair was measured. With
/// two GPUs a switch and a mesh are the same. Throws UserError for broken files.
std::optional<MeasuredLinks> measured_links(const std::filesystem::path& folder, const std::string& shown,
                                            int gpus, const FastLinks& fast);

/// The links among the first `gpus` GPUs of a group; null where these are not joined.
Json links_among_first(const Json& group, int gpus);

}  // namespace overlap
