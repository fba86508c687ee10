// Does every file under configs/ match its schema and the files that refer to it?

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/run/config_folder.hpp"
#include "tests/sample.hpp"
#include "tests/schema.hpp"

namespace overlap::test::shipped_configs_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using overlap::test::Schema;

const fs::path kConfigs = fs::path(OVERLAP_SOURCE_DIR) / "configs";

std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    REQUIRE(in);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

json load(const fs::path& file) {
    INFO(file.string());
    return json::parse(text_of(file));
}

std::vector<fs::path> files_in(const std::string& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kConfigs / folder))
        if (entry.is_regular_file() && entry.path().filename() != "README.md") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

struct Kind {
    std::string folder, schema, name_key;
};

const std::vector<Kind> kKinds = {
    {"devices", "device", "name"},     {"topologies", "topology", "name"},
    {"workloads", "workload", "name"}, {"calibrations", "calibration", "device"},
    {"sweeps", "sweep", "name"},       {"schedules", "schedule", "name"},
    {"models", "model", "name"},       {"hosts", "host", "name"}};

/// Files that are the only one of their kind.
const std::vector<std::pair<fs::path, std::string>> kSingleFiles = {
    {"calibrations/recipes/tiles.json", "tiles"}};

void require_rejected(const Schema& schema, const json& sample, const std::string& where) {
    const std::string errors = schema.errors(sample, "sample");
    INFO(sample.dump());
    CHECK_THAT(errors, Catch::Contains("sample: " + where));
}

}  // namespace

TEST_CASE("every shipped config keeps to its schema", "[configs]") {
    for (const Kind& kind : kKinds) {
        const Schema schema(kind.schema);
        const auto files = files_in(kind.folder);
        INFO("configs/" << kind.folder);
        CHECK_FALSE(files.empty());
        for (const fs::path& file : files) {
            INFO(file.string());
            CHECK(file.extension() == ".json");
            const json config = load(file);
            CHECK(schema.errors(config, file.string()) == "");
            CHECK(config.value(kind.name_key, "") == file.stem().string());
            // Sources name public origins, never somebody's disk.
            CHECK(text_of(file).find("\": \"/") == std::string::npos);  // no path of somebody's machine
        }
    }
}

TEST_CASE("recipes and single files keep to their schemas", "[configs]") {
    for (const auto& [file, schema] : kSingleFiles)
        CHECK(Schema(schema).errors(load(kConfigs / file), file.string()) == "");
    const Schema recipe("recipe");
    int recipes = 0;
    for (const fs::path& file : files_in("calibrations/recipes")) {
        if (file.stem() == "tiles") continue;
        CHECK(recipe.errors(load(file), file.string()) == "");
        ++recipes;
    }
    CHECK(recipes >= 6);
}

TEST_CASE("experiments keep to their schema, each in the folder of its system", "[configs]") {
    const Schema schema("experiment");
    std::size_t cases = 0;
    for (const auto& entry : fs::recursive_directory_iterator(kConfigs / "experiments")) {
        if (entry.path().extension() != ".json") continue;
        INFO(entry.path().string());
        CHECK(entry.path().parent_path().parent_path().filename() == "experiments");
        const json experiment = load(entry.path());
        CHECK(schema.errors(experiment, entry.path().string()) == "");
        CHECK(experiment.value("name", "") == entry.path().stem().string());
        cases += experiment.at("cases").size();
    }
    CHECK(cases >= 20);
}

TEST_CASE("measured overlap cases and tolerances keep to their schemas", "[configs]") {
    const Schema tolerances("tolerances");
    for (const fs::path& file : files_in("tolerances"))
        CHECK(tolerances.errors(load(file), file.string()) == "");

    const Schema cases("measured_case");
    std::size_t lines = 0, checked = 0;
    for (const auto& entry : fs::recursive_directory_iterator(kConfigs.parent_path() / "traces")) {
        const fs::path folder = entry.path().parent_path().filename();
        if ((folder != "overlap" && folder != "published") || entry.path().extension() != ".jsonl") continue;
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) {
            const json one = json::parse(line);
            if (one.value("kind", "") == "machine") continue;
            if (++lines % sampled(9, 1) != 0) continue;
            ++checked;
            const std::string errors = cases.errors(one, entry.path().string());
            if (!errors.empty()) FAIL(errors);
        }
    }
    CHECK(lines >= 1000);
    CHECK(checked >= 100);
}

