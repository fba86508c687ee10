#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace overlap {

/// What a node of a Chakra execution trace does. skip: nothing that takes time here.
enum class ChakraKind : std::uint8_t { skip, compute, send, receive, collective };

/// A node of one rank's trace, in our terms.
struct ChakraNode {
    std::uint64_t id = 0;
    std::string name;
    ChakraKind kind = ChakraKind::skip;
    /// compute, collective: the operator as in a workload file, without name and needs.
    Json work;
    std::uint64_t bytes = 0;   ///< of a message
    std::int64_t peer = 0;     ///< of a message: the other rank
    std::uint64_t tag = 0;     ///< of a message
    std::string group;         ///< of a collective: name of its process group; empty: all ranks
    bool of_one_rank = false;  ///< "bytes" of `work` are those of one rank of the group, an all-gather's
    bool ours = false;         ///< written by us: `name` is that of one operator, on all its ranks
    std::uint64_t place = 0;   ///< in the list that we wrote, or in the file
    std::vector<std::size_t> after;  ///< places in ChakraRank::nodes of the nodes that it waits for
};

struct ChakraRank {
    std::string file;
    std::vector<ChakraNode> nodes;
};

/// The traces of all ranks, and what reading them left out.
struct ChakraTrace {
    std::vector<ChakraRank> ranks;
    std::map<std::string, std::size_t>
        ignored;                    ///< attributes without a meaning here, and how many nodes have them
    std::size_t cpu_operators = 0;  ///< which take no time here
    double cpu_us = 0;              ///< as recorded
    bool typeless = false;          ///< an operator's number format was assumed
    std::string name, description, order;  ///< as our writer left them; else empty
    /// Process groups, ascending; empty without a file of them
    std::map<std::string, std::vector<std::int64_t>> groups;
    std::string groups_file;
};

/// The files NAME.0.et, NAME.1.et, … of a trace that is given as NAME, as NAME.et, as one of the files, or as the
/// folder that has no others; none if there are no such files.
std::vector<std::filesystem::path> chakra_files(const std::filesystem::path& given);

/// Reads the files of all ranks. Throws UserError, with file and node, for what is damaged or can't be expressed.
ChakraTrace read_chakra_trace(const std::vector<std::filesystem::path>& files);

}  // namespace overlap
