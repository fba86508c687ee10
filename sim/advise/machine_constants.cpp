#include "sim/advise/machine_constants.hpp"

#include <algorithm>
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
    Benchmarks(const std::string& topology, const ConfigFolder& folder, const Json& what_if)
        : topology_(topology), what_if_(what_if), resolver_(folder) {
        machine_ = scenario("serial", Json::object(), gathered(large_bytes)).machine;
    }

    const Machine& machine() const { return *machine_; }

    /// All-gather of the large operand alone: bytes/s that a GPU receives.
    double rate(const Json& params) { return received() / time("serial", params, gathered(large_bytes)); }
    /// Time of an all-gather of `gpus` cache lines.
    double latency(const Json& params) { return time("serial", params, gathered(128.0 * gpus())); }
    /// Rate of a schedule's transfers, from a run whose GEMM has one column and so takes almost no time.
    double rate_of_schedule(const std::string& schedule, const Json& params) {
        const Json gemm{{"m", large_rows}, {"n", 1}, {"k", large_columns}, {"dtype", "bf16"}};
        return received() / time(schedule, params, {{"collective", "all_gather"}, {"gemm", gemm}});
    }
    /// Rate of the transfers of pieces that a GEMM with almost no arithmetic produces, without the `step` s of each round; at
    /// most `engines`, because not every copy has a step of its own where many wait.
    double sent_rate(const std::string& schedule, const Json& params, double step, double engines) {
        const Json gemm{{"m", large_rows}, {"n", large_columns}, {"k", 32}, {"dtype", "bf16"}};
        Json pieces = params;
        constexpr int rounds = 8;
        pieces["chunks"] = rounds;
        const double took =
            time(schedule, pieces, {{"collective", "all_to_all"}, {"order", "gemm_first"}, {"gemm", gemm}});
        return received() / std::max(took - rounds * step, received() / engines);
    }
    /// Compute units that kernels hold while they copy to all peers.
    double copy_units() {
        const Scenario by_kernels = scenario("serial", {{"agent", "cu"}}, gathered(large_bytes));
        const DeviceSpec& device = by_kernels.machine->topology.device();
        return by_kernels.params.transfers.cus * (gpus() - 1) * device.copy_kernel.units_per_block;
    }

private:
    static constexpr double large_bytes = 2.0 * large_rows * large_columns;

    static Json gathered(double bytes) {
        Json op{{"name", "gather"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", bytes}};
        return {{"operators", Json::array({op})}};
    }
    int gpus() const { return machine_->topology.gpus(); }
    double received() const { return large_bytes * (gpus() - 1) / gpus(); }
    Scenario scenario(const std::string& schedule, const Json& params, const Json& workload) {
        RunConfig config;
        config.origin = "machine constants";
        config.topology = topology_;
        config.schedule = schedule;
        config.params = params;
        config.workload = workload;
        config.what_if = what_if_;
        return resolver_.resolve_for_numbers(config);
    }
    double time(const std::string& schedule, const Json& params, const Json& workload) {
        return makespan_of(scenario(schedule, params, workload)).si();
    }

    const std::string& topology_;
    const Json& what_if_;
    Resolver resolver_;
    Resolver::MachinePtr machine_;
};

}  // namespace