TEST_CASE("the configs that the documentation names are there", "[configs]") {
    const std::vector<std::string> required = {"devices/mi250x",
                                               "devices/mi300x",
                                               "devices/mi325x",
                                               "devices/mi355x",
                                               "devices/h100",
                                               "devices/h200",
                                               "devices/b200",
                                               "devices/b300",
                                               "devices/gb200",
                                               "devices/t3_gpu",
                                               "devices/mi100",
                                               "topologies/t3_ring_8",
                                               "topologies/mi210_4",
                                               "topologies/mi100_1",
                                               "workloads/bert_large_b32_n128_fp32",
                                               "topologies/mi300x_1",
                                               "topologies/mi300x_8",
                                               "topologies/mi300x_16",
                                               "topologies/mi300x_64_fat_tree",
                                               "topologies/mi300x_64_dragonfly",
                                               "topologies/mi300x_64_torus",
                                               "topologies/mi325x_8",
                                               "topologies/mi355x_8",
                                               "topologies/mi250x_8",
                                               "topologies/h100_8",
                                               "topologies/b200_8",
                                               "topologies/b300_8",
                                               "topologies/gb200_72",
                                               "topologies/gb200_8",
                                               "topologies/h200_2",
                                               "topologies/h200_4",
                                               "topologies/h200_8",
                                               "topologies/ring_8",
                                               "topologies/torus_4x4",
                                               "topologies/mesh_64",
                                               "workloads/ficco_g1",
                                               "workloads/ficco_g16",
                                               "workloads/llama3_70b_gate_up_forward",
                                               "workloads/llama3_405b_down_wgrad",
                                               "workloads/llama3_70b_independent",
                                               "workloads/llama3_70b_mlp_layer",
                                               "workloads/mixtral_8x7b_dispatch",
                                               "workloads/deepseek_v3_combine"};
    for (const std::string& name : required) {
        INFO(name);
        CHECK(fs::is_regular_file(kConfigs / (name + ".json")));
    }
}

TEST_CASE("a cluster is the nodes that its name says, joined by the NICs of a data sheet", "[configs]") {
    const ConfigFolder configs(kConfigs);
    // 128 / 8 = 16 nodes; ConnectX-7 of 400 Gb/s, one a GPU
    const Json cluster = configs.topology_file("h100_128_rail").json,
               node = configs.topology_file("h100_8").json;
    CHECK(cluster.at("nodes") == 16);
    CHECK(cluster.at("fabric").size() == 2);
    CHECK(cluster.at("fabric").at(0) == node.at("fabric").at(0));
    CHECK(cluster.at("fabric").at(1).at("type") == "rails");
    CHECK(cluster.at("fabric").at(1).at("bandwidth_GBps").at("value") == 49.6);
    CHECK(configs.topology("h100_128_rail").gpus() == 128);
    CHECK(configs.clusters().name_of("h100_rail", 16, "") == "h100_128_rail");
    // Without a number: two nodes. A node of GB200 is a rack.
    CHECK(configs.topology_file("gb200_rail").json.at("nodes") == 2);
    CHECK(configs.topology("gb200_rail").gpus() == 144);
    // A shipped machine that was written by hand: two nodes of MI300X
    Json written = configs.topology_file("mi300x_16").json, made = configs.topology_file("mi300x_rail").json;
    for (Json* json : {&written, &made})
        for (const char* key : {"name", "description"}) json->erase(key);
    written["fabric"][1]["latency_us"]["source"] = made["fabric"][1]["latency_us"]["source"];
    CHECK(made == written);
}

