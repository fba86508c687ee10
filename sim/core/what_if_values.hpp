#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/core/what_if.hpp"

namespace overlap {

/// One change of a what-if: what the files say, and what a run uses instead.
struct ChangedValue {
    std::string key;  ///< "device.dma.engine_GBps"
    Json given;       ///< as in the what-if: 2, or "2x"
    Json before, after;
};

/// The changes of `what_if`, an object as WhatIf takes it and has accepted, whose keys begin with `root`.
/// `files` are as read, without it.
std::vector<ChangedValue> changed_values(const Json& what_if, const std::string& root,
                                         std::span<ConfigFile* const> files);

}  // namespace overlap
