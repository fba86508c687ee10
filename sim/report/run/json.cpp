#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

Json losses_json(const Losses& losses, bool steady, bool with_host) {
    Json json{{"decomposition", to_microseconds(losses.decomposition)},
              {"contention", to_microseconds(losses.contention)},
              {"fill_drain", to_microseconds(losses.fill_drain)},
              {"launch", to_microseconds(losses.launch)},
              {"packing", to_microseconds(losses.packing)},
              {"pattern", to_microseconds(losses.pattern)}};
    if (with_host) json["host"] = to_microseconds(losses.host);
    if (steady) json["power"] = to_microseconds(losses.power);
    return json;
}

Json utilisation_json(const Utilisation& used) {
    return {{"cu", used.cu}, {"hbm", used.hbm}, {"link", used.link}, {"dma", used.dma}};
}

Json energy_json(const Energy& energy) {
    return {{"total", energy.total().si()},
            {"idle", energy.idle.si()},
            {"active", energy.active.si()},
            {"compute", energy.compute.si()},
            {"hbm", energy.hbm.si()},
            {"links", energy.links.si()},
            {"copy_kernels", energy.copy_kernels.si()},
            {"power_limit", energy.power_limit.si()}};
}

}  // namespace

Json to_json(const RunResult& result) {
    Json json;
    json["schema"] = 1;
    json["config"] = result.config;
    json["makespan_us"] = to_microseconds(result.makespan);
    json["makespan_p10_us"] = to_microseconds(result.makespan_p10);
    json["makespan_p90_us"] = to_microseconds(result.makespan_p90);
    json["seeds"] = result.seeds;
    json["serial_us"] = to_microseconds(result.serial);
    json["gemm_us"] = to_microseconds(result.gemm);
    json["comm_us"] = to_microseconds(result.comm);
    json["ideal_us"] = to_microseconds(result.ideal);
    json["speedup"] = result.speedup;
    json["overlap_efficiency"] = result.overlap_efficiency ? Json(*result.overlap_efficiency) : Json(nullptr);
    json["exposed_comm_us"] = to_microseconds(result.exposed_comm);
    json["losses_us"] = losses_json(result.losses, result.steady.has_value(), result.config.contains("host"));
    json["utilisation"] = utilisation_json(result.utilisation);
    json["comm_cus"] = result.comm_cus;
    json["staging_bytes"] = result.staging.si();
    json["energy_J"] = result.energy ? energy_json(*result.energy) : Json(nullptr);
    if (result.steady)
        json["steady"] = {{"gemm_speed", result.steady->gemm_speed}, {"power_W", result.steady->power.si()}};
    json["confidence"] = to_json(result.confidence);
    json["tasks"] = result.tasks;
    json["engine"] = result.engine;
    json["wall_ms"] = result.wall_ms;
    return json;
}

Json to_json(const RunResult& result, const Remarks& remarks) {
    Json json = to_json(result);
    json["gemm_library"] = remarks.gemm_library.empty() ? Json(nullptr) : Json(remarks.gemm_library);
    json["notes"] = remarks.notes;
    return json;
}

}  // namespace overlap
