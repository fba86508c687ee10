#include "sim/topology/device.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "sim/topology/device_dma.hpp"
#include "sim/topology/device_launch.hpp"
#include "sim/topology/device_library.hpp"
#include "sim/topology/device_losses.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::device_test {

using Catch::Contains;

namespace {

const Json& good() {
    static const Json json = read_json_file(source_folder / "configs" / "devices" / "mi300x.json");
    return json;
}

std::string reading(const Json& json) {
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << json.dump();
    return error_of([&] { read_device(folder / "gpu.json"); });
}

Json with(const std::string& pointer, const Json& value) {
    Json json = good();
    json[Json::json_pointer(pointer)] = value;
    return json;
}

Json lacking(const std::string& group, const std::string& key) {
    Json json = good();
    (group.empty() ? json : json.at(group)).erase(key);
    return json;
}

}  // namespace

TEST_CASE("a device file is read in the units of its keys") {
    const DeviceSpec device = read_device(source_folder / "configs" / "devices" / "mi300x.json");
    CHECK(device.name == "mi300x");
    CHECK(device.compute_units == 304);
    CHECK(to_teraflops(device.peak.at(DType::bf16)) == Approx(1307.4));
    CHECK(to_gigabytes_per_second(device.hbm) == Approx(4130));
    CHECK(device.last_level_cache.si() == Approx(256e6));
    CHECK(device.dma->peer_engines == 14);
    CHECK(to_microseconds(device.launch->kernel) == Approx(good().at("launch").at("kernel_us").at("value")));
    CHECK(to_microseconds(device.dma->phases.completion) ==
          Approx(good().at("dma").at("completion_us").at("value")));
}

TEST_CASE("every key of a device file is required, but for those that some devices do without") {
    REQUIRE(reading(good()) == "");
    const std::set<std::string> optional{"queued_launch_us", "completions_apart_us", "commands",
                                         "channels_per_engine_unit"};
    int checked = 0;
    for (const auto& item : good().items()) {
        INFO(item.key());
        if (item.key() == "collective_library" || item.key() == "schema") continue;
        CHECK_THAT(reading(lacking("", item.key())), Contains("/" + item.key() + ": is missing"));
        ++checked;
        if (!item.value().is_object() || item.value().contains("value") || item.key() == "peak_TFLOPS")
            continue;
        for (const auto& inner : item.value().items()) {
            INFO(inner.key());
            if (optional.contains(inner.key())) {
                CHECK(reading(lacking(item.key(), inner.key())) == "");
                continue;
            }
            CHECK_THAT(reading(lacking(item.key(), inner.key())),
                       Contains("/" + item.key() + "/" + inner.key() + ": is missing"));
            ++checked;
        }
    }
    CHECK(checked >= 30);
}

TEST_CASE("impossible values of a device file are errors with their place") {
    CHECK_THAT(reading(with("/hbm_GBps/value", 0)), Contains("/hbm_GBps/value: is 0"));
    CHECK_THAT(reading(with("/hbm_GBps/value", 1e30)), Contains("/hbm_GBps/value: is 1e+30"));
    CHECK_THAT(reading(with("/hbm_GBps/source", "")), Contains("/hbm_GBps/source: is empty"));
    CHECK_THAT(reading(with("/compute_units/value", 304.5)),
               Contains("/compute_units/value: is 304.5, but must be a whole number (304 or 305)"));
    CHECK_THAT(reading(with("/compute_units/value", 0)), Contains("/compute_units/value: is 0"));
    CHECK_THAT(reading(with("/launch/kernel_us/value", -1)), Contains("/launch/kernel_us/value: is -1"));
    CHECK_THAT(reading(with("/dma/peer_engines/value", 0)), Contains("/dma/peer_engines/value: is 0"));
    CHECK_THAT(reading(with("/interference/compute_lost_to_dma/value", 1)), Contains("from 0 to 0.95"));
    CHECK_THAT(reading(with("/peak_TFLOPS/bf17", good().at("peak_TFLOPS").at("bf16"))),
               Contains("/peak_TFLOPS/bf17: is no data type (did you mean 'bf16'?)"));
    CHECK_THAT(reading(with("/collective_library/channels/value", 0)),
               Contains("/collective_library/channels/value"));
    CHECK_THAT(reading(with("/collective_library/all_gathr", 0)),
               Contains("/collective_library/all_gathr: is an unknown"));
    CHECK_THAT(reading(with("/collective_library/all_gather/small/bus_GBps/value", 0)),
               Contains("/collective_library/all_gather/small/bus_GBps/value: is 0"));
    CHECK_THAT(reading(with("/dma/commands/release_us/value", -1)),
               Contains("/dma/commands/release_us/value: is -1"));
    CHECK_THAT(reading(with("/dma/commands/next", 1)), Contains("/dma/commands/next: is an unknown key"));
    CHECK_THAT(reading(with("/dma/start", 1)), Contains("/dma/start: is an unknown key"));
    CHECK_THAT(reading(with("/schema", 3)), Contains("/schema: is 3"));
    CHECK_THAT(reading(Json::array()), Contains("expected an object"));
}