TEST_CASE("every topology fits its device and itself", "[configs]") {
    const auto files = files_in("topologies");
    REQUIRE_FALSE(files.empty());
    for (const fs::path& file : files) {
        INFO(file.string());
        const json topology = load(file);
        const int gpus = topology.at("gpus_per_node");
        CHECK(fs::is_regular_file(kConfigs / "devices" / topology.at("device").get<std::string>()));
        for (const json& group : topology.at("fabric")) {
            const std::string type = group.at("type");
            const int nodes = topology.at("nodes");
            const bool network =
                type == "rails" || type == "fat_tree" || type == "dragonfly" || type == "node_torus";
            if (network) CHECK(nodes > 1);
            if (group.contains("dims")) {
                const auto dims = group.at("dims").get<std::vector<int>>();
                CHECK(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()) ==
                      (network ? nodes : gpus));
            }
            if (group.contains("pairs"))
                for (const json& pair : group.at("pairs"))
                    CHECK((pair.at(0).get<int>() < gpus && pair.at(1).get<int>() < gpus));
        }
        if (topology.contains("ring")) {
            auto ring = topology.at("ring").get<std::vector<int>>();
            std::vector<int> everyone(static_cast<std::size_t>(gpus));
            std::iota(everyone.begin(), everyone.end(), 0);
            CHECK(std::is_permutation(ring.begin(), ring.end(), everyone.begin(), everyone.end()));
        }
    }
}

TEST_CASE("ring neighbours of the Frontier node are directly linked", "[configs]") {
    const json topology = load(kConfigs / "topologies" / "mi250x_8.json");
    std::set<std::set<int>> linked;
    for (const json& group : topology.at("fabric"))
        for (const json& pair : group.at("pairs")) linked.insert(pair.get<std::set<int>>());
    REQUIRE(linked.size() == 12);  // rome_model_71: 4 pairs with 4 links, 2 with 2, 6 with 1
    const auto ring = topology.at("ring").get<std::vector<int>>();
    for (std::size_t i = 0; i < ring.size(); ++i) {
        const std::set<int> pair = {ring[i], ring[(i + 1) % ring.size()]};
        INFO(ring[i] << " to its ring neighbour");
        CHECK(linked.count(pair) == 1);
    }
}

TEST_CASE("every operator of a workload needs operators listed before it", "[configs]") {
    int lists = 0;
    for (const fs::path& file : files_in("workloads")) {
        const json workload = load(file);
        if (!workload.contains("operators")) continue;
        ++lists;
        std::set<std::string> seen;
        for (const json& op : workload.at("operators")) {
            INFO(file.string() << ": " << op.at("name"));
            for (const json& need : op.at("needs")) CHECK(seen.count(need.get<std::string>()) == 1);
            CHECK(seen.insert(op.at("name").get<std::string>()).second);
        }
    }
    CHECK(lists >= 1);
}

TEST_CASE("the schemas reject broken devices, topologies and calibrations", "[configs]") {
    const Schema device("device"), topology("topology"), calibration("calibration");
    const json gpu = load(kConfigs / "devices" / "mi300x.json");
    const json node = load(kConfigs / "topologies" / "mi300x_8.json");
    const json fit = load(files_in("calibrations").at(0));
    REQUIRE(device.errors(gpu, "sample") == "");
    REQUIRE(topology.errors(node, "sample") == "");
    REQUIRE(calibration.errors(fit, "sample") == "");

    const auto broken = [](json sample, const std::string& pointer, json value) {
        sample[json::json_pointer(pointer)] = std::move(value);
        return sample;
    };
    require_rejected(device, broken(gpu, "/hbm_GBps", {{"value", 4130}}), "/hbm_GBps");
    require_rejected(device, broken(gpu, "/hbm_GBps/source", ""), "/hbm_GBps/source");
    require_rejected(device, broken(gpu, "/hbm_GBps/value", -1), "/hbm_GBps/value");
    require_rejected(device, broken(gpu, "/compute_units/value", 304.5), "/compute_units/value");
    require_rejected(device, broken(gpu, "/interference/dma_lost_to_compute/value", 1), "/interference");
    require_rejected(device, broken(gpu, "/dma/engines", 2), "/dma");
    require_rejected(device, broken(gpu, "/colour", "red"), "");
    json without_dma = gpu;
    without_dma.erase("dma");
    require_rejected(device, without_dma, "");

    require_rejected(topology, broken(node, "/fabric/0/bandwidth_GBps/value", -46.5), "/fabric/0");
    require_rejected(topology, broken(node, "/fabric/0/latency_us", 0.45), "/fabric/0");
    require_rejected(topology, broken(node, "/fabric/0/type", "full_mess"), "/fabric/0");
    require_rejected(topology, broken(node, "/nodes", 0), "/nodes");
    require_rejected(topology, broken(node, "/gpus", 8), "");
    const json tree = load(kConfigs / "topologies" / "mi300x_64_fat_tree.json");
    REQUIRE(topology.errors(tree, "sample") == "");
    require_rejected(topology, broken(tree, "/fabric/1/leaves", "rail"), "/fabric/1");
    require_rejected(topology, broken(tree, "/fabric/1/spine_GBps", 49.6), "/fabric/1");

    const std::string launch = "/gemm/" + fit.at("gemm").begin().key() + "/launch_us";
    require_rejected(calibration, broken(fit, launch, 3.0), launch);
    require_rejected(calibration, broken(fit, launch, {{"value", 3.0}}), launch);
    require_rejected(calibration, broken(fit, launch + "/value", -3.0), launch + "/value");
    require_rejected(calibration, broken(fit, "/gemm/int3", json::object()), "/gemm");
    const json gemms = load(kConfigs / "calibrations" / "h200.json");
    const std::string tiles = "/measured_gemms/bf16_tiles";
    require_rejected(calibration, broken(gemms, tiles + "/8192x2560x8192", 0), tiles + "/8192x2560x8192");
    require_rejected(calibration, broken(gemms, tiles + "/8192x2560", 640), "/measured_gemms");
}

