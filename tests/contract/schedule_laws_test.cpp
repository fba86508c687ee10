// Laws of the task graph of every registered schedule, on every form of workload that it handles.
#include <catch2/catch.hpp>

#include "tests/contract/laws.hpp"

namespace overlap::test::schedule_laws_test {
namespace {

struct PerRank {
    std::vector<double> flops, bytes_in, bytes_out;
    std::vector<int> tasks;
};

PerRank totals(const TaskGraph& graph, int ranks) {
    const auto size = static_cast<std::size_t>(ranks);
    PerRank sums{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size),
                 std::vector<int>(size)};
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Task& task = graph[id];
        const auto gpu = static_cast<std::size_t>(task.gpu);
        ++sums.tasks.at(gpu);
        if (const auto* shape = std::get_if<GemmShape>(&task.work)) sums.flops[gpu] += shape->flops().si();
        for_each_transfer(task, ranks, [&](int src, int dst, double bytes) {
            sums.bytes_in.at(static_cast<std::size_t>(dst)) += bytes;
            sums.bytes_out.at(static_cast<std::size_t>(src)) += bytes;
        });
    }
    return sums;
}

/// Operands that the collectives of a workload move, an all-reduce counting twice; of a rank, times (P−1)/P.
double operand_bytes(const Workload& workload, int ranks) {
    const auto passes = [](CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2.0 : 1.0; };
    if (const Pair* pair = workload.pair()) return passes(pair->collective) * pair->operand(ranks).si();
    double sum = 0;
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
        if (const auto* work = std::get_if<CollectiveWork>(&op.work))
            sum += passes(work->kind) * work->operand.si();
    return sum;
}

double gemm_flops(const Workload& workload) {
    if (const Pair* pair = workload.pair()) return pair->gemm.flops().si();
    double sum = 0;
    for (const Operator& op : std::get<std::vector<Operator>>(workload.content))
        if (const auto* shape = std::get_if<GemmShape>(&op.work)) sum += shape->flops().si();
    return sum;
}

/// How many times over a schedule moves the bytes of its collective: whole collectives between nodes are
/// hierarchical by default, and that forwards pieces of an all_to_all: 2P − N − L of them instead of P − 1.
double forwarding(const ScheduleEntry& entry, const Workload& workload, const Topology& topology) {
    const bool whole = entry.takes("algorithm");
    const Pair* pair = workload.pair();
    if (topology.nodes() == 1 || !whole || pair == nullptr || pair->collective != CollectiveKind::all_to_all)
        return 1;
    const double p = topology.gpus();
    return (2 * p - topology.nodes() - topology.gpus_per_node()) / (p - 1);
}

/// Bytes by which the shards of a pair may differ from the mean: a row (a column with tokens in K) for each
/// rank, of each pass.
double unevenness(const Workload& workload, int ranks) {
    const Pair* pair = workload.pair();
    if (pair == nullptr) return 0;
    const double longest = static_cast<double>(std::max({pair->gemm.m, pair->gemm.n, pair->gemm.k}));
    return 2 * ranks * longest * element_size(pair->operand_type()).si();
}

std::string label(const ScheduleEntry& entry, const Workload& workload, const std::string& machine) {
    return entry.name + " | " + workload.form() + " | " + machine;
}

/// Schedules × forms that they handle.
int expected_cases() {
    int cases = 0;
    for (const ScheduleEntry& entry : schedules())
        for (const Workload& workload : workload_forms()) cases += entry.handles(workload) ? 1 : 0;
    return cases;
}

}  // namespace

