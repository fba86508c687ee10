#include "sim/confidence/makespan_error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "models/library_kernel.hpp"
#include "sim/confidence/evidence.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

constexpr double small_copy = 1 << 20;      // bytes; errors of DMA copies are known above and below it apart
constexpr double longest_simulated = 9000;  // s; simulated time ends at 2^63 fs
constexpr double small_collective = 32 << 20;  // bytes; latencies of libraries count below it

/// Kinds of priced work in a graph.
struct Kinds {
    std::set<DType> gemms;
    /// Grouped GEMMs, attention and DeepEP's kernels, as MachineEvidence::kernels names them
    std::set<std::string> grouped, attention, exchanges;
    std::set<std::string> collectives;  ///< as key_of_collective names them
    std::set<std::string> libraries;    ///< of these collectives
    bool all_gemms_measured = true;
    bool kernels = false, host_calls = false;
    Bytes largest_dma, largest_collective;

    Kinds(const TaskGraph& graph, const Machine& machine) {
        for (TaskId id = 0; id < graph.size(); ++id) {
            const Work& work = graph[id].work;
            if (const auto* gemm = std::get_if<GemmShape>(&work); gemm != nullptr && gemm->groups > 1) {
                grouped.insert(kernel_groups[2] + "/" +
                               grouped_fit(machine.calibration.kernels, gemm->dtype));
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
        if (work.kernel == CollectiveKernel::deepep) {
            exchanges.insert(kernel_groups[3] + "/" + exchange_kernel(work.exchange));
            return;
        }
        const DeviceLibrary& library = *machine.topology.device().collective_library;
        collectives.insert(key_of_collective(work, gpu, machine));
        largest_collective = std::max(largest_collective, work.operand);
        const auto kernel = library.all_reduces.find(work.kernel);
        libraries.insert(kernel == library.all_reduces.end() ? library.name : kernel->second.name);
    }
};

const std::string small_collectives = "small collectives";
// Keys of Accuracy::widths, beside kinds of prices.
const std::string another_machine = "measured on another machine", any_run = "any run",
                  another_program = "another program", own_kernels = "own kernels",
                  several_nodes = "several nodes";

/// One kind of price, and what its error makes longer.
struct Priced {
    PricedPart part;
    double Lengthened::*factor;
    std::string kind;  ///< also its width of Accuracy, where no machine with such a GPU was measured
    bool contention = false;
    std::string width = kind;     ///< of Accuracy, that `widened` is
    double own = 0, widened = 0;  ///< both make the error to expect, as squares
};

double width_of(const Accuracy& accuracy, const std::string& name) {
    return accuracy.widths.at(name);
}

/// Whether all is enqueued before the GPUs begin, by one thread.
bool enqueued_beforehand(const Host* host) {
    return host == nullptr || (host->threads == HostThreads::one && !host->calls_take_time());
}

/// Whether this project has measured programs with such a host on such GPUs.
bool is_measured_program(const Host* host, const MachineEvidence& known) {
    if (host != nullptr && evidence_of_host(host->file).error) return true;
    return enqueued_beforehand(host) && (known.dma.error || known.dma.elsewhere);
}

/// Sets the errors to expect. `ours`: is_measured_program of the run.
void expect(std::vector<Priced>& prices, const Accuracy* accuracy, bool ours) {
    for (Priced& one : prices) {
        const Evidence& evidence = one.part.evidence;
        one.own = evidence.error.value_or(evidence.elsewhere.value_or(0));
        // Latencies of small collectives and kernels of attention differ by version and caller of the library.
        const bool always = !ours && (one.factor == &Lengthened::attention || one.kind == small_collectives);
        if (accuracy != nullptr && (always || (!evidence.error && evidence.basis != Basis::measured))) {
            if (evidence.elsewhere && !always) one.width = another_machine;
            one.widened = width_of(*accuracy, one.width);
        }
        if (evidence.error || one.widened > 0) one.part.expected = std::hypot(one.own, one.widened);
    }
}

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

std::vector<Priced> prices_in(const PricedRun& run) {
    const Machine& machine = run.machine;
    const MachineEvidence& known = evidence_of(machine);
    const Kinds kinds(run.graph, machine);
    std::vector<Priced> all;
    const bool roofline = contains(run.models, "gemm_roofline");
    const bool timed = kinds.all_gemms_measured && !roofline && !contains(run.models, "gemm_tiled");
    for (const DType dtype : kinds.gemms) {
        Evidence evidence = known.gemm.contains(dtype) ? known.gemm.at(dtype) : Evidence();
        // A fit that counts as derived was made on another machine.
        if (timed && !(evidence.basis == Basis::derived && evidence.rows > 0))
            evidence = {.basis = Basis::measured};
        if (roofline) evidence = {.basis = Basis::derived};
        all.push_back(
            {{"GEMM " + name_of(dtype), evidence, roofline ? "" : machine.calibration.gemm_library_of(dtype)},
             &Lengthened::gemm,
             "GEMMs"});
    }
    const auto add_kernels = [&](const std::set<std::string>& names, const std::string& name, Basis otherwise,
                                 double Lengthened::*factor, const std::string& width) {
        for (const std::string& key : names) {
            const auto found = known.kernels.find(key);
            all.push_back({{name + " " + key.substr(key.find('/') + 1),
                            found == known.kernels.end() ? Evidence{.basis = otherwise} : found->second,
                            machine.calibration.kernels.library_of(key)},
                           factor,
                           width});
        }
    };
    add_kernels(kinds.grouped, "grouped GEMM", Basis::derived, &Lengthened::grouped, "grouped GEMMs");
    add_kernels(kinds.attention, "attention", Basis::estimate, &Lengthened::attention, "attention");
    add_kernels(kinds.exchanges, "all-to-all", Basis::estimate, &Lengthened::collectives,
                "large collectives");
    const auto beside = [&](const char* name, const Evidence& evidence, double Lengthened::*factor) {
        if (run.overlapped && !kinds.gemms.empty())
            all.push_back({{name, evidence}, factor, "contention", true});
    };
    if (kinds.largest_dma > Bytes()) {
        const bool small = kinds.largest_dma.si() < small_copy;
        all.push_back({{"DMA copies", small ? known.small_dma : known.dma}, &Lengthened::dma, "DMA copies"});
        beside("contention with DMA", known.beside_dma, &Lengthened::gemm);
    }
    if (kinds.kernels) {
        all.push_back({{"copy kernels", known.copy_kernels}, &Lengthened::kernels, "copy kernels"});
        beside("contention with copy kernels", known.beside_copy_kernels, &Lengthened::gemm);
    }
    if (!kinds.collectives.empty()) {
        const std::vector<std::string> names(kinds.libraries.begin(), kinds.libraries.end());
        all.push_back(
            {{"library collectives", weakest(kinds.collectives, known.collectives), joined(names, " and ")},
             &Lengthened::collectives,
             kinds.largest_collective.si() < small_collective ? small_collectives : "large collectives"});
        beside("contention with the library", known.beside_library, &Lengthened::gemm);
        if (known.collective_beside_gemms.error)
            beside("library beside GEMMs", known.collective_beside_gemms, &Lengthened::collectives);
    }
    if (kinds.host_calls && run.host != nullptr)
        all.push_back({{"host calls of " + run.host->name, evidence_of_host(run.host->file)},
                       &Lengthened::host,
                       "host calls"});
    expect(all, known.accuracy.get(), is_measured_program(run.host, known));
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

/// The weakest price of work and that of its contention; null without one.
std::vector<const Priced*> weakest_of(const std::vector<Priced>& prices, double Lengthened::*factor) {
    std::vector<const Priced*> weakest;
    for (const bool contention : {false, true}) {
        const Priced* found = nullptr;
        for (const Priced& one : prices)
            if (one.factor == factor && one.contention == contention &&
                (found == nullptr || one.part.expected.value_or(0) > found->part.expected.value_or(0)))
                found = &one;
        if (found != nullptr && found->part.expected.value_or(0) > 0) weakest.push_back(found);
    }
    return weakest;
}

double error_of(const std::vector<const Priced*>& weakest) {
    double error = 0;
    for (const Priced* one : weakest) error = std::hypot(error, *one->part.expected);
    return error;
}

constexpr std::array all_factors{&Lengthened::gemm,        &Lengthened::dma,     &Lengthened::kernels,
                                 &Lengthened::collectives, &Lengthened::grouped, &Lengthened::attention,
                                 &Lengthened::host};

void add_cause(Confidence& confidence, const std::string& name, double share) {
    if (share > 0) confidence.causes[name] = std::hypot(confidence.causes[name], share);
}

std::vector<MissedFigure> missed_by(const std::string& kind, const Machine& machine) {
    std::vector<MissedFigure> missed;
    if (const auto& accuracy = evidence_of(machine).accuracy)
        for (const MissedFigure& figure : accuracy->missed)
            if (figure.kind == kind && figure.device == machine.topology.device().name)
                missed.push_back(figure);
    return missed;
}

/// "library collectives beside GEMMs": the works whose overlap, or whose sum, makes the makespan.
std::string kind_of_run(const std::vector<Priced>& prices, const PricedRun& run) {
    std::vector<std::string> computation, communication;
    for (const Priced& one : prices) {
        if (one.contention || one.factor == &Lengthened::host) continue;
        const bool computes = one.factor == &Lengthened::gemm || one.factor == &Lengthened::grouped ||
                              one.factor == &Lengthened::attention;
        std::vector<std::string>& list = computes ? computation : communication;
        if (!contains(list, one.kind)) list.push_back(one.kind);
    }
    const std::string moved = run.own_kernel ? own_kernels : joined(communication, " and ");
    const std::string computed = joined(computation, " and ");
    if (moved.empty() || computed.empty()) return moved + computed;
    return moved + (run.overlapped || run.own_kernel ? " beside " : " and ") + computed;
}

}  // namespace

double Lengthened::of(const Task& task) const {
    if (const auto* shape = std::get_if<GemmShape>(&task.work)) return shape->groups > 1 ? grouped : gemm;
    if (const auto* kernel = std::get_if<MemoryBoundWork>(&task.work))
        return kernel->attention.sequences > 0 ? attention : 1;
    if (task.kind() == TaskKind::collective) return collectives;
    if (task.kind() == TaskKind::host) return host;
    if (task.kind() != TaskKind::copy) return 1;
    return task.by_dma() ? dma : kernels;
}

Lengthened expected_errors(const PricedRun& run) {
    const std::vector<Priced> prices = prices_in(run);
    Lengthened errors;
    for (const auto factor : all_factors) errors.*factor = error_of(weakest_of(prices, factor));
    return errors;
}

std::vector<PricedPart> priced_parts(const PricedRun& run) {
    return mapped(prices_in(run), &Priced::part);
}

Confidence confidence_of(const PricedRun& run, Seconds period,
                         const std::function<Seconds(const Lengthened&)>& with) {
    const Machine& machine = run.machine;
    const MachineEvidence& evidence = evidence_of(machine);
    const std::vector<Priced> prices = prices_in(run);
    Confidence confidence;
    confidence.parts = mapped(prices, &Priced::part);
    confidence.kind = kind_of_run(prices, run);
    confidence.missed = missed_by(confidence.kind, machine);
    // Measured schedules are those that `replay` runs once, all enqueued beforehand by one thread: GEMMs and copies,
    // without own kernels, barriers and library collectives. Measured layers are dense ones on one GPU.
    const bool other_work = has_streaming(run.graph) || std::ranges::any_of(prices, [](const Priced& one) {
                                return one.factor == &Lengthened::collectives;
                            });
    const bool is_schedule = !run.own_kernel && !other_work && !has_barriers(run.graph) && run.once;
    const bool is_layer = machine.topology.gpus() == 1 && is_dense_layer(run.graph);
    const auto& known = is_layer ? evidence.layers : evidence.schedules;
    if (known && (is_layer || is_schedule) && enqueued_beforehand(run.host)) {
        confidence.measured = known;
        return confidence;
    }
    if (period == Seconds()) return confidence;
    const Accuracy* accuracy = evidence.accuracy.get();
    if (accuracy != nullptr) confidence.p90_over_mean = accuracy->p90_over_mean;
    for (const auto factor : all_factors) {
        const std::vector<const Priced*> weakest = weakest_of(prices, factor);
        if (weakest.empty()) continue;
        const double error = error_of(weakest);
        // Longer, or shorter where longer work would outlast simulated time.
        const bool ends = period.si() * (1 + error) < longest_simulated;
        Lengthened factors;
        factors.*factor = ends ? 1 + error : 1 / (1 + error);
        const double share = std::abs(with(factors) / period - 1) / error;
        for (const Priced* one : weakest) {
            add_cause(confidence, one->part.name, one->own * share);
            add_cause(confidence, one->width, one->widened * share);
        }
    }
    if (accuracy == nullptr) return confidence;
    const std::string& program = is_measured_program(run.host, evidence) ? any_run : another_program;
    add_cause(confidence, program, width_of(*accuracy, program));
    if (run.own_kernel) add_cause(confidence, own_kernels, width_of(*accuracy, own_kernels));
    if (machine.topology.nodes() > 1)
        add_cause(confidence, several_nodes, width_of(*accuracy, several_nodes));
    return confidence;
}

}  // namespace overlap