TEST_CASE("everything that is wrong with a device file is said at once") {
    Json json = good();
    json.erase("description");
    json.erase("interference");
    json["dma"].erase("start_us");
    json["dma"].erase("completion_us");
    json["hbm_GBps"]["value"] = -1;
    json["launch"]["kernel_us"] = 3;
    json["peak_TFLOPS"]["bf17"] = json["peak_TFLOPS"]["bf16"];
    json["colour"] = "odd";
    json["shape"] = "odd";
    const std::string error = reading(json);
    INFO(error);
    CHECK(error.find('\n') == std::string::npos);
    std::size_t named = 0;
    for (const std::string problem :
         {"/description: is missing", "/interference: is missing", "/dma/start_us: is missing",
          "/dma/completion_us: is missing", "/hbm_GBps/value: is -1",
          "/launch/kernel_us: is 3, expected an object", "/peak_TFLOPS/bf17: is no data type",
          "/colour: is an unknown key", "/shape: is an unknown key"}) {
        CHECK_THAT(error, Contains(problem));
        ++named;
    }
    CHECK(named == 9);
    // A file says its name once; every required key of an empty one is named.
    CHECK(error.find("gpu.json") == error.rfind("gpu.json"));
    CHECK_THAT(reading(Json::object()),
               Contains("/name: is missing; /description: is missing; /compute_units: "
                        "is missing") &&
                   Contains("/copy_kernel: is missing; /interference: is missing"));
}

TEST_CASE("energy may be given: all of it but for data types, none of it negative") {
    const auto sourced = [](const Json& value) { return Json{{"value", value}, {"source", "test"}}; };
    Json energy;
    for (const char* key :
         {"hbm_pJ_per_byte", "link_pJ_per_byte", "copy_kernel_pJ_per_byte", "bf16_pJ_per_flop"})
        energy[key] = sourced(7);
    energy["idle_W"] = energy["active_W"] = sourced(50);
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << with("/energy", energy).dump();
    const DeviceEnergy read = *read_device(folder / "gpu.json").energy;
    CHECK(read.idle.si() == 50);
    CHECK(read.hbm.si() == Approx(7e-12));
    CHECK(read.gemm.size() == 1);
    CHECK(read.gemm.at(DType::bf16).si() == Approx(7e-12));
    CHECK_FALSE(read_device(source_folder / "configs/devices/mi300x.json").energy);

    const auto refused = [&](const std::string& key, const Json& value) {
        Json changed = energy;
        changed[key] = value;
        if (value.is_null()) changed.erase(key);
        return reading(with("/energy", changed));
    };
    CHECK_THAT(refused("hbm_pJ_per_byte", sourced(-1)), Contains("/energy/hbm_pJ_per_byte/value: is -1"));
    CHECK_THAT(refused("idle_W", sourced(-1)), Contains("/energy/idle_W/value: is -1"));
    CHECK_THAT(refused("bf16_pJ_per_flop", sourced(-1)), Contains("/energy/bf16_pJ_per_flop/value: is -1"));
    CHECK_THAT(refused("idle_W", 50), Contains("/energy/idle_W"));
    CHECK_THAT(refused("bf17_pJ_per_flop", sourced(1)),
               Contains("/energy/bf17_pJ_per_flop: is an unknown key"));
    for (const char* key :
         {"idle_W", "active_W", "hbm_pJ_per_byte", "link_pJ_per_byte", "copy_kernel_pJ_per_byte"})
        CHECK_THAT(refused(key, nullptr), Contains(std::string("/energy/") + key + ": is missing"));
    CHECK(refused("bf16_pJ_per_flop", nullptr) == "");
}

