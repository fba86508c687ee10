#include "sim/confidence/measured_on.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace overlap {
namespace {

/// Whether a key of a device is a group on work between GPUs or on calls; all other keys are facts of the GPU.
bool is_group(const std::string& key) {
    static const std::set<std::string> groups{
        "launch", "dma", "copy_kernel", "collective_library", "interference", "variation", "energy"};
    return groups.contains(key);
}

/// Whether a key holds a text on the numbers of its file, or the name of one.
bool is_text(const std::string& key) {
    static const std::set<std::string> texts{"schema", "name",       "description", "source",     "like",
                                             "device", "provenance", "validation",  "measured_on"};
    return texts.contains(key);
}

const Json& without_source(const Json& json) {
    return json.is_object() && json.contains("value") && json.contains("source") ? json["value"] : json;
}

bool same_numbers(const Json& one, const Json& other);

/// Whether two objects have the same numbers at the same keys, of those that `counts` takes.
template <class Counts>
bool same_numbers_of(const Json& one, const Json& other, const Counts& counts) {
    const auto next = [&counts](const Json& json, auto at) {
        while (at != json.end() && !counts(at.key())) ++at;
        return at;
    };
    auto a = next(one, one.begin()), b = next(other, other.begin());
    for (; a != one.end() && b != other.end(); a = next(one, ++a), b = next(other, ++b))
        if (a.key() != b.key() || !same_numbers(*a, *b)) return false;
    return a == one.end() && b == other.end();
}

/// Whether two files, or parts of them, have the same numbers and choices, whatever their texts say.
bool same_numbers(const Json& one, const Json& other) {
    const Json &a = without_source(one), &b = without_source(other);
    if (a.is_array() && b.is_array()) return std::ranges::equal(a, b, same_numbers);
    if (!a.is_object() || !b.is_object()) return a == b;
    return same_numbers_of(a, b, [](const std::string& key) { return !is_text(key); });
}

/// Which of a machine's parts are as they were measured.
class Sameness {
public:
    Sameness(const Json& topology, const GpuFiles& now, const GpuFiles& fitted) : now_(now), fitted_(fitted) {
        same_gpu_ = same_numbers_of(now.device, fitted.device,
                                    [](const std::string& key) { return !is_text(key) && !is_group(key); });
        same_files_ =
            same_numbers(now.device, fitted.device) && same_numbers(now.calibration, fitted.calibration);
        measured_on_ = now.calibration.value("measured_on", Json::object());
        gpus_ = topology.value("gpus_per_node", 0);
        same_links_ = topology.value("nodes", 1) == 1 && topology.value("degraded", Json::object()).empty() &&
                      measured_on_.contains("fabric") &&
                      same_numbers(measured_on_["fabric"], topology.value("fabric", Json::array()));
    }

    /// Work of one GPU by these groups of the calibration.
    bool of_gpu(const std::vector<std::string>& groups) const {
        return same_gpu_ && std::ranges::all_of(groups, [&](const std::string& group) {
                   const bool is_there = now_.calibration.contains(group);
                   return is_there == fitted_.calibration.contains(group) &&
                          (!is_there || same_numbers(now_.calibration[group], fitted_.calibration[group]));
               });
    }
    /// Work between GPUs; `what`: a key of "measured_on".
    bool between_gpus(const std::string& what) const {
        const Json counts = measured_on_.value(what, Json::object());
        return same_files_ && same_links_ && std::ranges::find(counts, Json(gpus_)) != counts.end();
    }
    bool whole_gpu() const { return same_files_; }

private:
    const GpuFiles &now_, &fitted_;
    Json measured_on_;
    int gpus_ = 0;
    bool same_gpu_ = false, same_files_ = false, same_links_ = false;
};

/// Takes away what was not measured on the machine that it prices.
void claim_if(bool same, Evidence& evidence) {
    if (same) return;
    evidence.elsewhere = std::exchange(evidence.error, std::nullopt);
    if (evidence.basis == Basis::measured || evidence.basis == Basis::fitted) evidence.basis = Basis::derived;
}

void claim_if(bool same, std::optional<SchedulesMeasured>& schedules) {
    if (!same) schedules.reset();
}

template <class Key>
void claim_if(bool same, std::map<Key, Evidence>& all) {
    for (auto& [key, evidence] : all) claim_if(same, evidence);
}

}  // namespace

void claim_what_was_measured(MachineEvidence& evidence, const Json& topology, const GpuFiles& now,
                             const GpuFiles& fitted) {
    const Sameness same(topology, now, fitted);
    claim_if(same.of_gpu({"gemm", "gemm_libraries"}), evidence.gemm);
    claim_if(same.of_gpu({kernel_groups.begin(), kernel_groups.end()}), evidence.kernels);
    for (Evidence* copies : {&evidence.dma, &evidence.small_dma, &evidence.copy_kernels, &evidence.beside_dma,
                             &evidence.beside_copy_kernels})
        claim_if(same.between_gpus("copies"), *copies);
    claim_if(same.between_gpus("library"), evidence.collectives);
    claim_if(same.between_gpus("library"), evidence.beside_library);
    claim_if(same.between_gpus("library"), evidence.collective_beside_gemms);
    claim_if(same.between_gpus("schedules"), evidence.schedules);
    claim_if(same.whole_gpu(), evidence.layers);
}

}  // namespace overlap