TEST_CASE(
    "every schedule does the FLOPs of the workload on every rank, and moves the bytes of its collective") {
    int cases = 0;
    for (const auto& [name, machine] : law_machines()) {
        const int ranks = machine.topology.gpus();
        const double peers = ranks - 1;
        cases += for_every_schedule(
            [&, &name = name, &machine = machine](const ScheduleEntry& entry, const Workload& workload) {
                INFO(label(entry, workload, name));
                const PerRank sums = totals(build(entry, workload, machine.topology), ranks);
                // Each operand goes to (P−1)/P of the ranks that hold it: P ranks · (P−1)/P · operand in all.
                double all_in = 0;
                const double moved =
                    forwarding(entry, workload, machine.topology) * operand_bytes(workload, ranks) * peers;
                const double mean = moved / ranks;
                for (int rank = 0; rank < ranks; ++rank) {
                    const auto r = static_cast<std::size_t>(rank);
                    CHECK(sums.flops[r] == Approx(gemm_flops(workload)).epsilon(1e-12));
                    CHECK(std::abs(sums.bytes_in[r] - mean) <= unevenness(workload, ranks) + 1e-6);
                    CHECK(std::abs(sums.bytes_out[r] - mean) <= unevenness(workload, ranks) + 1e-6);
                    CHECK(sums.tasks[r] > 0);
                    all_in += sums.bytes_in[r];
                }
                CHECK(all_in == Approx(moved).epsilon(1e-12));
            });
    }
    CHECK(cases == 6 * expected_cases());
    CHECK(expected_cases() >= 14 * 5);
}

TEST_CASE("where sizes divide evenly, every rank receives and sends exactly its closed form") {
    const Machine& machine = law_machines().at("h200_4");
    int cases = 0;
    for (Workload workload : workload_forms()) {
        if (workload.pair() == nullptr) continue;
        std::get<Pair>(workload.content).gemm = {1200, 240, 480};
        for (const ScheduleEntry& entry : schedules()) {
            if (!entry.handles(workload)) continue;
            INFO(label(entry, workload, "h200_4"));
            const PerRank sums = totals(build(entry, workload, machine.topology), 4);
            for (std::size_t rank = 0; rank < 4; ++rank) {
                CHECK(sums.bytes_in[rank] == Approx(0.75 * operand_bytes(workload, 4)).epsilon(1e-12));
                CHECK(sums.bytes_out[rank] == Approx(0.75 * operand_bytes(workload, 4)).epsilon(1e-12));
            }
            ++cases;
        }
    }
    CHECK(cases >= 70);
}

TEST_CASE("every accepted parameter keeps the bytes and the FLOPs") {
    const std::vector<Json> variants{{{"agent", "cu"}},
                                     {{"transfer", "push"}},
                                     {{"transfer", "pull"}},
                                     {{"order", "ascending"}},
                                     {{"scatter", false}},
                                     {{"gemm", "chunk"}},
                                     {{"comm_shape", "2d"}},
                                     {{"uniformity", "uniform"}},
                                     {{"granularity", "fused"}},
                                     {{"chunks", 1}},
                                     {{"chunks", 7}},
                                     {{"algorithm", "ring"}},
                                     {{"algorithm", "library"}}};
    const Machine& machine = law_machines().at("h200_4");
    int cases = 0;
    for (const Json& variant : variants) {
        const std::string key = variant.begin().key();
        for_every_schedule([&](const ScheduleEntry& entry, const Workload& workload) {
            if (!entry.takes(key)) return;
            const Pair* pair = workload.pair();
            if (variant.value(key, Json()) == "ring" && pair != nullptr &&
                pair->collective == CollectiveKind::all_to_all)
                return;
            INFO(label(entry, workload, variant.dump()));
            const PerRank sums = totals(build(entry, workload, machine.topology, variant), 4);
            double all_in = 0;
            for (std::size_t rank = 0; rank < 4; ++rank) {
                CHECK(sums.flops[rank] == Approx(gemm_flops(workload)).epsilon(1e-12));
                all_in += sums.bytes_in[rank];
            }
            CHECK(all_in == Approx(3 * operand_bytes(workload, 4)).epsilon(1e-12));
            ++cases;
        });
    }
    CHECK(cases > 400);
}

