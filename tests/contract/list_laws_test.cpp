// Laws of lists of operators whose pairs are run by schedules: which tasks wait for which, work and bytes, times against
// those of the pairs alone.
#include <catch2/catch.hpp>

#include "sim/run/experiment.hpp"
#include "tests/contract/laws.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::list_laws_test {
namespace {

const std::vector<std::string> machines{"mi300x_1", "h200_4", "mi300x_8", "mi250x_8", "mi300x_16"};

Json gemm_json(const std::string& name, const Json& needs, std::int64_t m, std::int64_t n, std::int64_t k) {
    return {{"name", name}, {"type", "gemm"},  {"m", m},        {"n", n},
            {"k", k},       {"dtype", "bf16"}, {"needs", needs}};
}
Json collective_json(const std::string& name, const Json& needs, const std::string& kind,
                     std::int64_t bytes) {
    return {{"name", name}, {"type", "collective"}, {"collective", kind}, {"bytes", bytes}, {"needs", needs}};
}
Json streaming_json(const std::string& name, const Json& needs, double bytes) {
    return {{"name", name},
            {"type", "memory_bound"},
            {"read_bytes", bytes},
            {"write_bytes", bytes},
            {"needs", needs}};
}

/// norm, a pair with the collective first, an operator, a pair with the GEMM first, another operator; bf16.
Json layer(const std::string& before, const std::string& behind, std::int64_t m = 1024,
           std::int64_t hidden = 512) {
    return {
        {"name", "layer"},
        {"operators",
         {streaming_json("norm", Json::array(), 1e8), collective_json("in", {"norm"}, before, m * hidden * 2),
          gemm_json("up", {"in"}, m, 768, hidden), streaming_json("act", {"up"}, 3e6),
          gemm_json("down", {"act"}, m, hidden, 384),
          collective_json("out", {"down"}, behind, m * hidden * 2), streaming_json("add", {"out"}, 2e6)}}};
}

Scenario scenario_of(const std::string& machine, const std::string& schedule, const Json& workload,
                     const Json& more = Json::object()) {
    Json config{{"topology", machine}, {"schedule", schedule}, {"workload", workload}};
    config.update(more);
    return resolved(read_run_config(config, "test"));
}

/// Whether a schedule takes a whole list by itself. All others run pairs of it.
bool takes_list(const ScheduleEntry& entry, const Json& list) {
    return entry.handles(read_workload(ConfigObject(list, "test")));
}

/// Calls `law(scenario)` for every schedule of pairs that serves a pair of a layer, on every machine.
template <class Law>
int for_every_list(Law&& law) {
    int cases = 0;
    for (const std::string& machine : machines)
        for (const ScheduleEntry& entry : schedules())
            for (const auto& [before, behind] :
                 {std::pair{"all_gather", "reduce_scatter"}, std::pair{"all_to_all", "all_to_all"},
                  std::pair{"all_gather", "all_reduce"}}) {
                if (entry.takes("algorithm") || takes_list(entry, layer(before, behind))) continue;
                Json more = Json::object();
                if (entry.takes("chunks")) more = {{"params", {{"chunks", 2}}}};
                Scenario scenario;
                const std::string refused = error_of(
                    [&] { scenario = scenario_of(machine, entry.name, layer(before, behind), more); });
                if (refused.find("serves no pair") != std::string::npos) continue;
                INFO(machine << " " << entry.name << " " << before << " " << behind << " " << refused);
                REQUIRE(refused == "");
                law(scenario);
                ++cases;
            }
    return cases;
}

/// By task: the set of tasks that surely ended before it starts, or before its end where an edge is of progress.
std::vector<std::vector<bool>> all_before(const TaskGraph& graph) {
    std::vector<std::vector<bool>> before(graph.size(), std::vector<bool>(graph.size()));
    const auto add = [&](TaskId id, TaskId earlier) {
        before[id][earlier] = true;
        for (TaskId other = 0; other < earlier; ++other)
            if (before[earlier][other]) before[id][other] = true;
    };
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (graph.stream_predecessor(id) != id) add(id, graph.stream_predecessor(id));
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            if (edge.from == 1) add(id, edge.predecessor);
        });
    }
    return before;
}

TaskId task_of(const TaskGraph& graph, int op, int gpu) {
    for (TaskId id = 0; id < graph.size(); ++id)
        if (graph[id].op == op && graph[id].gpu == gpu) return id;
    FAIL("no such task");
    return 0;
}

}  // namespace

