// Laws of the two orders of lists: "data" is work-conserving list scheduling, "program" keeps every stream in its order.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "sim/run/experiment.hpp"
#include "sim/run/run.hpp"
#include "tests/contract/random_list.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::order_laws_test {
namespace {

Scenario scenario_of(const std::string& machine, const Json& operators, const Json& more = Json::object()) {
    Json config{{"topology", machine}, {"schedule", "concurrent"}, {"workload", {{"operators", operators}}}};
    config.merge_patch(more);
    return resolved(read_run_config(config, "test"));
}
double makespan_us(const Scenario& scenario) {
    return to_microseconds(predict(scenario).makespan);
}
Json with_order(const char* order) {
    return {{"workload", {{"order", order}}}};
}

Json computes(const std::string& name, int rank, double us, const Json& needs = Json::array()) {
    return {{"name", name},  {"type", "memory_bound"}, {"read_bytes", 0}, {"write_bytes", 0},
            {"time_us", us}, {"ranks", {rank}},        {"needs", needs}};
}
Json sends(const std::string& name, int from, int to, const Json& needs) {
    return {{"name", name},   {"type", "send"}, {"bytes", 1024},
            {"from", {from}}, {"to", {to}},     {"needs", needs}};
}

/// A GEMM of one tile on rank 0: it leaves the other compute units of an MI300X to others.
Json one_tile(const std::string& name, int length, const Json& needs = Json::array()) {
    return {{"name", name},    {"type", "gemm"}, {"m", 128},      {"n", 128}, {"k", (1 << 20) * length},
            {"dtype", "bf16"}, {"ranks", {0}},   {"needs", needs}};
}

/// List scheduling: whenever a rank is free, it starts the first operator of the list whose data are there. `message_us`:
/// from the end of an operator to the start of the one on another rank that needs it.
double list_scheduled(const Json& operators, int ranks, double message_us) {
    std::map<std::string, double> ends;
    std::vector<double> free(static_cast<std::size_t>(ranks));
    const auto ready = [&](const Json& op) {  // below 0: not known yet
        double time = 0;
        for (const Json& need : op["needs"]) {
            if (!ends.contains(need)) return -1.0;
            time = std::max(time, ends[need]);
        }
        return time;
    };
    for (std::size_t left = operators.size(); left > 0;) {
        for (const Json& op : operators)
            if (op["type"] == "send" && !ends.contains(op["name"]) && ready(op) >= 0) {
                ends[op["name"]] = ready(op) + message_us;
                --left;
            }
        const Json* next = nullptr;
        double start = 1e300;
        for (const Json& op : operators) {  // ties: the first of the list
            if (op["type"] == "send" || ends.contains(op["name"]) || ready(op) < 0) continue;
            const double at = std::max(ready(op), free[op["ranks"][0].get<std::size_t>()]);
            if (at < start) std::tie(next, start) = std::pair(&op, at);
        }
        if (next == nullptr) continue;
        free[(*next)["ranks"][0].get<std::size_t>()] = ends[(*next)["name"]] =
            start + (*next)["time_us"].get<double>();
        --left;
    }
    return *std::ranges::max_element(free);
}

/// Micro-batches one after another, as STAGE writes them: forward through the stages, backward through them.
Json pipeline(int stages, int batches, double forward_us, double backward_us) {
    Json list = Json::array();
    for (int b = 0; b < batches; ++b)
        for (int i = 0; i < 2 * stages; ++i) {
            const bool forward = i < stages;
            const int stage = forward ? i : 2 * stages - 1 - i, next = forward ? stage + 1 : stage - 1;
            const std::string name =
                std::string(forward ? "F" : "B") + std::to_string(b) + "." + std::to_string(stage);
            Json needs = Json::array();
            if (forward ? stage > 0 : stage < stages - 1) needs.push_back(name + ".in");
            if (!forward) needs.push_back("F" + name.substr(1));
            list.push_back(computes(name, stage, forward ? forward_us : backward_us, needs));
            if (next >= 0 && next < stages)
                list.push_back(
                    sends((forward ? "F" : "B") + std::to_string(b) + "." + std::to_string(next) + ".in",
                          stage, next, {name}));
        }
    return list;
}

}  // namespace

