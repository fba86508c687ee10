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

/// The numbers and choices of a file, without texts on them.
Json bare(const Json& json) {
    if (json.is_array()) {
        Json all = Json::array();
        for (const Json& one : json) all.push_back(bare(one));
        return all;
    }
    if (!json.is_object()) return json;
    if (json.contains("value") && json.contains("source")) return json["value"];
    static const std::set<std::string> texts{"schema", "name",       "description", "source",     "like",
                                             "device", "provenance", "validation",  "measured_on"};
    Json all = Json::object();
    for (const auto& [key, value] : json.items())
        if (!texts.contains(key)) all[key] = bare(value);
    return all;
}

/// Which of a machine's parts are as they were measured.
class Sameness {
public:
    Sameness(const Json& topology, const GpuFiles& now, const GpuFiles& fitted)
        : now_{bare(now.device), bare(now.calibration)},
          fitted_{bare(fitted.device), bare(fitted.calibration)} {
        same_gpu_ = facts(now_.device) == facts(fitted_.device);
        same_files_ = now_.device == fitted_.device && now_.calibration == fitted_.calibration;
        measured_on_ = now.calibration.value("measured_on", Json::object());
        gpus_ = topology.value("gpus_per_node", 0);
        same_links_ = topology.value("nodes", 1) == 1 && topology.value("degraded", Json::object()).empty() &&
                      measured_on_.contains("fabric") &&
                      bare(measured_on_["fabric"]) == bare(topology.value("fabric", Json::array()));
    }

    /// Work of one GPU by these groups of the calibration.
    bool of_gpu(const std::vector<std::string>& groups) const {
        return same_gpu_ && std::ranges::all_of(groups, [&](const std::string& group) {
                   return now_.calibration.value(group, Json::object()) ==
                          fitted_.calibration.value(group, Json::object());
               });
    }
    /// Work between GPUs; `what`: a key of "measured_on".
    bool between_gpus(const std::string& what) const {
        const Json counts = measured_on_.value(what, Json::object());
        return same_files_ && same_links_ && std::ranges::find(counts, Json(gpus_)) != counts.end();
    }
    bool whole_gpu() const { return same_files_; }

private:
    static Json facts(const Json& device) {
        Json all = Json::object();
        for (const auto& [key, value] : device.items())
            if (!is_group(key)) all[key] = value;
        return all;
    }

    GpuFiles now_, fitted_;
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