TEST_CASE("in a list every task waits for what its rank needs, and for no other rank's operators before") {
    int own_copies = 0;
    const int cases = for_every_list([&](const Scenario& scenario) {
        const TaskGraph graph = scenario.graph();
        const auto before = all_before(graph);
        const int ranks = scenario.machine->topology.gpus();
        std::vector<bool> cut(7);
        for (const PairChoice& pair : scenario.pairs) cut[pair.first] = cut[pair.first + 1] = true;
        for (TaskId id = 0; id < graph.size(); ++id) {
            const Task& task = graph[id];
            REQUIRE(task.op >= 0);
            const auto* copy = std::get_if<CopyWork>(&task.work);
            // Before the first pair: "norm" of the rank whose operand is sent, or that computes.
            if (task.op == 1 && copy != nullptr && (task.shard == copy->src || task.shard == -1)) {
                CHECK(before[id][task_of(graph, 0, copy->src)]);
                ++own_copies;
            }
            if (task.op == 2) CHECK(before[id][task_of(graph, 0, task.gpu)]);
            // Behind a pair: all tasks that end on the rank; those of other ranks may still run.
            for (const int next : {3, 6}) {
                if (task.op != next) continue;
                for (TaskId earlier = 0; earlier < id; ++earlier) {
                    const auto* moved = std::get_if<CopyWork>(&graph[earlier].work);
                    const int place = moved != nullptr ? moved->dst : graph[earlier].gpu;
                    const bool of_pair = graph[earlier].op == next - 1 || graph[earlier].op == next - 2;
                    // A reduction's parts on the way end before the sums that wait for them.
                    if (of_pair && place == task.gpu) {
                        INFO("task " << graph[earlier].name() << " op " << graph[earlier].op);
                        CHECK(before[id][earlier]);
                    }
                }
            }
        }
        // No barrier, but where the schedule has its own: rank 0 starts "act" without having to wait for another rank's GEMM.
        const bool barriers = scenario.pairs.size() > 0 && scenario.pairs.front().schedule->barriers;
        if (ranks > 1 && cut[1] && !barriers) {
            const TaskId act = task_of(graph, 3, 0);
            for (TaskId id = 0; id < graph.size(); ++id)
                if (graph[id].op == 2 && graph[id].gpu != 0) CHECK_FALSE(before[act][id]);
        }
    });
    CHECK(cases >= 150);
    CHECK(own_copies >= 10'000);
}

TEST_CASE(
    "a GEMM that a schedule cuts waits for the collective before its pair, behind its first pieces too") {
    // The sums end on another stream than the GEMM's, so that only edges make it wait.
    int cases = 0;
    for (const std::string machine : {"h200_4", "mi300x_8"})
        for (const ScheduleEntry& entry : schedules()) {
            const Json operators{collective_json("sync", Json::array(), "reduce_scatter", 1 << 20),
                                 collective_json("in", {"sync"}, "all_gather", 1024 * 512 * 2),
                                 gemm_json("up", {"in"}, 1024, 768, 512)};
            Scenario scenario;
            if (entry.takes("algorithm") ||
                error_of([&] {
                    scenario = scenario_of(machine, entry.name, {{"operators", operators}});
                }) != "" ||
                scenario.pairs.empty())
                continue;
            INFO(machine << " " << entry.name);
            const TaskGraph graph = scenario.graph();
            const auto before = all_before(graph);
            for (TaskId id = 0; id < graph.size(); ++id)
                for (TaskId sum = 0; graph[id].op == 2 && sum < id; ++sum)
                    if (graph[sum].op == 0 && graph[sum].kind() == TaskKind::reduce &&
                        graph[sum].gpu == graph[id].gpu && graph[id].stream == compute_stream)
                        CHECK(before[id][sum]);
            ++cases;
        }
    CHECK(cases >= 24);
}

TEST_CASE("a list whose pairs are cut does the same work, moves the same bytes, and keeps its limit") {
    const int cases = for_every_list([&](const Scenario& scenario) {
        const TaskGraph graph = scenario.graph();
        const int ranks = scenario.machine->topology.gpus();
        const auto& operators = std::get<std::vector<Operator>>(scenario.workload.content);
        std::vector<double> flops(static_cast<std::size_t>(ranks) * operators.size());
        std::vector<double> bytes(operators.size());
        for (TaskId id = 0; id < graph.size(); ++id) {
            const auto op = static_cast<std::size_t>(graph[id].op);
            if (const auto* shape = std::get_if<GemmShape>(&graph[id].work))
                flops[op * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(graph[id].gpu)] +=
                    shape->flops().si();
            for_each_transfer(graph[id], ranks, [&](int, int, double moved) { bytes[op] += moved; });
        }
        for (std::size_t op = 0; op < operators.size(); ++op) {
            if (const auto* shape = std::get_if<GemmShape>(&operators[op].work))
                for (int rank = 0; rank < ranks; ++rank)
                    CHECK(flops[op * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)] ==
                          Approx(shape->flops().si()).epsilon(1e-12));
            const auto* work = std::get_if<CollectiveWork>(&operators[op].work);
            if (work == nullptr || scenario.machine->topology.nodes() > 1)
                continue;  // forwards an all-to-all
            const double passes = work->kind == CollectiveKind::all_reduce ? 2 : 1;
            CHECK(bytes[op] == Approx(passes * (ranks - 1) * work->operand.si()).epsilon(1e-12));
        }
        // Pairs take their part of the list's limit.
        CHECK(scenario.graph({graph.size(), graph.edge_count()}).size() == graph.size());
        CHECK_THROWS_AS(scenario.graph({graph.size() - 1, graph.edge_count()}), GraphTooLarge);
    });
    CHECK(cases >= 150);
}

