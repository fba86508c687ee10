#include "sim/topology/derived_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "sim/topology/device.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

const std::string root = "device.", one_library = "gemm_libraries.", mixed = "gemm.";

/// Calls `visit(group, key)` for the keys of a device that have a row in a table.
template <class Visit>
void for_each_key(Visit&& visit) {
    const auto of = [&](const std::string& group, const auto& fields) {
        for (const Key& key : fields) visit(group, key);
    };
    of("", DeviceSpec::fields());
    of("dma.", DeviceDma::fields());
    of("dma.", DeviceDmaPhases::fields());
    of("dma.commands.", DeviceDmaCommands::fields());
    of("copy_kernel.", DeviceCopyKernel::fields());
    of("copy_kernel.", DeviceCopiesBeside::fields());
    of("copy_kernel.", DeviceStream::fields());
    of("collective_library.", DeviceLibrary::fields());
    for (const char* line : {"", "small.", "smallest."})
        of(std::string("collective_library.*.") + line, DeviceLibrary::Line::fields());
}

/// {"a", "b"} of "a * b".
std::vector<std::string_view> factors_in(std::string_view product) {
    std::vector<std::string_view> factors;
    for (std::size_t end = 0; end != product.npos; product.remove_prefix(std::min(end + 3, product.size()))) {
        end = product.find(" * ");
        factors.push_back(product.substr(0, end));
    }
    return factors;
}

/// "gemm.bf16.hbm_GBps" of "gemm_libraries.asm.bf16.hbm_GBps": a library's parameters follow like the mix's.
std::string of_any_library(std::string_view key) {
    if (!key.starts_with(one_library)) return std::string(key);
    return mixed + std::string(key.substr(key.find('.', one_library.size()) + 1));
}

/// Whether `key` is one of `pattern`; `star` gets what the last '*' stands for.
bool matches(std::string_view pattern, std::string_view key, std::string& star) {
    while (!pattern.empty() && !key.empty()) {
        const std::string_view wanted = pattern.substr(0, pattern.find('.')),
                               part = key.substr(0, key.find('.'));
        if (wanted == "*")
            star = part;
        else if (wanted != part)
            return false;
        pattern.remove_prefix(std::min(wanted.size() + 1, pattern.size()));
        key.remove_prefix(std::min(part.size() + 1, key.size()));
    }
    return pattern.empty() && key.empty();
}

void visit_numbers(Json& node, const std::string& key, const VisitValue& visit) {
    if (!node.is_structured()) return;
    if (node.is_object() && node.contains("value")) {
        if (node["value"].is_number()) visit(key, node);
        return;
    }
    for (const auto& item : node.items())
        if (item.key() != "provenance" && item.key() != "measured_gemms")
            visit_numbers(item.value(), key.empty() ? item.key() : key + "." + item.key(), visit);
}

Factors factors_of(const std::vector<ChangedValue>& changes) {
    Factors factors;
    for (const ChangedValue& change : changes)
        if (change.before.is_number() && change.before != 0)
            factors[change.key.substr(root.size())] =
                change.after.get<double>() / change.before.get<double>();
    return factors;
}

/// Time of a library's collective by the fastest of its lines, in us.
double line_us(const Json& fit, double bus_bytes) {
    const auto of = [&](const Json& line) {
        return line.at("latency_us").at("value").get<double>() +
               bus_bytes / (1e3 * line.at("bus_GBps").at("value").get<double>());
    };
    double us = of(fit);
    for (const char* protocol : {"small", "smallest"})
        if (fit.contains(protocol)) us = std::min(us, of(fit.at(protocol)));
    return us;
}

/// Scales the times of collectives of a device whose library was `before`.
void follow_lines(Json& device, const Json& before) try {
    for (const std::string& kind : collective_names)
        if (before.contains(kind) && before.at(kind).contains("by_ranks")) {
            Json& fit = device.at("collective_library").at(kind);
            scale_times(fit.at("by_ranks"), kind, before.at(kind), fit);
        }
} catch (const Json::exception&) {  // of a malformed file, which the reader refuses
}

/// A value of a device, or of its calibration, that follows others: where they change by a factor, it changes by the
/// product of their factors, unless it is changed itself.
struct DerivedValue {
    std::string key;  ///< '*' stands for any one key, such as a data type
    std::vector<std::string_view>
        follows;  ///< a '*' here is the last one of `key`, up to its first '_': fp8 of fp8_block
    std::vector<std::string_view> against = {};  ///< the factors of these divide
};

