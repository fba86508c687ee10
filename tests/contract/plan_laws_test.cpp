// Is a plan that is written and read again the same run, to the last bit, for everything that makes plans?
#include <catch2/catch.hpp>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/core/archive.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/planned.hpp"
#include "tests/contract/laws.hpp"
#include "tests/contract/random_list.hpp"
#include "tests/contract/random_plan.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::plan_laws_test {
namespace {

Resolver& resolver() {
    static Resolver shared(shipped);
    return shared;
}

/// The config of a run of the plan of `text`.
RunConfig run_of(const std::string& text, const std::string& topology = "") {
    RunConfig config;
    config.origin = "test";
    config.topology = topology;
    config.read = std::make_shared<const Plan>(read_plan(parse_json(text, "plan"), "plan"));
    return config;
}

/// Whether the graphs have the same tasks and edges in the same order.
bool same(const TaskGraph& one, const TaskGraph& other) {
    if (one.size() != other.size() || one.edge_count() != other.edge_count()) return false;
    const auto edges = [](const TaskGraph& graph, TaskId id) {
        std::vector<std::tuple<TaskId, double, double>> all;
        graph.for_each_edge_into(id, [&](const Edge& e) { all.emplace_back(e.predecessor, e.from, e.to); });
        return all;
    };
    const auto facts = [](const Task& t) {
        return std::tie(t.work, t.gpu, t.stream, t.shard, t.chunk, t.priority, t.gemm_cus, t.persistent,
                        t.continues, t.op);
    };
    for (TaskId id = 0; id < one.size(); ++id)
        if (facts(one[id]) != facts(other[id]) || edges(one, id) != edges(other, id)) return false;
    return one.stream_names() == other.stream_names() && one.runs_by_data() == other.runs_by_data();
}

void check_round_trip(const Json& config) {
    INFO(config.dump().substr(0, 400));
    const Scenario scenario = resolver().resolve(read_run_config(config, "test"));
    const Plan plan = plan_of(scenario);
    for (const bool whole : {false, true}) {
        const RunConfig again = run_of(json_text(to_json(plan, whole)));
        REQUIRE(same(again.read->graph, plan.graph));
        if (whole) continue;
        const Seconds makespan = makespan_of(scenario);
        CHECK(makespan_of(resolver().resolve(again)) == makespan);
        CHECK(makespan_of(resolver().resolve_for_numbers(again)) == makespan);
    }
}

const std::vector<std::string> machines{"mi300x_8", "h200_4", "mi250x_8", "mi300x_16"};

Json config_of(const std::string& machine, const std::string& schedule, const Workload& workload,
               Json params) {
    return {{"topology", machine},
            {"schedule", schedule},
            {"workload", to_json(workload)},
            {"params", std::move(params)}};
}

}  // namespace

TEST_CASE("a plan that is written and read again has the same makespan to the digit, for every schedule") {
    int cases = 0;
    for (const std::string& machine : machines)
        cases += for_every_schedule([&](const ScheduleEntry& entry, const Workload& workload) {
            Json params = Json::object();
            if (entry.takes("chunks")) params["chunks"] = 3;
            check_round_trip(config_of(machine, entry.name, workload, params));
        });
    CHECK(cases >= 4 * 70);
}

TEST_CASE("... for every preset and collective algorithm, its DMA commands and copy kernels") {
    const GemmShape gemm{2048, 512, 1024};
    int cases = 0;
    for (const std::string& preset : shipped.names("schedules"))
        for (const auto& [kind, order] : {std::pair(CollectiveKind::all_gather, Order::collective_first),
                                          std::pair(CollectiveKind::reduce_scatter, Order::gemm_first)}) {
            const Workload pair{"pair", "", pair_of(kind, order, gemm)};
            if (!shipped.schedule(preset)->handles(pair)) continue;
            check_round_trip(config_of("h200_4", preset, pair, Json::object()));
            ++cases;
        }
    for (const std::string& algorithm : collective_algorithm_names())
        for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                          CollectiveKind::all_reduce, CollectiveKind::all_to_all})
            for (const Json& more :
                 {Json::object(), Json{{"agent", "cu"}}, Json{{"dma_commands", "broadcast"}},
                  Json{{"dma_commands", "swap"}}, Json{{"dma_commands", "back_to_back"}},
                  Json{{"prelaunch", true}}, Json{{"transfer", "pull"}}}) {
                Json params = more;
                params["algorithm"] = algorithm;
                const Json config = config_of("mi300x_8", "serial",
                                              {"pair", "", pair_of(kind, Order::independent, gemm)}, params);
                if (error_of([&] { makespan_of(resolver().resolve(read_run_config(config, "test"))); }) != "")
                    continue;
                check_round_trip(config);
                ++cases;
            }
    CHECK(cases >= 40);
}

