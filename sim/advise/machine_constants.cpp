#include "sim/advise/machine_constants.hpp"

#include <cassert>
#include <cmath>

#include "models/gemm_model.hpp"
#include "sim/run.hpp"

namespace overlap {
namespace {

// Large enough for rates and for full compute units on every device there is; 1 GiB of bf16.
constexpr std::int64_t large_rows = 65'536, large_columns = 8'192;

class Benchmarks {
public:
    Benchmarks(const std::string& topology, const ConfigFolder& folder)
        : topology_(topology), folder_(folder) {
        const Scenario any = scenario("serial", Json::object(), gathered(large_bytes));
        gpus_ = any.machine->topology.gpus();
    }

    /// An all-gather of the large operand, alone: bytes/s that a GPU receives.
    double rate(const Json& params) const {
        return received() / time("serial", params, gathered(large_bytes));
    }
    /// One of an operand of `gpus` cache lines.
    double latency(const Json& params) const { return time("serial", params, gathered(128.0 * gpus_)); }
    /// Rate of a schedule whose GEMM has one column, so that its time is that of the transfers.
    double rate_of_schedule(const std::string& schedule, const Json& params) const {
        const Json gemm{{"m", large_rows}, {"n", 1}, {"k", large_columns}, {"dtype", "bf16"}};
        return received() / time(schedule, params, {{"collective", "all_gather"}, {"gemm", gemm}});
    }
    /// Rate of the transfers of pieces that a GEMM with almost no arithmetic produces.
    double sent_rate(const Json& params) const {
        const Json gemm{{"m", large_rows}, {"n", large_columns}, {"k", 32}, {"dtype", "bf16"}};
        Json pieces = params;
        pieces["chunks"] = 8;
        return received() / time("hetero_fused_2d", pieces,
                                 {{"collective", "all_to_all"}, {"order", "gemm_first"}, {"gemm", gemm}});
    }
    /// Compute units that kernels hold while they copy to all peers.
    double copy_units() const {
        const Scenario by_kernels = scenario("serial", {{"agent", "cu"}}, gathered(large_bytes));
        const DeviceSpec& device = by_kernels.machine->topology.device();
        return by_kernels.params.transfers.cus * (gpus_ - 1) * device.copy_kernel.units_per_block;
    }

private:
    static constexpr double large_bytes = 2.0 * large_rows * large_columns;