TEST_CASE("by data a drawn list takes what list scheduling of its operators takes") {
    const std::vector<std::string> machines{"h200_8", "mi300x_8", "h100_8"};
    int close = 0;
    for (unsigned seed = 0; seed < 60; ++seed) {
        RandomList draw(seed);
        const Json operators = draw.operators(false);
        const std::string& machine = machines[seed % machines.size()];
        // A message of 1 MB alone, between two operators of 1 ms.
        Json message = sends("m", 0, 1, {"a"});
        message["bytes"] = 1'000'000;
        const double message_us = makespan_us(scenario_of(machine, {computes("a", 0, 1000), message,
                                                                    computes("b", 1, 1000, {"m"})})) -
                                  2000;
        const double expected = list_scheduled(operators, draw.ranks(), message_us);
        const double us = makespan_us(scenario_of(machine, operators));
        INFO(machine << " seed " << seed << ": " << us << " us, by list scheduling " << expected);
        close += std::abs(us / expected - 1) <= 0.03 ? 1 : 0;
        CHECK(us <= 1.1 * expected);
    }
    CHECK(close >= 58);
}

TEST_CASE("a pipeline written micro-batch by micro-batch overlaps its micro-batches by data") {
    // Rank 0: F0 F1 wait B0 B1. F0, F0 on rank 1, B0 there, then B0 and B1 on rank 0: rank 1 is done with B1 at 7 ms, B1
    // on rank 0 at 9. In the order of the list rank 0 waits with F1 until B0 is done.
    const Json two = pipeline(2, 2, 1000, 2000);
    CHECK(makespan_us(scenario_of("h100_2", two)) == Approx(9000).epsilon(0.02));
    CHECK(makespan_us(scenario_of("h100_2", two, with_order("program"))) == Approx(12'000).epsilon(0.02));
    // Eight stages, 16 micro-batches: the last stage begins after seven forwards, is busy for 16 (F + B), and seven
    // backwards follow, if no stage holds it up.
    const double us = makespan_us(scenario_of("mi300x_8", pipeline(8, 16, 500, 1000)));
    CHECK(us >= 7 * 500 + 16 * 1500 + 7 * 1000);
    CHECK(us <= 1.1 * (7 * 500 + 16 * 1500 + 7 * 1000));
}

TEST_CASE("by data both engines agree, and one of alike GPUs stands for all") {
    for (unsigned seed = 100; seed < 106; ++seed) {
        RandomList draw(seed);
        const Json operators = draw.operators(true);
        const std::string machine = seed % 2 == 0 ? "mi300x_8" : "h200_8";
        INFO(machine << " seed " << seed);
        const Json one{{"seeds", 1}};
        Json other = one;
        other["engine"] = "simgrid";
        CHECK(makespan_us(scenario_of(machine, operators, one)) ==
              Approx(makespan_us(scenario_of(machine, operators, other))).epsilon(1e-6));
    }
    // On every GPU: "late" waits for a gather, so that "other" runs before it.
    const Json gather{
        {"name", "gather"}, {"type", "collective"}, {"collective", "all_gather"}, {"bytes", 1 << 28}};
    const auto everywhere = [](const std::string& name, const Json& needs) {
        return Json{{"name", name}, {"type", "gemm"},  {"m", 4096},     {"n", 4096},
                    {"k", 4096},    {"dtype", "bf16"}, {"needs", needs}};
    };
    const Json alike{gather, everywhere("late", {"gather"}), everywhere("other", Json::array())};
    const Scenario scenario = scenario_of("mi300x_8", alike);
    const TaskGraph graph = scenario.graph();
    const Experiment experiment(scenario, graph);
    CHECK(experiment.simulated_gpus() == 1);
    const EngineResult whole =
        make_engine(default_engine)->run(graph, experiment.costs(0), scenario.machine->resources);
    const auto [makespans, simulated] = experiment.median_run();
    CHECK(simulated.makespan == whole.makespan);
    for (TaskId id = 0; id < graph.size(); ++id) CHECK(simulated.tasks[id].end == whole.tasks[id].end);
    CHECK(makespan_us(scenario) < makespan_us(scenario_of("mi300x_8", alike, with_order("program"))));
}

TEST_CASE("operators of a named stream run one at a time, beside other streams") {
    // GEMMs of one tile, so that several run beside each other; alone each takes `one`.
    const double one = makespan_us(scenario_of("mi300x_8", Json::array({one_tile("a", 1)})));
    Json list{one_tile("a", 1), one_tile("b", 1), one_tile("c", 1)};
    for (const char* order : {"program", "data"}) {
        INFO(order);
        CHECK(makespan_us(scenario_of("mi300x_8", list, with_order(order))) == Approx(3 * one).epsilon(0.1));
        Json two = list;
        for (const std::size_t i : {1, 2}) two[i]["stream"] = "side";
        CHECK(makespan_us(scenario_of("mi300x_8", two, with_order(order))) == Approx(2 * one).epsilon(0.15));
        two[2]["stream"] = "another";
        CHECK(makespan_us(scenario_of("mi300x_8", two, with_order(order))) < 1.7 * one);
        // A message that names a stream waits for what is before it there, and holds up what is behind it.
        Json held{one_tile("a", 1), sends("m", 0, 1, Json::array()), one_tile("c", 1)};
        for (Json& op : held) op["stream"] = "side";
        const Scenario scenario = scenario_of("mi300x_8", held, with_order(order));
        const auto found = predict(scenario).timeline;
        const auto times_of = [&](TaskKind kind) {
            std::vector<Span> spans;
            for (const Span& span : found.spans())
                if (span.kind == kind) spans.push_back(span);
            return spans;
        };
        const auto gemms = times_of(TaskKind::gemm), copies = times_of(TaskKind::copy);
        REQUIRE(gemms.size() == 2);
        REQUIRE(copies.size() == 1);
        CHECK(copies[0].start >= gemms[0].end);
        CHECK(gemms[1].start >= copies[0].end);
    }
}

TEST_CASE("a hardware queue runs what its streams have in the order in which it was enqueued") {
    // "b" waits for "a"; "c", three times as long, waits for nothing. Each has a stream.
    const double one = makespan_us(scenario_of("mi300x_8", Json::array({one_tile("a", 1)})));
    Json list{one_tile("a", 1), one_tile("b", 1, {"a"}), one_tile("c", 3)};
    list[1]["stream"] = "second";
    list[2]["stream"] = "third";
    const TemporaryFolder folder;
    const auto on_queues = [&](int queues, const char* waits, const char* order) {
        const std::string file = (folder.path() / (std::to_string(queues) + waits + ".json")).string();
        std::ofstream(file) << Json{{"schema", 1},
                                    {"name", "host"},
                                    {"description", "shares hardware queues"},
                                    {"hardware_queues", {{"value", queues}, {"source", "test"}}},
                                    {"queue_waits", waits}};
        return scenario_of("mi300x_8", list, {{"host", file}, {"workload", {{"order", order}}}});
    };
    const auto times = [&](int queues, const char* waits) {
        return makespan_us(on_queues(queues, waits, "program")) / one;
    };
    CHECK(times(0, "begin") == Approx(3).epsilon(0.1));
    CHECK(times(3, "begin") == Approx(3).epsilon(0.1));
    CHECK(times(1, "begin") == Approx(4).epsilon(0.1));  // c begins with b
    CHECK(times(1, "end") == Approx(5).epsilon(0.1));    // one after another
    CHECK(times(2, "end") == Approx(4).epsilon(0.1));    // a, then c; b beside c
    CHECK(error_of([&] { on_queues(1, "begin", "data"); }).find("the order of list 'custom' is data") !=
          std::string::npos);
}

}  // namespace overlap::test::order_laws_test
