// Do the schemas accept what the program accepts and prints?
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "sim/report/run/report.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "tests/sample.hpp"
#include "tests/schema.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::schema_agreement_test {
namespace {

/// As a reader of the file sees it: numbers and the order of keys go through text.
nlohmann::json reread(const Json& json) {
    return nlohmann::json::parse(json.dump());
}

/// Empty where both accept it.
std::string disagreement(const Schema& schema, const Json& config) {
    const std::string refused = error_of([&] { read_run_config(config, "config"); }) + error_of([&] {
                                    if (config.contains("workload") && config["workload"].is_object())
                                        read_workload({config["workload"], "config", "/workload"});
                                });
    return refused + schema.errors(reread(config), "schema");
}

}  // namespace

TEST_CASE("the run schema accepts every resolved config: every schedule, topology and workload") {
    setenv("OVERLAP_MEMORY_GB", "1", 0);  // what takes more is refused at once
    const Schema schema("run");
    Resolver resolver(shipped);
    std::size_t checked = 0, seen = 0;
    const std::size_t every = sampled<std::size_t>(4, 1);
    const auto check = [&](const Json& config) {
        if (seen++ % every != 0) return;
        std::optional<Json> resolved;
        try {
            resolved = resolver.resolve(read_run_config(config, "config")).config();
        } catch (const UserError&) {
            return;  // a schedule that does not handle the workload, or does not fit the machine
        }
        INFO(resolved->dump());
        CHECK(schema.errors(reread(config), "given") + schema.errors(reread(*resolved), "resolved") == "");
        ++checked;
    };
    std::vector<std::string> names;
    for (const ScheduleEntry& schedule : schedules()) names.push_back(schedule.name);
    for (const std::string& preset : shipped.names("schedules")) names.push_back(preset);
    for (const std::string& workload : shipped.names("workloads"))
        for (const std::string& schedule : names)
            check({{"topology", "mi300x_8"}, {"schedule", schedule}, {"workload", workload}});
    CHECK(checked > 500 / every);
    checked = 0;
    for (const std::string& topology : shipped.names("topologies"))
        for (const std::string& schedule : names)
            check({{"topology", topology},
                   {"schedule", schedule},
                   {"seeds", 3},
                   {"cost_models", {"gemm_tiled"}},
                   {"without", {"contention"}},
                   {"what_if", {{"device.dma.peer_engines", 2}}}});
    CHECK(checked > 200 / every);
}

TEST_CASE("the result schema accepts results of every schedule on machines of several kinds") {
    const Schema result("result"), config("run");
    Resolver resolver(shipped);
    std::size_t checked = 0;
    const Json pair = parse_json(R"({"collective": "all_gather", "gemm": {"m": 4096, "n": 1024, "k": 2048,
                                     "dtype": "bf16"}})",
                                 "pair");
    std::set<std::string> keys;
    const auto check = [&](const std::string& topology, const std::string& schedule, const Json& workload,
                           const Json& more = Json::object()) {
        Json given{{"topology", topology}, {"schedule", schedule}, {"workload", workload}, {"seeds", 1}};
        given.update(more);
        std::optional<Scenario> scenario;
        try {
            scenario = resolver.resolve(read_run_config(given, "config"));
        } catch (const UserError&) {
            return;
        }
        const Json printed = to_json(run(*scenario, {.record = false}), Remarks{{"A note."}});
        const Json flat = printed.flatten();
        for (const auto& item : flat.items()) keys.insert(item.key());
        INFO(topology << ' ' << schedule);
        CHECK(result.errors(reread(printed), "result") == "");
        CHECK(config.errors(reread(printed["config"]), "config") == "");
        ++checked;
    };
    for (const ScheduleEntry& schedule : schedules()) {
        check("h200_4", schedule.name, pair);
        check("mi300x_8", schedule.name, pair);
    }
    check("h200_4", "async_tp", pair, {{"host", "pytorch_eager"}, {"repeat", "steady"}});
    check("mi300x_1", "serial", pair);
    check("h200_4", "concurrent", "llama3_70b_mlp_layer");
    check("mi210_128", "concurrent", "bert_large_b32_n128_fp32");
    CHECK(checked >= 2 * 12);
    for (const char* key :
         {"/losses_us/host", "/losses_us/power", "/steady/power_W", "/energy_J/total", "/notes/0"}) {
        INFO(key);
        CHECK(keys.contains(key));
    }
}