    static Json gathered(double bytes) {
        Json op{{"name", "gather"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", bytes}};
        return {{"operators", Json::array({op})}};
    }
    double received() const { return large_bytes * (gpus_ - 1) / gpus_; }
    Scenario scenario(const std::string& schedule, const Json& params, const Json& workload) const {
        RunConfig config;
        config.origin = "machine constants";
        config.topology = topology_;
        config.schedule = schedule;
        config.params = params;
        config.workload = workload;
        return resolve(config, folder_);
    }
    double time(const std::string& schedule, const Json& params, const Json& workload) const {
        return predict(scenario(schedule, params, workload)).makespan.si();
    }

    const std::string& topology_;
    const ConfigFolder& folder_;
    int gpus_ = 1;
};

}  // namespace

MachineConstants::MachineConstants(const std::string& topology, const ConfigFolder& folder)
    : calibration_(folder.calibration(folder.topology(topology).device().name)) {
    const Topology machine = folder.topology(topology);
    const DeviceSpec& device = machine.device();
    const Benchmarks alone(topology, folder);
    const Json pull{{"agent", "dma"}, {"transfer", "pull"}}, push{{"agent", "dma"}, {"transfer", "push"}},
        kernels{{"agent", "cu"}};
    common_.gpus = machine.gpus();
    common_.compute_units = device.compute_units;
    common_.copy_units = alone.copy_units();
    common_.hbm_rate = device.hbm.si();
    common_.launch = device.launch.kernel.si();
    common_.dependency = device.launch.dependency.si();
    common_.strided_run = device.dma.strided_run.si();
    common_.dma_pull_rate = alone.rate(pull);
    common_.dma_push_rate = alone.rate(push);
    common_.dma_pull_sent_rate = alone.sent_rate(pull);
    common_.dma_push_sent_rate = alone.sent_rate(push);
    common_.kernel_rate = alone.rate(kernels);
    common_.dma_latency = std::min(alone.latency(pull), alone.latency(push));
    common_.kernel_latency = alone.latency(kernels);
    const double peers = std::max(machine.gpus() - 1, 1), turns = std::ceil(peers / device.dma.peer_engines);
    common_.dma_engines = device.dma.engine.si() * std::min<double>(peers, device.dma.peer_engines);
    common_.engines_shared = turns > 1;
    common_.dma_step = turns * (device.dma.start + device.dma.switch_over).si();
    common_.kernel_step = device.copy_kernel.launch.si();
    const Seconds hop = machine.gpus() > 1 ? machine.route(0, 1).latency : Seconds();
    common_.dma_copy =
        (device.dma.command + device.dma.schedule + device.dma.start + device.dma.completion + hop).si();
    common_.kernel_copy = (device.copy_kernel.launch + device.copy_kernel.completion + hop).si();
    const DeviceSpec::Interference& lost = device.interference;
    common_.beside_dma = std::max(lost.compute_lost_to_dma, lost.gemm_slowed_beside_dma);
    common_.beside_kernels =
        1 - (1 - std::max(lost.compute_lost_to_copy_kernels, lost.gemm_slowed_beside_copy_kernels)) *
                (1 - common_.copy_units / common_.compute_units);
    common_.kernels_wait = device.launch.residency != Residency::shared;
    Json around = push;
    around["algorithm"] = "ring";
    common_.ring_rate = alone.rate(around);
    common_.one_peer_rate = alone.rate_of_schedule("shard_p2p", push);
}

overlap_advice::Machine MachineConstants::of(DType dtype) const {
    const GemmParameters& gemm = calibration_.gemm_for(dtype);
    overlap_advice::Machine machine = common_;
    machine.gemm_rate = gemm.peak_rate.si();
    machine.gemm_fixed = gemm.launch.si();
    machine.tile_fixed = gemm.tile_fixed.si();
    machine.tile_store = gemm.tile_epilogue.si();
    machine.last_wave = gemm.tail_floor;
    machine.only_wave = gemm.partial_floor;
    machine.gemm_exponent = gemm.overlap_exponent;
    return machine;
}

std::string to_json_text(const overlap_advice::Machine& machine) {
    const nlohmann::ordered_json json{{"gpus", machine.gpus},
                                      {"compute_units", machine.compute_units},
                                      {"copy_units", machine.copy_units},
                                      {"hbm_rate", machine.hbm_rate},
                                      {"launch", machine.launch},
                                      {"dependency", machine.dependency},
                                      {"dma_engines", machine.dma_engines},
                                      {"strided_run", machine.strided_run},
                                      {"gemm_rate", machine.gemm_rate},
                                      {"gemm_fixed", machine.gemm_fixed},
                                      {"tile_fixed", machine.tile_fixed},
                                      {"tile_store", machine.tile_store},
                                      {"last_wave", machine.last_wave},
                                      {"only_wave", machine.only_wave},
                                      {"gemm_exponent", machine.gemm_exponent},
                                      {"dma_pull_rate", machine.dma_pull_rate},
                                      {"dma_push_rate", machine.dma_push_rate},
                                      {"kernel_rate", machine.kernel_rate},
                                      {"dma_pull_sent_rate", machine.dma_pull_sent_rate},
                                      {"dma_push_sent_rate", machine.dma_push_sent_rate},
                                      {"dma_latency", machine.dma_latency},
                                      {"kernel_latency", machine.kernel_latency},
                                      {"dma_step", machine.dma_step},
                                      {"kernel_step", machine.kernel_step},
                                      {"dma_copy", machine.dma_copy},
                                      {"kernel_copy", machine.kernel_copy},
                                      {"ring_rate", machine.ring_rate},
                                      {"one_peer_rate", machine.one_peer_rate},
                                      {"beside_dma", machine.beside_dma},
                                      {"beside_kernels", machine.beside_kernels},
                                      {"engines_shared", machine.engines_shared},
                                      {"kernels_wait", machine.kernels_wait}};
    return json.dump(2);
}

overlap_advice::Operator heuristic_operator(const Pair& pair) {
    assert(pair.order != Order::independent && !pair.gathers_results());
    overlap_advice::Operator op{};
    op.m = static_cast<double>(pair.gemm.m);
    op.n = static_cast<double>(pair.gemm.n);
    op.k = static_cast<double>(pair.gemm.k);
    op.operand_size = element_size(pair.gemm.dtype).si();
    op.output_size = element_size(output_type(pair.gemm.dtype)).si();
    op.gemm_first = pair.order == Order::gemm_first;
    op.all_to_all = pair.collective == CollectiveKind::all_to_all;
    op.all_reduce = pair.collective == CollectiveKind::all_reduce;
    op.tokens_in_k = pair.shard_dim == ShardDim::k;
    return op;
}

}  // namespace overlap