TEST_CASE("a list of one pair takes what the pair takes, to the last digit") {
    int cases = 0;
    for (const std::string& machine : machines)
        for (const ScheduleEntry& entry : schedules())
            for (const std::string kind : {"all_gather", "all_to_all", "reduce_scatter", "all_reduce"})
                for (const std::string& agent : agent_names) {
                    const bool first = kind == "all_gather" || kind == "all_to_all";
                    const std::int64_t bytes = 2048 * (first ? 512 : 1024) * 2;
                    const Json operators = first ? Json{collective_json("c", Json::array(), kind, bytes),
                                                        gemm_json("g", {"c"}, 2048, 1024, 512)}
                                                 : Json{gemm_json("g", Json::array(), 2048, 1024, 512),
                                                        collective_json("c", {"g"}, kind, bytes)};
                    if (entry.takes("algorithm") || takes_list(entry, {{"operators", operators}})) continue;
                    const Json more{{"params", {{"agent", agent}}}, {"seeds", 3}};
                    const Json gemm{{"m", 2048}, {"n", 1024}, {"k", 512}, {"dtype", "bf16"}};
                    Scenario pair, list;
                    const std::string refused = error_of([&] {
                        pair = scenario_of(machine, entry.name, {{"collective", kind}, {"gemm", gemm}}, more);
                    });
                    if (refused != "") continue;
                    list = scenario_of(machine, entry.name, {{"operators", operators}}, more);
                    INFO(machine << " " << entry.name << " " << kind << " " << agent);
                    RunResult mine = run(pair), listed = run(list);
                    CHECK(listed.makespan == mine.makespan);
                    CHECK(listed.phases.exposed_comm == mine.phases.exposed_comm);
                    CHECK(listed.used.staging == mine.used.staging);
                    CHECK(listed.losses.contention == mine.losses.contention);
                    CHECK(listed.losses.launch == mine.losses.launch);
                    CHECK(listed.losses.packing == mine.losses.packing);
                    CHECK(listed.losses.decomposition == mine.losses.decomposition);
                    CHECK(listed.phases.comm == mine.phases.comm);
                    // A list's `serial` pulls all its collectives; a pair's pushes what a GEMM makes.
                    if (first || agent == "cu") {
                        CHECK(listed.phases.serial == mine.phases.serial);
                        CHECK(listed.ideal == mine.ideal);
                    }
                    ++cases;
                }
    CHECK(cases >= 300);
}

