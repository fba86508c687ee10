#pragma once

#include <optional>
#include <string>

#include "sim/topology/derived_values.hpp"

namespace overlap {

/// What a data sheet, or a measurement, says of a machine.
struct DataSheet {
    std::string name;
    Factors values;  ///< by key of the device file, in its unit: "peak_TFLOPS.bf16"
    std::map<std::string, std::string> sources;    ///< by the same key, and of "link"
    std::string known_from = "by its data sheet";  ///< in the description
    std::optional<double> link_GBps, latency_us;   ///< of one link in one direction
    int links = 0;                                 ///< of one GPU; 0: one, or one to each peer
    bool by_switch = false;                        ///< links lead to a switch, else to all peers
    Json fabric;  ///< instead of the links: a measured group, without latency_us
    int gpus = 8;
};

/// The shipped device that a new one is made from, and a topology of it with one node.
struct LikeMachine {
    std::string name;
    Json device, calibration, topology;
};

struct NewMachine {
    Json device, topology;
};

/// Gives `to` the members of `from` that it lacks, at any depth but provenance.
void add_missing(Json& to, const Json& from);

/// A complete device file and a topology file NAME_<gpus>. Values of the data sheet have it as their source;
/// each other value is an estimate: that of `like`, scaled by what it follows (moved_factor()). Without
/// energy, whose constants only measurements give. Throws UserError where the links don't fit the GPUs.
NewMachine new_machine(const DataSheet& sheet, const LikeMachine& like);

}  // namespace overlap
