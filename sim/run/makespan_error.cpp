#include "sim/run/makespan_error.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace overlap {
namespace {

constexpr double small_copy = 1 << 20;  // bytes; errors of DMA copies are known above and below it apart

/// Kinds of priced work in a graph.
struct Kinds {
    std::set<DType> gemms;
    /// Of grouped GEMMs and attention, as MachineEvidence::kernels names them
    std::set<std::string> grouped, attention;
    bool all_gemms_measured = true;
    bool kernels = false, collectives = false, barriers = false;
    Bytes largest_dma;

    Kinds(const TaskGraph& graph, const Calibration& calibration) {
        for (TaskId id = 0; id < graph.size(); ++id) {
            const Work& work = graph[id].work;
            if (const auto* gemm = std::get_if<GemmShape>(&work); gemm != nullptr && gemm->groups > 1) {
                grouped.insert("moe/" + kernel_format(gemm->dtype));
            } else if (const auto* kernel = std::get_if<MemoryBoundWork>(&work)) {
                const AttentionCall& call = kernel->attention;
                if (call.sequences > 0)
                    attention.insert(call.kind == AttentionKind::decode
                                         ? "attention_decode/" + kernel_format(call.kv_dtype)
                                         : "attention_prefill/" + prefill_format(call.dtype, call.kv_dtype));
            } else if (gemm != nullptr) {
                gemms.insert(gemm->dtype);
                all_gemms_measured = all_gemms_measured && calibration.gemm_times.contains(*gemm);
            } else if (const auto* copy = std::get_if<CopyWork>(&work)) {
                if (copy->agent == Agent::dma) largest_dma = std::max(largest_dma, copy->bytes);
                kernels = kernels || copy->agent == Agent::cu;
            }
            barriers = barriers || graph[id].continues;
            collectives = collectives || graph[id].kind() == TaskKind::collective;
        }
    }
};

/// Factors on the times of each kind of work.
struct Lengthened {
    double gemm = 1, dma = 1, kernels = 1, collectives = 1, grouped = 1, attention = 1;

    double of(const Task& task) const {
        if (const auto* shape = std::get_if<GemmShape>(&task.work)) return shape->groups > 1 ? grouped : gemm;
        if (const auto* kernel = std::get_if<MemoryBoundWork>(&task.work))
            return kernel->attention.sequences > 0 ? attention : 1;
        if (task.kind() == TaskKind::collective) return collectives;
        if (task.kind() != TaskKind::copy) return 1;
        return task.by_dma() ? dma : kernels;
    }
};

double squared(const std::optional<double>& error) {
    return error ? *error * *error : 0;
}

}  // namespace

Confidence confidence_of(const Scenario& scenario, const TaskGraph& graph, const Experiment& experiment,
                         Seconds makespan, bool overlapped) {
    const MachineEvidence& known = scenario.machine->evidence;
    const Kinds kinds(graph, scenario.machine->calibration);
    Confidence confidence;
    double of_gemms = 0, of_contention = 0;  // squares
    for (const DType dtype : kinds.gemms) {
        Evidence evidence = known.gemm.contains(dtype) ? known.gemm.at(dtype) : Evidence();
        if (kinds.all_gemms_measured) evidence = {.basis = Basis::measured};
        of_gemms = std::max(of_gemms, squared(evidence.error));
        confidence.parts.push_back({"GEMM " + name_of(dtype), evidence});
    }
    std::vector<Lengthened> longer;
    const auto add_kernels = [&](const std::set<std::string>& names, const std::string& name, Basis otherwise,
                                 double Lengthened::*factor) {
        double largest = 0;
        for (const std::string& key : names) {
            const auto found = known.kernels.find(key);
            const Evidence evidence =
                found == known.kernels.end() ? Evidence{.basis = otherwise} : found->second;
            confidence.parts.push_back({name + " " + key.substr(key.find('/') + 1), evidence});
            largest = std::max(largest, evidence.error.value_or(0));
        }
        if (largest > 0) longer.emplace_back().*factor += largest;
    };
    add_kernels(kinds.grouped, "grouped GEMM", Basis::derived, &Lengthened::grouped);
    add_kernels(kinds.attention, "attention", Basis::estimate, &Lengthened::attention);
    const auto add = [&](const char* name, const Evidence& evidence, double Lengthened::*factor,
                         const char* contention, const Evidence& beside) {
        confidence.parts.push_back({name, evidence});
        if (evidence.error) longer.emplace_back().*factor += *evidence.error;
        if (!overlapped || kinds.gemms.empty()) return;
        confidence.parts.push_back({contention, beside});
        of_contention = std::max(of_contention, squared(beside.error));
    };
    if (kinds.largest_dma > Bytes())
        add("DMA copies", kinds.largest_dma.si() < small_copy ? known.small_dma : known.dma, &Lengthened::dma,
            "contention with DMA", known.beside_dma);
    if (kinds.kernels)
        add("copy kernels", known.copy_kernels, &Lengthened::kernels, "contention with copy kernels",
            known.beside_copy_kernels);
    if (kinds.collectives)
        add("library collectives", known.collectives, &Lengthened::collectives, "contention with the library",
            known.beside_library);
    // Measured schedules are those that `replay` runs once, all enqueued beforehand by one thread: GEMMs and copies,
    // without own kernels, barriers and library collectives.
    const bool own_kernel = scenario.schedule->own_kernel ||
                            std::any_of(scenario.pairs.begin(), scenario.pairs.end(),
                                        [](const PairChoice& pair) { return pair.schedule->own_kernel; });
    const bool is_of_these = !own_kernel && !kinds.collectives && !kinds.barriers &&
                             scenario.what_if.empty() && scenario.host == nullptr &&
                             scenario.repeat == Repeat::once;
    if (known.schedules && is_of_these) {
        confidence.measured = known.schedules;
        confidence.error_of_known = known.schedules->mean;
        return confidence;
    }
    // Contention makes GEMMs longer.
    if (of_gemms + of_contention > 0) longer.emplace_back().gemm += std::sqrt(of_gemms + of_contention);
    if (longer.empty() || makespan == Seconds()) return confidence;
    double sum = 0;
    for (const Lengthened& factors : longer) {
        const Seconds changed =
            experiment.makespan(effects_of(scenario), [&](const Task& task) { return factors.of(task); });
        sum += std::pow(changed / makespan - 1, 2);
    }
    confidence.error_of_known = std::sqrt(sum);
    return confidence;
}

}  // namespace overlap