TEST_CASE("pairs one behind the other take no longer than each alone, and no less than what bounds them") {
    int cases = 0, overlapped = 0;
    for (const std::string machine : {"h200_4", "mi300x_8", "h100_8"})
        for (const std::string schedule : {"shard_p2p", "ring_chunked", "hetero_fused_1d",
                                           "uniform_unfused_1d", "flag_gated", "shard_direct"}) {
            INFO(machine << " " << schedule);
            const std::int64_t m = 8192, hidden = 4096;
            const Json in = collective_json("in", Json::array(), "all_gather", m * hidden * 2);
            const Json up = gemm_json("up", {"in"}, m, 3584, hidden);
            const Json down = gemm_json("down", {"up"}, m, hidden, 3584),
                       alone = gemm_json("down", Json::array(), m, hidden, 3584);
            const Json out = collective_json("out", {"down"}, "reduce_scatter", m * hidden * 2);
            Scenario both = scenario_of(machine, schedule, {{"operators", {in, up, down, out}}});
            Scenario first = scenario_of(machine, schedule, {{"operators", {in, up}}});
            Scenario second = scenario_of(machine, schedule, {{"operators", {alone, out}}});
            first.machine = second.machine = both.machine;  // the clock of a long run, for all three
            // Hosts side by side enqueue the pulls of both pairs in another order than those of each alone.
            both.host = first.host = second.host = nullptr;
            REQUIRE(both.pairs.size() == 2);
            const Seconds together = predict(both).makespan;
            const Seconds apart = predict(first).makespan + predict(second).makespan;
            // A pair behind another one may have to wait for a poll, or find its engines in another order.
            CHECK(together / apart <= 1.005);
            const TaskGraph graph = both.graph();
            const Experiment experiment(both, graph);
            const LeastTimes least = experiment.least_times();
            CHECK(together >= std::max(least.computation, least.communication));
            CHECK(together >= experiment.communication({}, 0) * (1 - 1e-9));
            overlapped += together < run(both).phases.serial ? 1 : 0;
            ++cases;
        }
    CHECK(cases == 18);
    CHECK(overlapped >= 9);
}

TEST_CASE("losses of a list with cut pairs add up, and its config read back gives the same run") {
    int cases = 0, decomposed = 0;
    for (const std::string schedule : {"ring_chunked", "hetero_fused_1d", "flag_gated", "t3"}) {
        const Scenario scenario =
            scenario_of("h200_4", schedule, layer("all_gather", "reduce_scatter", 4096, 2048));
        const RunResult result = run(scenario);
        INFO(schedule);
        const Losses& l = result.losses;
        CHECK((l.contention + l.launch + l.packing + l.decomposition + l.pattern + l.fill_drain).si() ==
              Approx((result.makespan - result.ideal).si()).margin(1e-12));
        decomposed += l.decomposition > Seconds() ? 1 : 0;
        const RunResult again = run(resolved(read_run_config(scenario.config(), "again")));
        CHECK(again.makespan == result.makespan);
        CHECK(again.phases.serial == result.phases.serial);
        CHECK(again.config == result.config);
        ++cases;
    }
    CHECK(cases == 4);
    CHECK(decomposed >= 2);
}

TEST_CASE("schedules by GEMM: each pair its own, the rest as the schedule of the list says") {
    const Json workload = layer("all_gather", "reduce_scatter");
    const Json two{
        {"schedules",
         {{"up", {{"schedule", "shard_p2p"}}},
          {"down", {{"schedule", "ring_chunked"}, {"params", {{"chunks", 2}, {"agent", "cu"}}}}}}}};
    const Scenario both = scenario_of("h200_4", "serial", workload, two);
    REQUIRE(both.pairs.size() == 2);
    CHECK(both.pairs[0].schedule->name == "shard_p2p");
    CHECK(both.pairs[0].params.transfers.direction == Direction::pull);
    CHECK(both.pairs[1].schedule->name == "ring_chunked");
    CHECK(both.pairs[1].params.chunks == 2);
    CHECK(both.pairs[1].params.transfers.direction == Direction::push);
    CHECK(both.whole_pairs == "");
    const Seconds serial = predict(scenario_of("h200_4", "serial", workload)).makespan;
    CHECK(run(both).phases.serial == serial);
    // `serial` for every pair waits and moves as `serial` of the list, if both pull.
    const Json pulled{{"schedule", "serial"}, {"params", {{"transfer", "pull"}}}};
    const Scenario whole =
        scenario_of("h200_4", "serial", workload, {{"schedules", {{"up", pulled}, {"down", pulled}}}});
    CHECK(predict(whole).makespan == serial);
    // Pairs that are not served run whole, and a line says so.
    const Scenario half = scenario_of("h200_4", "t3", workload);
    REQUIRE(half.pairs.size() == 1);
    CHECK(half.whole_pairs == "pairs that run whole: in > up (t3 does not serve all_gather > gemm)");
}