namespace {

bool same_edges(const TaskGraph& one, const TaskGraph& other) {
    for (std::size_t i = 0; i < one.edge_count(); ++i) {
        const Edge a = one.edge(i), b = other.edge(i);
        if (a.predecessor != b.predecessor || a.successor != b.successor || a.from != b.from || a.to != b.to)
            return false;
    }
    return true;
}

bool same_graph(const TaskGraph& one, const TaskGraph& other) {
    if (one.size() != other.size() || one.edge_count() != other.edge_count()) return false;
    for (TaskId id = 0; id < one.size(); ++id) {
        const Task &a = one[id], &b = other[id];
        if (a.work != b.work || a.gpu != b.gpu || a.stream != b.stream || a.priority != b.priority ||
            a.gemm_cus != b.gemm_cus || a.cu_mask != b.cu_mask)
            return false;
    }
    return same_edges(one, other);
}

/// The graph, or none where these parameters do not go together.
std::optional<TaskGraph> graph_of(const ScheduleEntry& entry, const Workload& workload, const Json& params) {
    std::optional<TaskGraph> graph;
    error_of([&] { graph = build(entry, workload, law_machines().at("mi300x_8").topology, params); });
    return graph;
}

/// Whether two of these values of a parameter make two graphs, whatever the other parameters are.
bool has_effect(const ScheduleEntry& entry, const std::string& parameter, const std::vector<Json>& values) {
    static const std::vector<Workload> forms = workload_forms();
    static const std::vector<Json> others{
        Json::object(), {{"agent", "cu"}}, {{"algorithm", "library"}}, {{"gemm_cus", 100}}};
    for (const Workload& workload : forms)
        for (Json params : others) {
            if (!entry.handles(workload) || (!params.empty() && !entry.takes(params.begin().key()))) continue;
            std::optional<TaskGraph> first;
            for (const Json& value : values) {
                params[parameter] = value;
                std::optional<TaskGraph> graph = graph_of(entry, workload, params);
                if (graph && first && !same_graph(*first, *graph)) return true;
                if (!first) first = std::move(graph);
            }
        }
    return false;
}

}  // namespace

TEST_CASE("every parameter that a schedule declares changes its graph for some workload") {
    const std::map<std::string, std::vector<Json>> values{
        {"chunks", {1, 3}},
        {"agent", {"dma", "cu"}},
        {"order", {"rotation", "ascending"}},
        {"dma_commands", {"copy", "one_stream", "back_to_back"}},
        {"prelaunch", {false, true}},
        {"transfer", {"pull", "push"}},
        {"copy_cus", {1, 3}},
        {"copy_priority", {"normal", "high"}},
        {"scatter", {true, false}},
        {"gemm", {"shard", "chunk"}},
        {"comm_shape", {"1d", "2d"}},
        {"uniformity", {"uniform", "hetero"}},
        {"granularity", {"fused", "unfused"}},
        {"algorithm", {"direct", "ring"}},
        {"channels", {8, 16}},
        {"gemm_cus", {100, 200}},
        {"cu_mask", {"even", "low_bits"}}};
    for (const ParameterInfo& info : schedule_parameters()) CHECK(values.contains(info.name));
    for (const ScheduleEntry& entry : schedules())
        for (const std::string& parameter : entry.parameters) {
            INFO(entry.name << ": " << parameter);
            // The named points of ficco's space take its parameters; where nothing is staged nothing is scattered.
            const bool nothing_to_scatter =
                parameter == "scatter" && !entry.barriers && !entry.point({}).staged();
            CHECK(has_effect(entry, parameter, values.at(parameter)) != nothing_to_scatter);
        }
}