std::span<const DerivedValue> derived_values() {
    static const std::vector<DerivedValue> all = [] {
        // Values whose keys have no row of their own, and groups of a calibration.
        std::vector<DerivedValue> rows{
            {"peak_TFLOPS.*", {"compute_units", "peak_clock_GHz"}},
            {"collective_library.*.bus_GBps_by_channels.*", {"ports_GBps"}},
            {"*.*.compute_units", {"compute_units"}},
            {"*.*.peak_TFLOPS", {"peak_TFLOPS.*"}},
            {"*.*.hbm_GBps", {"hbm_GBps"}},
            {"gemm.*.reuse_cache_MB", {"last_level_cache_MB"}},
            // Times of one unit. Softmax (block_us) follows nothing, because no data sheet has a rate of exponentials.
            {"attention_prefill.*.block_dim_us", {"compute_units"}, {"peak_TFLOPS.*"}},
            {"attention_prefill.*.query_GBps", {"hbm_GBps"}},
            {"attention_prefill.*.cache_GBps", {"hbm_GBps"}},
            {"moe.*.stream_GBps", {"hbm_GBps"}}};
        for_each_key([&](const std::string& group, const Key& key) {
            if (!key.follows.empty()) rows.push_back({group + std::string(key.key), factors_in(key.follows)});
        });
        return rows;
    }();
    return all;
}

}  // namespace

void scale_times(Json& by_ranks, const std::string& collective, const Json& before, const Json& after) {
    for (const auto& [ranks, table] : by_ranks.items())
        for (std::size_t i = 0; i < table.at("us").size(); ++i) {
            const double gpus = std::strtod(ranks.c_str(), nullptr),
                         passes = collective == "all_reduce" ? 2 : 1,
                         bus_bytes = passes * (gpus - 1) / gpus * table.at("bytes").at(i).get<double>(),
                         factor = line_us(after, bus_bytes) / line_us(before, bus_bytes);
            if (std::isfinite(factor) && factor > 0) table["us"][i] = table["us"][i].get<double>() * factor;
        }
}

double moved_factor(std::string_view key, const Factors& changed) {
    if (const auto own = changed.find(key); own != changed.end()) return own->second;
    const std::string any = of_any_library(key);
    std::string star;
    for (const DerivedValue& row : derived_values()) {
        if (!matches(row.key, any, star)) continue;
        star = star.substr(0, star.find('_'));
        const auto of = [&](std::string_view other) {
            return moved_factor(other.ends_with('*') ? std::string(other.substr(0, other.size() - 1)) + star
                                                     : std::string(other),
                                changed);
        };
        double factor = 1;
        for (const std::string_view other : row.follows) factor *= of(other);
        for (const std::string_view other : row.against) factor /= of(other);
        return factor;
    }
    return 1;
}

bool is_count(std::string_view name) {
    static const std::set<std::string, std::less<>> names = [] {
        std::set<std::string, std::less<>> counts;
        for_each_key([&](const std::string&, const Key& key) {
            if (key.kind == Key::Kind::whole) counts.emplace(key.key);
        });
        return counts;
    }();
    return names.contains(name.substr(name.rfind('.') + 1));
}

double scaled(std::string_view key, double value, double factor) {
    return is_count(key) ? std::round(value * factor) : value * factor;
}

void for_each_number(Json& file, const VisitValue& visit) {
    visit_numbers(file, "", visit);
}

std::vector<ChangedValue> change_device(const WhatIf& what_if, std::span<ConfigFile* const> files) {
    const std::vector<ChangedValue> changes = changed_values(what_if.changes(), "device", files, is_count);
    std::vector<ChangedValue> moved;
    if (what_if.changes().empty()) return moved;
    Json& device = files.front()->json;
    const Json library = device.is_object() ? device.value("collective_library", Json()) : Json();
    what_if.change("device", files, is_count);
    follow_lines(device, library);
    const Factors factors = factors_of(changes);
    if (factors.empty()) return moved;
    for (ConfigFile* file : files) {
        bool same = true;
        for_each_number(file->json, [&](const std::string& key, Json& parameter) {
            const double factor = moved_factor(key, factors);
            if (factor == 1 || factors.contains(key)) return;
            Json leaders = Json::array();
            for (const auto& [leader, own] : factors)
                if (moved_factor(key, {{leader, own}}) != 1) leaders.push_back(root + leader);
            const Json before = parameter["value"];
            parameter["value"] = scaled(key, before.get<double>(), factor);
            moved.push_back({root + key, std::move(leaders), before, parameter["value"]});
            same = false;
        });
        if (!same) file->mark_changed();
    }
    return moved;
}

}  // namespace overlap
