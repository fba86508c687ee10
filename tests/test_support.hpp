#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "models/cost_model.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/core/temporary_folder.hpp"
#include "sim/run/config_folder.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/workload/workload.hpp"

namespace overlap::test {

inline const std::filesystem::path source_folder = OVERLAP_SOURCE_DIR;
inline const ConfigFolder shipped(source_folder / "configs");

/// The text of the UserError that `action` throws; empty where it throws none.
template <class Action>
std::string error_of(Action&& action) {
    try {
        std::forward<Action>(action)();
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

using overlap::TemporaryFolder;

inline std::vector<TaskId> predecessors(const TaskGraph& graph, TaskId id) {
    std::vector<TaskId> result;
    graph.for_each_edge_into(id, [&](const Edge& edge) { result.push_back(edge.predecessor); });
    return result;
}

/// A GPU of round numbers: 100 compute units, 100 TFLOP/s bf16, 1000 GB/s of HBM, one 10 GB/s DMA engine;
/// every latency 1 µs; a copy kernel's unit moves 10·ln 2 GB/s, so on a 10 GB/s link one unit reaches a half
/// of it and two reach three quarters. No interference.
inline DeviceSpec round_device() {
    DeviceSpec device;
    device.name = "round";
    device.compute_units = 100;
    device.peak[DType::bf16] = teraflops(100);
    device.hbm_capacity = gigabytes(100);
    device.hbm_peak = device.hbm = gigabytes_per_second(1000);
    device.last_level_cache = Bytes(1e6);
    const Seconds one = microseconds(1);
    device.launch->kernel = device.launch->dependency = one;
    device.launch->remote_dependency = device.launch->flag = one;
    device.dma->peer_engines = 1;
    device.dma->engine = gigabytes_per_second(10);
    device.dma->phases.command = device.dma->phases.schedule = device.dma->phases.start =
        device.dma->phases.completion = one;
    device.dma->phases.pull_start = one;
    device.dma->phases.strided_run = Bytes(100);
    device.copy_kernel->launch = device.copy_kernel->completion = one;
    device.copy_kernel->link_per_cu = gigabytes_per_second(6.931471805599453);
    device.stream->cu = gigabytes_per_second(10);
    device.copy_kernel->remote_read = gigabytes_per_second(15);
    device.copy_kernel->default_cus = 4;
    return device;
}

/// One fabric group as JSON text; `more` are further keys, each with a comma before it.
inline std::string group(const std::string& type, const std::string& more = "", double bandwidth_GBps = 10,
                         double latency_us = 1) {
    return R"({"type": ")" + type + R"(", "bandwidth_GBps": {"value": )" + std::to_string(bandwidth_GBps) +
           R"(, "source": "test"}, "latency_us": {"value": )" + std::to_string(latency_us) +
           R"(, "source": "test"})" + more + "}";
}

/// A topology of `gpus` a node with these fabric groups; `more` as in `group`.
inline Topology topology_of(int gpus, const std::string& groups, int nodes = 1, const std::string& more = "",
                            const DeviceSpec& device = round_device()) {
    const std::string text =
        R"({"schema": 1, "name": "small", "description": "", "device": "round", "nodes": )" +
        std::to_string(nodes) + R"(, "gpus_per_node": )" + std::to_string(gpus) + R"(, "fabric": [)" +
        groups + "]" + more + "}";
    const Json json = parse_json(text, "small.json");
    return {ConfigObject(json, "small.json"), device};
}

/// 100 units of 1 TFLOP/s and one tile of 100×100, so a tile of depth K takes 20·K ns: K = 1000 takes 20 µs.
/// Memory, launch, tail and power cap are out of the way.
inline GemmParameters round_gemm() {
    GemmParameters p;
    p.compute_units = 100;
    p.k_step = 1;
    p.peak_rate = teraflops(100);
    p.memory.hbm = p.memory.unit_bandwidth = gigabytes_per_second(1e7);
    p.overlap_exponent = 100;
    p.memory.reuse_cache = gigabytes(1000);
    p.split_k.fixed = Seconds(1);  // never worth it
    p.split_k.rate = gigabytes_per_second(1000);
    p.sustained.time = Seconds(1);
    p.tiles = {{100, 100, 1.0}};
    return p;
}

inline Machine machine_of(Topology topology) {
    ResourceTable resources(topology);
    const std::string name = topology.device().name;
    return {std::move(topology), std::move(resources), {name, {{DType::bf16, round_gemm()}}, {}}, Seconds()};
}

/// A shipped topology with the calibration of its device.
inline Machine shipped_machine(const std::string& name) {
    Machine machine = machine_of(shipped.topology(name));
    machine.calibration = shipped.calibration(machine.topology.device().name);
    return machine;
}

inline Pair pair_of(CollectiveKind kind, Order order, GemmShape gemm, ShardDim shard_dim = ShardDim::m) {
    return {kind, gemm, order, shard_dim};
}

inline Task copy_task(int src, int dst, double bytes, Agent agent = Agent::dma,
                      Direction direction = Direction::pull, int cus = 0) {
    const bool pull = direction == Direction::pull;
    return {CopyWork{src, dst, Bytes(bytes), Bytes(bytes), agent, direction, cus}, pull ? dst : src,
            transfer_stream(pull ? src : dst)};
}

/// Calls `move(src, dst, bytes)` for what a task brings from GPU to GPU: a copy for each of its ways, a
/// library's kernel its share for every peer.
template <class Move>
void for_each_transfer(const Task& task, int ranks, Move&& move) {
    if (const auto* copy = std::get_if<CopyWork>(&task.work))
        for_each_way(*copy, [&](int src, int dst) { move(src, dst, copy->bytes.si()); });
    const auto* kernel = std::get_if<CollectiveKernelWork>(&task.work);
    if (kernel == nullptr) return;
    const double passes = kernel->kind == CollectiveKind::all_reduce ? 2 : 1;
    for (int peer = 0; peer < ranks; ++peer)
        if (peer != task.gpu) move(task.gpu, peer, passes * kernel->operand.si() / ranks);
}

}  // namespace overlap::test