TEST_CASE("the schemas reject broken workloads and run configs", "[configs]") {
    const Schema workload("workload"), run("run");
    const json pair = load(kConfigs / "workloads" / "llama3_70b_gate_up_forward.json");
    const json config = {{"topology", "mi300x_8.json"},
                         {"schedule", "hetero_fused_1d"},
                         {"params", {{"chunks", 4}, {"agent", "dma"}}},
                         {"workload", {{"collective", "all_gather"}, {"gemm", pair.at("gemm")}}}};
    REQUIRE(workload.errors(pair, "sample") == "");
    REQUIRE(run.errors(config, "sample") == "");

    const auto broken = [](json sample, const std::string& pointer, json value) {
        sample[json::json_pointer(pointer)] = std::move(value);
        return sample;
    };
    require_rejected(workload, broken(pair, "/gemm/m", 0), "/gemm/m");
    require_rejected(workload, broken(pair, "/gemm/dtype", "int3"), "/gemm/dtype");
    require_rejected(workload, broken(pair, "/operators", json::array()), "");  // a pair or a list, not both
    require_rejected(workload, broken(pair, "/collective", "all_reduce"), "");  // has no shard_dim
    json no_shard = pair;
    no_shard.erase("shard_dim");
    require_rejected(workload, no_shard, "");
    require_rejected(run, broken(config, "/topolgy", "mi300x_8.json"), "");
    require_rejected(run, broken(config, "/workload/gemm/m", -1), "/workload");
    require_rejected(run, broken(config, "/workload", 8), "/workload");

    const auto what_if = [&](const std::string& path, const json& value) {
        json changed = config;
        changed["what_if"][path] = value;
        return changed;
    };
    REQUIRE(run.errors(what_if("topology.fabric.0.bandwidth_GBps", "2x"), "sample") == "");
    REQUIRE(run.errors(what_if("device.dma.peer_engines", 4), "sample") == "");
    require_rejected(run, what_if("device", 4), "");  // names of keys have no pointer
    require_rejected(run, what_if("workload.gemm.m", 4), "");
    require_rejected(run, what_if("device.dma", {{"peer_engines", 4}}), "/what_if");
}

TEST_CASE("the schema rejects broken sweeps", "[configs]") {
    const Schema schema("sweep");
    const json sweep = {{"schema", 1}, {"name", "a"}, {"axes", {{"params.chunks", {1, 2}}}}};
    REQUIRE(schema.errors(sweep, "sample") == "");
    const auto with_values = [&](const std::string& field, const json& values) {
        json changed = sweep;
        changed["axes"][field] = values;
        return changed;
    };
    REQUIRE(schema.errors(with_values("workload", {{"files", "ficco_g*"}}), "sample") == "");
    REQUIRE(schema.errors(with_values("workload.gemm.m", {{"from", 1}, {"to", 8}, {"times", 2}}), "sample") ==
            "");
    require_rejected(schema, {{"schema", 1}, {"name", "a"}}, "");
    require_rejected(schema, with_values("chunks", {1, 2}), "");
    require_rejected(schema, with_values("params.chunks", json::array()), "/axes/params.chunks");
    require_rejected(schema, with_values("params.chunks", {{"from", 1}, {"to", 8}}), "/axes/params.chunks");
}

}  // namespace overlap::test::shipped_configs_test
