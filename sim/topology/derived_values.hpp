#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/what_if.hpp"

namespace overlap {

/// Groups of a calibration file with fits of attention, of grouped GEMMs and of all-to-alls of experts. Device files
/// have no such values.
inline const std::array<std::string, 4> kernel_groups{"attention_prefill", "attention_decode", "moe",
                                                      "expert_exchange"};

/// Factors by key without "device.": {"hbm_GBps", 2}.
using Factors = std::map<std::string, double, std::less<>>;

/// The factor of a value where `changed` are the factors of the values that change themselves: the product of those
/// that it follows. Latencies, and rates of links, follow nothing. Factors `link_GBps` and `ports_GBps` are of a
/// topology's rates, of one link and of all links of a GPU; only `sim new device` gives them.
double moved_factor(std::string_view key, const Factors& changed);

/// Whether the values of a device by this name (the last part of a key) are whole numbers.
bool is_count(std::string_view name);

/// `value` times `factor`; whole if the values of that key are.
double scaled(std::string_view key, double value, double factor);

/// Calls `visit` with the key and the {"value", …} of every number of a device, calibration or
/// topology file.
using VisitValue = std::function<void(const std::string& key, Json& parameter)>;
void for_each_number(Json& file, const VisitValue& visit);

/// Scales times of a library's collective, `by_ranks` of its group, as its lines changed from those of the group
/// `before` to those of `after`. Throws Json::exception if a file is malformed.
void scale_times(Json& by_ranks, const std::string& collective, const Json& before, const Json& after);

/// Makes the changes of `what_if` below "device." in the first of `files` (device, calibration) that has the key, and
/// moves the values that follow and the times of library collectives whose lines change. Factors of counts give the
/// nearest whole number. Returns the values that moved along, as ChangedValue whose `given` is the list of the
/// changes' keys. Throws UserError.
std::vector<ChangedValue> change_device(const WhatIf& what_if, std::span<ConfigFile* const> files);

}  // namespace overlap