TEST_CASE("... for every list: shipped, drawn, by data, with streams, groups and pairs that are cut") {
    int cases = 0;
    const auto check = [&](Json config) {
        if (error_of([&] { makespan_of(resolver().resolve(read_run_config(config, "test"))); }) != "") return;
        check_round_trip(config);
        ++cases;
    };
    for (const std::string& name : shipped.names("workloads")) {
        const Json file = read_json_file(shipped.find("workloads", name));
        if (!file.contains("operators")) continue;
        for (const char* schedule : {"serial", "concurrent", "hetero_fused_1d"})
            check({{"topology", "h200_8"}, {"schedule", schedule}, {"workload", name}});
    }
    for (unsigned seed = 0; seed < 20; ++seed) {
        RandomList list(seed);
        const Json operators = list.operators(seed % 2 == 0);
        for (const char* order : {"program", "data"})
            check({{"topology", "mi300x_8"},
                   {"schedule", "concurrent"},
                   {"workload", {{"name", "drawn"}, {"order", order}, {"operators", operators}}}});
    }
    CHECK(cases >= 40);
}

TEST_CASE("... with hosts, effects off, what-ifs and in a steady state, all numbers of the run") {
    const Json base{{"topology", "h200_4"},
                    {"schedule", "hetero_fused_1d"},
                    {"workload",
                     {{"collective", "all_gather"},
                      {"gemm", {{"m", 8192}, {"n", 2560}, {"k", 8192}, {"dtype", "bf16"}}}}}};
    for (const Json& more :
         {Json::object(), Json{{"host", "pytorch_eager"}}, Json{{"without", {"contention", "launch"}}},
          Json{{"what_if", {{"device.dma.peer_engines", 2}}}}, Json{{"repeat", "steady"}},
          Json{{"topology", "mi300x_8"}}}) {
        INFO(more.dump());
        Json config = base;
        config.update(more);
        const Scenario scenario = resolver().resolve(read_run_config(config, "test"));
        const RunConfig again = run_of(json_text(to_json(plan_of(scenario))));
        const RunResult one = run(scenario);
        for (const Scenario& planned : {resolver().resolve(again), resolver().resolve_for_numbers(again)}) {
            const RunResult other = run(planned);
            const auto numbers = [](const RunResult& r) {
                return std::vector{r.makespan,       r.phases.serial,       r.phases.gemm,
                                   r.phases.comm,    r.phases.exposed_comm, r.ideal,
                                   r.range.p10,      r.range.p90,           r.losses.contention,
                                   r.losses.launch,  r.losses.packing,      r.losses.decomposition,
                                   r.losses.pattern, r.losses.fill_drain,   r.losses.host,
                                   r.losses.power};
            };
            CHECK(numbers(one) == numbers(other));
            CHECK(one.used.staging == other.used.staging);
        }
    }
}

// 8 GPUs, 8 chunks: 73 tasks a rank that are written once for all.
TEST_CASE("plans are small: tasks that ranks do alike stand there once") {
    const auto sizes = [](int chunks) {
        const Json config{
            {"topology", "mi300x_8"}, {"schedule", "hetero_fused_1d"}, {"params", {{"chunks", chunks}}}};
        Plan plan = plan_of(resolver().resolve(read_run_config(config, "test")));
        const std::string placed = json_text(to_json(plan));
        plan.placement.reset();
        return std::pair(json_text(to_json(plan)).size(), compressed(placed).size());
    };
    CHECK(sizes(8).first < 10'000);
    CHECK(sizes(8).second < 10'000);
    CHECK(sizes(1024).first < 2'000'000);
    CHECK(sizes(1024).second < 2'000'000);
}

TEST_CASE(
    "a plan that says each_rank is simulated by one of the GPUs that are alike, one with an odd task is not") {
    const Json config{{"topology", "mi300x_8"}, {"schedule", "hetero_fused_1d"}, {"params", {{"chunks", 8}}}};
    Json plan = to_json(plan_of(resolver().resolve(read_run_config(config, "test"))));
    const Scenario alike = resolver().resolve_for_numbers(run_of(json_text(plan)));
    REQUIRE(alike.params.transfers.alike);
    CHECK(alike.params.transfers.alike->representatives() == 1);
    CHECK(run(alike, {.record = false}).simulation.simulated_gpus == 1);
    plan.erase("buffers"), plan.erase("inputs"), plan.erase("results");
    for (Json& entry : plan["tasks"])
        for (Json& line : entry["each_rank"]) line.erase("from"), line.erase("to");
    plan["tasks"].push_back({{"gpu", 3}, {"kind", "local_copy"}, {"stream", "local"}, {"bytes", 1e6}});
    const Scenario odd = resolver().resolve_for_numbers(run_of(json_text(plan)));
    CHECK_FALSE(odd.params.transfers.alike);
    CHECK(run(odd, {.record = false}).simulation.simulated_gpus == 8);
}

TEST_CASE("100 random plans take the same time by both engines") {
    double largest = 0;
    int decided = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        INFO("seed " << seed);
        Scenario scenario = resolver().resolve(run_of(json_text(RandomPlan(seed, 4).json()), "mi300x_8"));
        scenario.settings.seeds = 1;
        const Seconds flow = makespan_of(scenario);
        scenario.settings.engine = "simgrid";
        std::optional<Seconds> reference;
        error_of([&] { reference = makespan_of(scenario); });
        if (!reference) continue;
        ++decided;
        largest = std::max(largest, std::abs(flow / *reference - 1));
        CHECK(std::abs(flow / *reference - 1) <= 1e-6);
    }
    CHECK(decided == 100);
    CHECK(largest <= 1e-6);
}

}  // namespace overlap::test::plan_laws_test