TEST_CASE("of pairs that share a GEMM the first is cut, unless the schedules of the run say otherwise") {
    const Json operators{collective_json("in", Json::array(), "all_gather", 1024 * 512 * 2),
                         gemm_json("mm", {"in"}, 1024, 768, 512),
                         collective_json("out", {"mm"}, "reduce_scatter", 1024 * 768 * 2)};
    const Scenario first = scenario_of("h200_4", "shard_p2p", {{"operators", operators}});
    REQUIRE(first.pairs.size() == 1);
    CHECK(first.pairs[0].pair.collective == CollectiveKind::all_gather);
    CHECK(first.whole_pairs == "pairs that run whole: mm > out (mm is in another pair)");
    const Scenario second = scenario_of("h200_4", "serial", {{"operators", operators}},
                                        {{"schedules", {{"mm", {{"schedule", "t3"}}}}}});
    REQUIRE(second.pairs.size() == 1);
    CHECK(second.pairs[0].pair.collective == CollectiveKind::reduce_scatter);
}

TEST_CASE("what lists refuse") {
    const auto refused = [](const std::string& schedule, const Json& workload, const Json& more) {
        return error_of([&] { scenario_of("h200_4", schedule, workload, more); });
    };
    const Json work = layer("all_gather", "reduce_scatter"), none = Json::object();
    const auto chosen = [](const std::string& gemm, const Json& choice) {
        return Json{{"schedules", {{gemm, choice}}}};
    };
    CHECK(refused("serial", work, chosen("upp", {{"schedule", "t3"}})) ==
          "test: /schedules/upp: is no GEMM of the list (did you mean 'up'?)");
    CHECK(
        refused("serial", work, chosen("up", {{"schedule", "t3"}})) ==
        "test: /schedules/up: is in no pair that 't3' serves: in > up (t3 does not serve all_gather > gemm)");
    CHECK(refused("serial", work, chosen("up", {{"schedule", "shard_p2p"}, {"params", {{"chunk", 2}}}}))
              .find("test: /schedules/up/params/chunk: is no parameter of this schedule") == 0);
    CHECK(refused("serial", work, chosen("up", {{"schedule", "shard_p2p"}, {"speed", 2}}))
              .find("/schedules/up/speed") != std::string::npos);
    CHECK(refused("serial", work, chosen("up", {{"params", Json::object()}}))
              .find("/schedules/up/schedule: is missing") != std::string::npos);
    CHECK(refused(
              "serial",
              {{"collective", "all_gather"}, {"gemm", {{"m", 64}, {"n", 64}, {"k", 64}, {"dtype", "bf16"}}}},
              chosen("up", {{"schedule", "t3"}})) ==
          "test: /schedules: is for lists of operators, but the workload is a pair");
    // A collective of other bytes than the GEMM's operand.
    Json other = work;
    other["operators"][1]["bytes"] = 1000;
    other["operators"][5]["bytes"] = 1000;
    CHECK(
        refused("shard_p2p", other, none) ==
        "test: /schedule: 'shard_p2p' serves no pair of this list: in > up (1000 bytes, but the GEMM's operand has "
        "1048576); down > out (1000 bytes, but the GEMM's operand has 1048576); whole lists are served by serial and "
        "concurrent");
    // A gather of weights: the GEMM gets its A from another operator.
    const Json weights{streaming_json("norm", Json::array(), 1),
                       collective_json("gather", Json::array(), "all_gather", 1024 * 512 * 2),
                       gemm_json("mm", {"norm", "gather"}, 1024, 768, 512)};
    CHECK(refused("shard_p2p", {{"operators", weights}}, none).find("may be its B") != std::string::npos);
    // The first operator, with nothing before it.
    const Json gemm = Json::array({gemm_json("mm", Json::array(), 1024, 768, 512)});
    CHECK(
        refused("serial", {{"operators", gemm}}, chosen("mm", {{"schedule", "shard_p2p"}})) ==
        "test: /schedules/mm: is in no pair that 'shard_p2p' serves: no collective beside this GEMM depends on it");
    CHECK(refused("shard_p2p", {{"operators", {streaming_json("a", Json::array(), 1)}}}, none)
              .find("it has no GEMM beside a collective") != std::string::npos);
}

}  // namespace overlap::test::list_laws_test
