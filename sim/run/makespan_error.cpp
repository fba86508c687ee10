#include "sim/run/makespan_error.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/library_kernel.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/steady.hpp"

namespace overlap {
namespace {

constexpr double small_copy = 1 << 20;  // bytes; errors of DMA copies are known above and below it apart

/// Kinds of priced work in a graph.
struct Kinds {
    std::set<DType> gemms;
    /// Of grouped GEMMs and attention, as MachineEvidence::kernels names them
    std::set<std::string> grouped, attention;
    std::set<std::string> collectives;  ///< as key_of_collective names them
    std::set<std::string> libraries;    ///< of these collectives
    bool all_gemms_measured = true;
    bool kernels = false, host_calls = false;
    Bytes largest_dma;

    Kinds(const TaskGraph& graph, const Machine& machine) {
        for (TaskId id = 0; id < graph.size(); ++id) {
            const Work& work = graph[id].work;
            if (const auto* gemm = std::get_if<GemmShape>(&work); gemm != nullptr && gemm->groups > 1) {
                grouped.insert("moe/" + kernel_format(gemm->dtype));
            } else if (const auto* kernel = std::get_if<MemoryBoundWork>(&work)) {
                const AttentionCall& call = kernel->attention;
                if (call.sequences > 0)
                    attention.insert(kernel_groups[call.kind == AttentionKind::decode ? 1 : 0] + "/" +
                                     attention_fit(machine.calibration.kernels, call));
            } else if (gemm != nullptr) {
                gemms.insert(gemm->dtype);
                all_gemms_measured = all_gemms_measured && machine.calibration.gemm_times.contains(*gemm);
            } else if (const auto* copy = std::get_if<CopyWork>(&work)) {
                if (copy->agent == Agent::dma) largest_dma = std::max(largest_dma, copy->bytes);
                kernels = kernels || copy->agent == Agent::cu;
            } else if (const auto* collective = std::get_if<CollectiveKernelWork>(&work)) {
                add(*collective, graph[id].gpu, machine);
            } else {
                host_calls = host_calls || graph[id].kind() == TaskKind::host;
            }
        }
    }

private:
    void add(const CollectiveKernelWork& work, int gpu, const Machine& machine) {
        const DeviceSpec::Library& library = machine.topology.device().collective_library;
        collectives.insert(key_of_collective(work, gpu, machine));
        const auto kernel = library.all_reduces.find(work.kernel);
        libraries.insert(kernel == library.all_reduces.end() ? library.name : kernel->second.name);
    }
};

/// Factors on the times of each kind of work.
struct Lengthened {
    double gemm = 1, dma = 1, kernels = 1, collectives = 1, grouped = 1, attention = 1, host = 1;

