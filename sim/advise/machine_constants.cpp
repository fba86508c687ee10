#include "sim/advise/machine_constants.hpp"

#include <cassert>
#include <cmath>

#include "models/gemm_model.hpp"
#include "models/gpu_spread.hpp"
#include "models/streaming.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

namespace overlap {
namespace {

// 1 GiB of bf16: large enough for full rates and full compute units on every device.
constexpr std::int64_t large_rows = 65'536, large_columns = 8'192;

class Benchmarks {
public:
    Benchmarks(const std::string& topology, const ConfigFolder& folder)
        : topology_(topology), folder_(folder) {
        const Scenario any = scenario("serial", Json::object(), gathered(large_bytes));
        gpus_ = any.machine->topology.gpus();
    }

    /// All-gather of the large operand alone: bytes/s that a GPU receives.
    double rate(const Json& params) const {
        return received() / time("serial", params, gathered(large_bytes));
    }
    /// Time of an all-gather of `gpus` cache lines.
    double latency(const Json& params) const { return time("serial", params, gathered(128.0 * gpus_)); }
    /// Rate of a schedule's transfers, from a run whose GEMM has one column and so takes almost no time.
    double rate_of_schedule(const std::string& schedule, const Json& params) const {
        const Json gemm{{"m", large_rows}, {"n", 1}, {"k", large_columns}, {"dtype", "bf16"}};
        return received() / time(schedule, params, {{"collective", "all_gather"}, {"gemm", gemm}});
    }
    /// Rate of the transfers of pieces that a GEMM with almost no arithmetic produces.
    double sent_rate(const std::string& schedule, const Json& params) const {
        const Json gemm{{"m", large_rows}, {"n", large_columns}, {"k", 32}, {"dtype", "bf16"}};
        Json pieces = params;
        pieces["chunks"] = 8;
        return received() / time(schedule, pieces,
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
    const DeviceSpec::Dma& dma = device.dma;
    const DeviceSpec::CopyKernel& kernel = device.copy_kernel;
    common_.gpus = machine.gpus();
    common_.compute_units = device.compute_units;
    common_.copy_units = alone.copy_units();
    common_.stream_units = streamed(LocalCopyWork{Bytes(1e9), Bytes(1e9)}, device).units;
    common_.hbm_rate = device.hbm.si();
    common_.launch = device.launch.kernel.si();
    common_.stream_start = device.stream.start.si();
    common_.dependency = device.launch.dependency.si();
    common_.event = device.launch.event.si();
    common_.flag = device.launch.flag.si();
    common_.slowest = slowest_of(machine.gpus(), device.variation.gpu_speed) - 1;
    common_.dma_pull_rate = alone.rate(pull);
    common_.dma_push_rate = alone.rate(push);
    common_.kernel_rate = alone.rate(kernels);
    common_.dma_pull_sent_rate = alone.sent_rate("hetero_fused_1d", pull);
    common_.dma_push_sent_rate = alone.sent_rate("hetero_fused_1d", push);
    common_.dma_pull_pieces_rate = alone.sent_rate("hetero_unfused_1d", pull);
    common_.dma_push_pieces_rate = alone.sent_rate("hetero_unfused_1d", push);
    const double peers = std::max(machine.gpus() - 1, 1), turns = std::ceil(peers / dma.peer_engines);
    common_.dma_engines = dma.engine.si() * std::min<double>(peers, dma.peer_engines);
    common_.strided_run = dma.strided_run.si();
    common_.dma_pull_latency = alone.latency(pull);
    common_.dma_push_latency = alone.latency(push);
    common_.kernel_latency = alone.latency(kernels);
    const Seconds hop = machine.gpus() > 1 ? machine.route(0, 1).latency : Seconds();
    common_.dma_copy = (dma.command + dma.schedule + dma.start + dma.completion + hop).si();
    common_.kernel_copy = (kernel.launch + kernel.completion + hop).si();
    common_.dma_start = (dma.start + dma.switch_over + hop).si();
    common_.dma_step = turns * common_.dma_start;
    common_.kernel_step = (kernel.launch + hop).si();
    common_.dma_issue = dma.queued_launch.si();
    common_.kernel_issue = kernel.queued_launch.si();
    const DeviceSpec::Interference& lost = device.interference;
    common_.units_lost_to_dma = lost.compute_lost_to_dma;
    common_.units_lost_to_kernels = lost.compute_lost_to_copy_kernels;
    common_.slowed_beside_dma = lost.gemm_slowed_beside_dma;
    common_.slowed_beside_kernels = lost.gemm_slowed_beside_copy_kernels;
    // A GEMM keeps tiles for units that copies hold, so a GEMM of two waves takes up to twice its time
    // (sim/engine/tile_waves.hpp; traces/h200_4/microbench/residency.jsonl: 1.88 times).
    common_.few_waves_lost = device.launch.residency == Residency::persistent ? 0.5 : 0;
    common_.dma_lost = lost.dma_lost_to_compute;
    common_.engines_shared = turns > 1;
    common_.unordered = dma.order == QueueOrder::unspecified;
    common_.kernels_wait = device.launch.residency != Residency::shared;
    const auto around = [](Json params) {
        params["algorithm"] = "ring";
        return params;
    };
    common_.dma_ring_rate = alone.rate(around(push));
    common_.kernel_ring_rate = alone.rate(around(kernels));
    common_.dma_one_peer_rate = alone.rate_of_schedule("shard_p2p", push);
    common_.kernel_one_peer_rate = alone.rate_of_schedule("shard_p2p", kernels);
}

overlap_advice::Machine MachineConstants::of(DType dtype) const {
    overlap_advice::Machine machine = common_;
    machine.gemm = to_constants(calibration_.gemm_for(dtype));
    return machine;
}

std::string to_json_text(const overlap_advice::Machine& machine) {
    const overlap_advice::GemmConstants& gemm = machine.gemm;
    nlohmann::ordered_json tiles = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < gemm.tile_count; ++i)
        tiles.push_back({gemm.tiles[i].rows, gemm.tiles[i].columns, gemm.tiles[i].efficiency});
    const nlohmann::ordered_json of_gemm{{"compute_units", gemm.compute_units},
                                         {"k_step", gemm.k_step},
                                         {"launch", gemm.launch},
                                         {"tile_fixed", gemm.tile_fixed},
                                         {"tile_epilogue", gemm.tile_epilogue},
                                         {"peak_rate", gemm.peak_rate},
                                         {"stride_loss", gemm.stride_loss},
                                         {"tail_floor", gemm.tail_floor},
                                         {"partial_floor", gemm.partial_floor},
                                         {"hbm", gemm.hbm},
                                         {"unit_bandwidth", gemm.unit_bandwidth},
                                         {"overlap_exponent", gemm.overlap_exponent},
                                         {"reuse_cache", gemm.reuse_cache},
                                         {"split_k_fixed", gemm.split_k_fixed},
                                         {"split_k_rate", gemm.split_k_rate},
                                         {"sustained_slowdown", gemm.sustained_slowdown},
                                         {"sustained_time", gemm.sustained_time},
                                         {"tiles", tiles},
                                         {"tile_count", gemm.tile_count}};
    const nlohmann::ordered_json json{{"gpus", machine.gpus},
                                      {"compute_units", machine.compute_units},
                                      {"copy_units", machine.copy_units},
                                      {"stream_units", machine.stream_units},
                                      {"hbm_rate", machine.hbm_rate},
                                      {"launch", machine.launch},
                                      {"stream_start", machine.stream_start},
                                      {"dependency", machine.dependency},
                                      {"event", machine.event},
                                      {"flag", machine.flag},
                                      {"slowest", machine.slowest},
                                      {"gemm", of_gemm},
                                      {"dma_pull_rate", machine.dma_pull_rate},
                                      {"dma_push_rate", machine.dma_push_rate},
                                      {"kernel_rate", machine.kernel_rate},
                                      {"dma_pull_sent_rate", machine.dma_pull_sent_rate},
                                      {"dma_push_sent_rate", machine.dma_push_sent_rate},
                                      {"dma_pull_pieces_rate", machine.dma_pull_pieces_rate},
                                      {"dma_push_pieces_rate", machine.dma_push_pieces_rate},

                                      {"dma_ring_rate", machine.dma_ring_rate},
                                      {"kernel_ring_rate", machine.kernel_ring_rate},
                                      {"dma_one_peer_rate", machine.dma_one_peer_rate},
                                      {"kernel_one_peer_rate", machine.kernel_one_peer_rate},
                                      {"dma_engines", machine.dma_engines},
                                      {"strided_run", machine.strided_run},
                                      {"dma_pull_latency", machine.dma_pull_latency},
                                      {"dma_push_latency", machine.dma_push_latency},
                                      {"kernel_latency", machine.kernel_latency},
                                      {"dma_copy", machine.dma_copy},
                                      {"kernel_copy", machine.kernel_copy},
                                      {"dma_step", machine.dma_step},
                                      {"dma_start", machine.dma_start},
                                      {"kernel_step", machine.kernel_step},
                                      {"dma_issue", machine.dma_issue},
                                      {"kernel_issue", machine.kernel_issue},
                                      {"units_lost_to_dma", machine.units_lost_to_dma},
                                      {"units_lost_to_kernels", machine.units_lost_to_kernels},
                                      {"slowed_beside_dma", machine.slowed_beside_dma},
                                      {"slowed_beside_kernels", machine.slowed_beside_kernels},
                                      {"few_waves_lost", machine.few_waves_lost},
                                      {"dma_lost", machine.dma_lost},
                                      {"engines_shared", machine.engines_shared},
                                      {"unordered", machine.unordered},
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