MachineConstants::MachineConstants(const std::string& topology, const ConfigFolder& folder,
                                   const Json& what_if) {
    Benchmarks alone(topology, folder, what_if);
    calibration_ = alone.machine().calibration;
    const Topology& machine = alone.machine().topology;
    const DeviceSpec& device = machine.device();
    const Json pull{{"agent", "dma"}, {"transfer", "pull"}}, push{{"agent", "dma"}, {"transfer", "push"}},
        by_kernels{{"agent", "cu"}};
    common_.gpus = machine.gpus();
    common_.compute_units = device.compute_units;
    common_.stream_units = streamed(LocalCopyWork{Bytes(1e9), Bytes(1e9)}, device).units;
    common_.hbm_rate = device.hbm.si();
    common_.launch = device.launch.kernel.si();
    common_.stream_start = device.stream.start.si();
    common_.dependency = device.launch.dependency.si();
    common_.event = device.launch.event.si();
    common_.flag = device.launch.flag.si();
    common_.slowest = slowest_of(machine.gpus(), device.variation.gpu_speed) - 1;
    common_.kernels_wait = device.launch.residency != Residency::shared;
    const DeviceSpec::Dma& engine = device.dma;
    const double peers = std::max(machine.gpus() - 1, 1), turns = std::ceil(peers / engine.peer_engines);
    common_.engines = {engine.engine.si() * std::min<double>(peers, engine.peer_engines),
                       engine.strided_run.si(), turns > 1, engine.order == QueueOrder::unspecified};
    const auto around = [](Json params) {
        params["algorithm"] = "ring";
        return params;
    };
    const Seconds hop = machine.gpus() > 1 ? machine.route(0, 1).latency : Seconds();
    const DeviceSpec::Interference& lost = device.interference;
    overlap_advice::Copies& dma = common_.dma;
    dma.peer_step = (engine.start + hop).si();
    dma.switch_over = turns > 1 ? engine.switch_over.si() : 0;
    dma.step = turns * (dma.peer_step + dma.switch_over);
    const auto by_dma = [&](const Json& way) {
        // Copies to one peer each hide the start of each other, unless they run one after another.
        const double most = common_.engines.rate, of_one = turns > 1 ? dma.step : 0;
        return overlap_advice::AllPeers{alone.rate(way), alone.latency(way),
                                        alone.sent_rate("hetero_fused_1d", way, dma.step, most),
                                        alone.sent_rate("hetero_unfused_1d", way, of_one, most)};
    };
    dma.pull = by_dma(pull);
    dma.push = by_dma(push);
    dma.ring_rate = alone.rate(around(push));
    dma.peer_rate = alone.rate_of_schedule("shard_p2p", push);
    dma.peer_latency = (engine.command + engine.schedule + engine.start + engine.completion + hop).si();
    dma.issue = engine.queued_launch.si();
    dma.units_lost = lost.compute_lost_to_dma;
    dma.gemm_lost = lost.gemm_slowed_beside_dma;
    dma.copies_lost = lost.dma_lost_to_compute;
    const DeviceSpec::CopyKernel& kernel = device.copy_kernel;
    overlap_advice::Copies& kernels = common_.kernels;
    const double rate = alone.rate(by_kernels);
    kernels.pull = kernels.push = {rate, alone.latency(by_kernels), rate, rate};
    kernels.ring_rate = alone.rate(around(by_kernels));
    kernels.peer_rate = alone.rate_of_schedule("shard_p2p", by_kernels);
    kernels.peer_latency = (kernel.launch + kernel.completion + hop).si();
    kernels.step = kernels.peer_step = (kernel.launch + hop).si();
    kernels.issue = kernel.queued_launch.si();
    kernels.units = alone.copy_units();
    kernels.units_lost = lost.compute_lost_to_copy_kernels;
    kernels.gemm_lost = lost.gemm_slowed_beside_copy_kernels;
    // A GEMM keeps tiles for units that copies hold, so a GEMM of two waves takes up to twice its time
    // (sim/engine/tile_waves.hpp; traces/h200_4/microbench/residency.jsonl: 1.88 times).
    kernels.few_waves_lost = device.launch.residency == Residency::persistent ? 0.5 : 0;
}

overlap_advice::Machine MachineConstants::of(DType dtype) const {
    overlap_advice::Machine machine = common_;
    machine.gemm = to_constants(calibration_.gemm_for(dtype));
    return machine;
}

std::string to_json_text(const overlap_advice::Machine& machine) {
    const overlap_advice::GemmConstants& gemm = machine.gemm;
    Json tiles = Json::array();
    for (std::size_t i = 0; i < gemm.tile_count; ++i)
        tiles.push_back({gemm.tiles[i].rows, gemm.tiles[i].columns, gemm.tiles[i].efficiency});
    Json of_gemm;
    for (const GemmConstant& one : gemm_constants()) of_gemm[one.name] = gemm.*one.member;
    of_gemm["tiles"] = std::move(tiles);
    of_gemm["tile_count"] = gemm.tile_count;
    const auto of_all = [](const overlap_advice::AllPeers& all) {
        return Json{{"rate", all.rate},
                    {"latency", all.latency},
                    {"sent_rate", all.sent_rate},
                    {"pieces_rate", all.pieces_rate}};
    };
    const auto of_copies = [&](const overlap_advice::Copies& copies) {
        return Json{{"pull", of_all(copies.pull)},
                    {"push", of_all(copies.push)},
                    {"ring_rate", copies.ring_rate},
                    {"peer_rate", copies.peer_rate},
                    {"peer_latency", copies.peer_latency},
                    {"step", copies.step},
                    {"peer_step", copies.peer_step},
                    {"switch_over", copies.switch_over},
                    {"issue", copies.issue},
                    {"units", copies.units},
                    {"units_lost", copies.units_lost},
                    {"gemm_lost", copies.gemm_lost},
                    {"few_waves_lost", copies.few_waves_lost},
                    {"copies_lost", copies.copies_lost}};
    };
    const Json of_engines{{"rate", machine.engines.rate},
                          {"strided_run", machine.engines.strided_run},
                          {"shared", machine.engines.shared},
                          {"unordered", machine.engines.unordered}};
    const Json json{{"gpus", machine.gpus},
                    {"compute_units", machine.compute_units},
                    {"stream_units", machine.stream_units},
                    {"hbm_rate", machine.hbm_rate},
                    {"launch", machine.launch},
                    {"stream_start", machine.stream_start},
                    {"dependency", machine.dependency},
                    {"event", machine.event},
                    {"flag", machine.flag},
                    {"slowest", machine.slowest},
                    {"kernels_wait", machine.kernels_wait},
                    {"gemm", of_gemm},
                    {"engines", of_engines},
                    {"dma", of_copies(machine.dma)},
                    {"kernels", of_copies(machine.kernels)}};
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