TEST_CASE("the run schema knows every key that a run config may have, and no other") {
    const Schema schema("run");
    const auto with_operator = [](const std::string& text) {
        return Json{
            {"topology", "a"}, {"schedule", "b"}, {"workload", {{"operators", {parse_json(text, "op")}}}}};
    };
    const Json whole = parse_json(R"({"schema": 1, "topology": "mi300x_8.json", "schedule": "ficco",
        "params": {"chunks": 4, "agent": "dma", "scatter": true},
        "schedules": {"up": {"schedule": "ring_chunked", "params": {"chunks": 2}}, "Gate up": {"schedule": "t3"}}, "seeds": 5, "engine": "flow",
        "repeat": "steady", "host": "cuda", "cost_models": ["gemm_tiled"], "without": ["launch"], "what_if": {"device.dma.peer_engines": "2x"},
        "workload": {"schema": 1, "name": "a", "description": "b", "source": "c", "collective": "all_gather",
                     "order": "collective_first", "shard_dim": "k",
                     "gemm": {"m": 1, "n": 2, "k": 3, "dtype": "bf16"}}})",
                                  "whole");
    CHECK(disagreement(schema, whole) == "");
    CHECK(disagreement(schema, {{"topology", "a"}, {"schedule", "b"}}) == "");  // the workload has a default
    CHECK(disagreement(schema, {{"topology", "a"}, {"schedule", "b"}, {"workload", "c"}}) == "");
    const std::vector<std::string> operators{
        R"({"name": "A whole one", "type": "gemm", "m": 1, "n": 2, "k": 3, "dtype": "fp8", "batch": 512})",
        R"({"name": "a", "type": "collective", "collective": "all_reduce", "bytes": 1.5})",
        R"({"name": "a", "type": "collective", "collective": "all_reduce", "bytes": 2, "dtype": "bf16"})",
        R"({"name": "a", "type": "memory_bound", "read_bytes": 0.5, "write_bytes": 0, "needs": []})",
        R"({"name": "a", "type": "reduction", "bytes": 8, "parts": 4, "needs": []})"};
    for (const std::string& text : operators) {
        CHECK(disagreement(schema, with_operator(text)) == "");
        Json unknown = with_operator(text);
        unknown["workload"]["operators"][0]["colour"] = "red";
        CHECK(schema.errors(reread(unknown), "schema") != "");
        CHECK(error_of([&] { read_workload({unknown["workload"], "config", "/workload"}); }) != "");
    }
    // Without any one of its keys: both accept it, or neither.
    std::size_t without_one = 0;
    const auto agree = [&](const Json& config) {
        INFO(config.dump());
        const bool read = error_of([&] { read_run_config(config, "config"); }).empty() &&
                          config.contains("topology") && config.contains("schedule") &&
                          (!config.contains("workload") || config["workload"].is_string() ||
                           error_of([&] {
                               read_workload({config["workload"], "config", "/workload"});
                           }).empty());
        CHECK(schema.errors(reread(config), "schema").empty() == read);
        ++without_one;
    };
    for (const auto& item : whole.items()) {
        Json less = whole;
        less.erase(item.key());
        agree(less);
    }
    for (const auto& item : whole["workload"].items()) {
        Json less = whole;
        less["workload"].erase(item.key());
        agree(less);
    }
    for (const std::string& text : operators) {
        const Json config = with_operator(text);
        for (const auto& item : config["workload"]["operators"][0].items()) {
            Json less = config;
            less["workload"]["operators"][0].erase(item.key());
            agree(less);
        }
    }
    CHECK(without_one > 30);
}

TEST_CASE("operators of a workload file and of a run config have one schema") {
    const auto read = [](const std::string& name) {
        return read_json_file(source_folder / "configs" / "schema" / (name + ".schema.json"));
    };
    const Json file = read("workload"), config = read("run");
    CHECK(file["properties"]["operators"] ==
          config["properties"]["workload"]["oneOf"][1]["properties"]["operators"]);
}

}  // namespace overlap::test::schema_agreement_test