    double of(const Task& task) const {
        if (const auto* shape = std::get_if<GemmShape>(&task.work)) return shape->groups > 1 ? grouped : gemm;
        if (const auto* kernel = std::get_if<MemoryBoundWork>(&task.work))
            return kernel->attention.sequences > 0 ? attention : 1;
        if (task.kind() == TaskKind::collective) return collectives;
        if (task.kind() == TaskKind::host) return host;
        if (task.kind() != TaskKind::copy) return 1;
        return task.by_dma() ? dma : kernels;
    }
};

/// One kind of price, and what its error makes longer.
struct Priced {
    PricedPart part;
    double Lengthened::*factor;
    bool contention = false;
};

/// The weakest basis and the largest error of lines and tables that a graph uses.
Evidence weakest(const std::set<std::string>& keys, const std::map<std::string, Evidence>& known) {
    Evidence all{.basis = Basis::measured, .error = 0};
    for (const std::string& key : keys) {
        const auto found = known.find(key);
        const Evidence one = found == known.end() ? Evidence() : found->second;
        all.basis = std::max(all.basis, one.basis);
        all.error = all.error && one.error ? std::optional(std::max(*all.error, *one.error)) : std::nullopt;
    }
    return all;
}

/// What is known about the prices of a graph's work. `overlapped`: see confidence_of.
std::vector<Priced> prices_in(const TaskGraph& graph, const Machine& machine,
                              const std::vector<std::string>& models, bool overlapped, const Host* host) {
    const MachineEvidence& known = machine.evidence;
    const Kinds kinds(graph, machine);
    std::vector<Priced> all;
    const bool roofline = contains(models, "gemm_roofline");
    const bool timed = kinds.all_gemms_measured && !roofline && !contains(models, "gemm_tiled");
    for (const DType dtype : kinds.gemms) {
        Evidence evidence = known.gemm.contains(dtype) ? known.gemm.at(dtype) : Evidence();
        // A fit that counts as derived was made on another machine.
        if (timed && !(evidence.basis == Basis::derived && evidence.rows > 0))
            evidence = {.basis = Basis::measured};
        if (roofline) evidence = {.basis = Basis::derived};
        all.push_back(
            {{"GEMM " + name_of(dtype), evidence, roofline ? "" : machine.calibration.gemm_library_of(dtype)},
             &Lengthened::gemm});
    }
    const auto add_kernels = [&](const std::set<std::string>& names, const std::string& name, Basis otherwise,
                                 double Lengthened::*factor) {
        for (const std::string& key : names) {
            const auto found = known.kernels.find(key);
            all.push_back({{name + " " + key.substr(key.find('/') + 1),
                            found == known.kernels.end() ? Evidence{.basis = otherwise} : found->second},
                           factor});
        }
    };
    add_kernels(kinds.grouped, "grouped GEMM", Basis::derived, &Lengthened::grouped);
    add_kernels(kinds.attention, "attention", Basis::estimate, &Lengthened::attention);
    const auto beside = [&](const char* name, const Evidence& evidence, double Lengthened::*factor) {
        if (overlapped && !kinds.gemms.empty()) all.push_back({{name, evidence}, factor, true});
    };
    if (kinds.largest_dma > Bytes()) {
        const bool small = kinds.largest_dma.si() < small_copy;
        all.push_back({{"DMA copies", small ? known.small_dma : known.dma}, &Lengthened::dma});
        beside("contention with DMA", known.beside_dma, &Lengthened::gemm);
    }
    if (kinds.kernels) {
        all.push_back({{"copy kernels", known.copy_kernels}, &Lengthened::kernels});
        beside("contention with copy kernels", known.beside_copy_kernels, &Lengthened::gemm);
    }
    if (!kinds.collectives.empty()) {
        const std::vector<std::string> names(kinds.libraries.begin(), kinds.libraries.end());
        all.push_back(
            {{"library collectives", weakest(kinds.collectives, known.collectives), joined(names, " and ")},
             &Lengthened::collectives});
        beside("contention with the library", known.beside_library, &Lengthened::gemm);
        if (known.collective_beside_gemms.error)
            beside("library beside GEMMs", known.collective_beside_gemms, &Lengthened::collectives);
    }
    if (kinds.host_calls && host != nullptr)
        all.push_back({{"host calls of " + host->name, evidence_of_host(host->file)}, &Lengthened::host});
    return all;
}

/// Kernels that stream memory, fused attention among them.
bool has_streaming(const TaskGraph& graph) {
    for (TaskId id = 0; id < graph.size(); ++id)
        if (graph[id].kind() == TaskKind::memory_bound) return true;
    return false;
}

/// Nothing but GEMMs in bf16, kernels that stream memory, and attention as dense models have it.
bool is_dense_layer(const TaskGraph& graph) {
    bool attends = false;
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Work& work = graph[id].work;
        if (const auto* gemm = std::get_if<GemmShape>(&work)) {
            if (gemm->groups > 1 || gemm->dtype != DType::bf16) return false;
            continue;
        }
        const auto* kernel = std::get_if<MemoryBoundWork>(&work);
        if (kernel == nullptr) return false;
        const AttentionCall& call = kernel->attention;
        if (call.sequences == 0) continue;
        attends = true;
        if (call.dtype != DType::bf16 || call.kv_dtype != DType::bf16 || call.value_dim != 0) return false;
    }
    return attends;
}

bool has_barriers(const TaskGraph& graph) {
    for (TaskId id = 0; id < graph.size(); ++id)
        if (graph[id].continues) return true;
    return false;
}

/// Errors of work and of its contention, as squares.
double error_of(const std::vector<Priced>& prices, double Lengthened::*factor) {
    double own = 0, contention = 0;
    for (const Priced& one : prices)
        if (one.factor == factor && one.part.evidence.error)
            (one.contention ? contention : own) =
                std::max(one.contention ? contention : own, std::pow(*one.part.evidence.error, 2));
    return std::sqrt(own + contention);
}

}  // namespace

std::vector<PricedPart> priced_parts(const TaskGraph& graph, const Machine& machine,
                                     const std::vector<std::string>& models, bool overlapped,
                                     const Host* host) {
    return mapped(prices_in(graph, machine, models, overlapped, host), &Priced::part);
}

Confidence confidence_of(const Scenario& scenario, const TaskGraph& graph, const Experiment& experiment,
                         const Makespans::value_type& run, bool overlapped) {
    const auto [makespan, seed] = run;
    const Machine& machine = *scenario.machine;
    const std::vector<Priced> prices =
        prices_in(graph, machine, scenario.cost_models, overlapped, scenario.host.get());
    Confidence confidence;
    confidence.parts = mapped(prices, &Priced::part);
    // Measured schedules are those that `replay` runs once, all enqueued beforehand by one thread: GEMMs and copies,
    // without own kernels, barriers and library collectives. Measured layers are dense ones on one GPU.
    const bool other_work = has_streaming(graph) || std::ranges::any_of(prices, [](const Priced& one) {
                                return one.factor == &Lengthened::collectives;
                            });
    const bool is_schedule =
        !scenario.needs_own_kernel() && !other_work && !has_barriers(graph) && scenario.repeat == Repeat::once;
    const bool is_layer = machine.topology.gpus() == 1 && is_dense_layer(graph);
    const auto& known = is_layer ? machine.evidence.layers : machine.evidence.schedules;
    if (known && (is_layer || is_schedule) && scenario.enqueued_by_one()) {
        confidence.measured = known;
        confidence.error_of_known = known->mean;
        return confidence;
    }
    double sum = 0;
    bool any = false;
    for (const auto factor :
         {&Lengthened::gemm, &Lengthened::dma, &Lengthened::kernels, &Lengthened::collectives,
          &Lengthened::grouped, &Lengthened::attention, &Lengthened::host}) {
        const double error = error_of(prices, factor);
        if (error == 0 || makespan == Seconds()) continue;
        Lengthened factors;
        factors.*factor += error;
        const Seconds changed = experiment.makespan(effects_of(scenario), seed,
                                                    [&](const Task& task) { return factors.of(task); });
        sum += std::pow(
            period_of(scenario, graph, changed, factors.host) / period_of(scenario, graph, makespan) - 1, 2);
        any = true;
    }
    if (any) confidence.error_of_known = std::sqrt(sum);
    return confidence;
}

}  // namespace overlap