TEST_CASE("orders, queues, residency, clock terms and weights may be given") {
    Json json = good();
    const auto sourced = [](const Json& value) { return Json{{"value", value}, {"source", "test"}}; };
    json["launch"]["residency"] = sourced("tiled");
    json["launch"]["flag_us"] = sourced(0.5);
    json["dma"]["order"] = sourced("round_robin");
    json["dma"]["queues"] = sourced("shared");
    json["near_memory"] = sourced("add");
    json["collective_library"]["pattern"] = sourced("ring");
    json["interference"]["gemm_slowed_beside_dma"] = sourced(0.03);
    json["interference"]["weights"]["hbm"]["copy_dma"] = sourced(2);
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << json.dump();
    const DeviceSpec device = read_device(folder / "gpu.json");
    CHECK(device.launch->residency == Residency::tiled);
    CHECK(to_microseconds(device.launch->flag) == Approx(0.5));
    CHECK(device.launch->remote_dependency == device.launch->dependency);
    CHECK(device.dma->order == QueueOrder::round_robin);
    CHECK(device.dma->queues == DmaQueues::shared);
    CHECK(device.near_memory == NearMemory::add);
    CHECK(device.collective_library->pattern == CollectivePattern::ring);
    CHECK(device.interference->gemm_slowed_beside_dma == 0.03);
    CHECK(device.interference->weights.at("hbm") == std::array<double, 5>{1, 2, 1, 1, 1});

    CHECK_THAT(reading(with("/dma/order", sourced("random"))), Contains("/dma/order/value: is 'random'"));
    CHECK_THAT(reading(with("/near_memory", sourced("multiply"))),
               Contains("/near_memory/value: is 'multiply'"));
    CHECK_THAT(reading(with("/interference/weights", {{"hmb", Json::object()}})),
               Contains("/interference/weights/hmb: is no resource that has weights") &&
                   Contains("did you mean 'hbm'"));
    CHECK_THAT(reading(with("/interference/weights", {{"hbm", {{"gem", sourced(1)}}}})),
               Contains("/interference/weights/hbm/gem"));
}

TEST_CASE("a library's residency, and its rates with fewer channels") {
    const DeviceLibrary library =
        *read_device(source_folder / "configs" / "devices" / "mi300x.json").collective_library;
    CHECK(library.residency == Residency::tiled);
    const auto& gather = library.collectives.at(CollectiveKind::all_gather);
    CHECK(gather.bus_by_channels.size() == 2);
    CHECK(to_gigabytes_per_second(gather.bus_by_channels.at(32)) == Approx(232.6));
    CHECK(library.collectives.at(CollectiveKind::all_reduce).bus_by_channels.size() == 3);

    const Json rate{{"value", 1}, {"source", "test"}};
    for (const std::string key : {"0", "64", "4x", "-1"})
        CHECK_THAT(reading(with("/collective_library/all_gather/bus_GBps_by_channels/" + key, rate)),
                   Contains("/bus_GBps_by_channels/" + key + ": is no number of channels from 1 to 63"));
}

namespace {

/// The good file without `key` of its dma group, and a calibration that has `calibrated` there.
std::string reading_with(const std::string& key, const Json& calibrated) {
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << lacking("dma", key).dump();
    const Json calibration{{"schema", 2}, {"device", "mi300x"}, {"dma", calibrated}};
    return error_of([&] { read_device(folder / "gpu.json", {calibration, "fitted.json"}); });
}

}  // namespace

TEST_CASE("a calibration has what the device file lacks, and errors name the file of the two") {
    const TemporaryFolder folder;
    std::ofstream(folder / "gpu.json") << lacking("dma", "start_us").dump();
    const Json start{{"value", 2.5}, {"source", "here"}, {"standard_error", 0.1}, {"unit", "us"}};
    const Json calibration{
        {"schema", 2}, {"device", "mi300x"}, {"dma", {{"provenance", Json::object()}, {"start_us", start}}}};
    const DeviceSpec device = read_device(folder / "gpu.json", {calibration, "fitted.json"});
    CHECK(to_microseconds(device.dma->phases.start) == Approx(2.5));
    CHECK(to_microseconds(device.dma->phases.completion) ==
          Approx(good().at("dma").at("completion_us").at("value")));

    CHECK_THAT(reading_with("start_us", Json::object()), Contains("gpu.json: /dma/start_us: is missing"));
    CHECK_THAT(reading_with("start_us", {{"start_us", {{"value", -1}, {"source", "here"}}}}),
               Contains("fitted.json: /dma/start_us/value: is -1"));
    CHECK_THAT(reading_with("start_us", {{"start_us", start}, {"command_us", start}}),
               Contains("fitted.json: /dma/command_us: is in ") && Contains("gpu.json, too"));
    CHECK_THAT(reading_with("start_us", {{"start_us", start}, {"strat_us", start}}),
               Contains("fitted.json: /dma/strat_us: is an unknown key") && Contains("'start_us'"));
    Json odd = start;
    odd["resid"] = 1;
    CHECK_THAT(reading_with("start_us", {{"start_us", odd}}),
               Contains("fitted.json: /dma/start_us/resid: is an unknown key"));
    const Json other{{"schema", 2}, {"device", "h200"}};
    CHECK_THAT(error_of([&] {
                   read_device(folder / "gpu.json", {other, "fitted.json"});
               }),
               Contains("fitted.json: /device: is 'h200', expected 'mi300x'"));
}

}  // namespace overlap::test::device_test