TEST_CASE("a graph may be as large as its limit, and no larger, for every schedule") {
    int cases = 0;
    for (const auto& [name, machine] : law_machines())
        for (const Json& given :
             {Json::object(), Json{{"scatter", false}}, Json{{"algorithm", "ring"}}, Json{{"gemm", "chunk"}},
              Json{{"granularity", "unfused"}}, Json{{"comm_shape", "2d"}, {"uniformity", "uniform"}}})
            for_every_schedule(
                [&, &name = name, &machine = machine](const ScheduleEntry& entry, const Workload& workload) {
                    INFO(label(entry, workload, name) << given.dump());
                    const auto of_limit = [&](GraphLimit limit) {
                        return build(entry, workload, machine.topology, given, limit);
                    };
                    std::optional<TaskGraph> graph;
                    error_of(
                        [&] { graph = of_limit({}); });  // it does not take these parameters, or not together
                    if (!graph) return;
                    const std::size_t tasks = graph->size(), edges = graph->edge_count();
                    CHECK(of_limit({tasks, edges}).size() == tasks);
                    CHECK_THROWS_AS(of_limit({tasks - 1, edges}), GraphTooLarge);
                    if (edges > 0) CHECK_THROWS_AS(of_limit({tasks, edges - 1}), GraphTooLarge);
                    ++cases;
                });
    CHECK(cases >= 1000);
}

TEST_CASE("pieces of which there are too many are refused before they take memory") {
    // Copies of pieces: 1024 · 1023 · 60,000, in a ring, direct, or by kernels that store; over NICs, 7 and 127 a GPU.
    const Topology topology = shipped.topology("mi300x_1024_rail");
    const GemmShape large{1 << 26, 1 << 16, 1 << 16};
    int cases = 0;
    for (const Workload& workload :
         {Workload{"", "", pair_of(CollectiveKind::all_gather, Order::collective_first, large)},
          Workload{"", "", pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, large)}})
        for (const ScheduleEntry& entry : schedules()) {
            if (!entry.takes("chunks") || !entry.handles(workload)) continue;
            INFO(entry.name << " " << workload.form());
            try {
                build(entry, workload, topology, {{"chunks", 60'000}}, {1'000'000, 1'000'000});
                FAIL("was built");
            } catch (const GraphTooLarge& large_graph) {
                CHECK(large_graph.tasks > 8'000'000'000);
            }
            ++cases;
        }
    CHECK(cases >= 20);
}

TEST_CASE("on one GPU every schedule is the GEMM alone, whatever the parameters") {
    const Machine& machine = law_machines().at("mi300x_1");
    int cases = 0;
    for (const Json& given : {Json::object(), Json{{"gemm", "chunk"}}, Json{{"uniformity", "uniform"}}}) {
        for_every_schedule([&](const ScheduleEntry& entry, const Workload& workload) {
            const auto accepted = [&](const std::string& key) { return entry.takes(key); };
            if (workload.pair() == nullptr || (!given.empty() && !accepted(given.begin().key()))) return;
            INFO(label(entry, workload, given.dump()));
            const TaskGraph graph = build(entry, workload, machine.topology, given);
            REQUIRE(graph.size() == 1);
            CHECK(std::get<GemmShape>(graph[0].work) == workload.pair()->gemm);
            ++cases;
        });
    }
    CHECK(cases >= 80);
}

TEST_CASE("a form that a schedule does not handle is an error that names those that do") {
    int refused = 0;
    for (const ScheduleEntry& entry : schedules()) {
        for (const Workload& workload : workload_forms()) {
            const std::string error = error_of([&] { require_handled(entry, workload); });
            INFO(label(entry, workload, ""));
            CHECK(error.empty() == entry.handles(workload));
            if (error.empty()) continue;
            CHECK_THAT(error, Catch::Contains("'" + entry.name + "'") && Catch::Contains(workload.form()) &&
                                  Catch::Contains("schedules that do: serial"));
            ++refused;
        }
    }
    CHECK(refused >= 10);
}

TEST_CASE("every form of workload has a schedule beside serial") {
    for (const Workload& workload : workload_forms()) {
        int handling = 0;
        for (const ScheduleEntry& entry : schedules()) handling += entry.handles(workload) ? 1 : 0;
        INFO(workload.form());
        CHECK(handling >= 2);
    }
}

}  // namespace overlap::test::schedule_laws_test
