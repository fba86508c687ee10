// Is the placement right? A plain executor of placed graphs, in any order that the edges and streams allow,
// must give the result of the serial schedule, to the digit, for every
// registered schedule that has a placement.
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <set>

#include "sim/schedules/pieces.hpp"
#include "sim/schedules/placement.hpp"
#include "tests/contract/laws.hpp"

namespace overlap::test::placement_laws_test {
namespace {

/// Whole numbers small enough that every sum is exact.
double element(std::size_t matrix, std::int64_t row, std::int64_t column) {
    return static_cast<double>((static_cast<std::int64_t>(matrix) * 7 + row * 5 + column * 3) % 11 - 5);
}

class PlainExecutor {
public:
    PlainExecutor(const TaskGraph& graph, const Placement& placement, bool gathers)
        : graph_(graph), placement_(placement) {
        for (const Buffer& buffer : placement.buffers) {
            const auto cells = static_cast<std::size_t>(buffer.rows * buffer.columns);
            cells_.emplace_back(cells, std::numeric_limits<double>::quiet_NaN());
            writes_.emplace_back(cells, 0);
            arrivals_.emplace_back(cells, 0);
        }
        for (const Block& input : placement.inputs) {
            const Buffer& buffer = placement.buffers[input.buffer];
            const bool is_b = buffer.name == "b";
            const auto gpu = static_cast<std::size_t>(buffer.gpu);
            const std::size_t matrix = is_b ? 100 + gpu : gathers ? 0 : gpu;
            for_each_cell(input, [&](std::int64_t row, std::int64_t column) {
                at(input, row, column) = element(matrix, input.row + row, input.column + column);
            });
        }
    }

    /// Any task that is ready, by chance.
    void run(unsigned seed) {
        std::mt19937 random(seed);
        std::vector<bool> done(graph_.size());
        for (std::size_t count = 0; count < graph_.size(); ++count) {
            std::vector<TaskId> ready;
            for (TaskId id = 0; id < graph_.size(); ++id) {
                bool is_ready = !done[id];
                const TaskId before = graph_.stream_predecessor(id);
                is_ready = is_ready && (before == id || done[before]);
                graph_.for_each_edge_into(
                    id, [&](const Edge& edge) { is_ready = is_ready && done[edge.predecessor]; });
                if (is_ready) ready.push_back(id);
            }
            REQUIRE(!ready.empty());
            const TaskId id = ready[random() % ready.size()];
            execute(id);
            done[id] = true;
        }
    }

    std::vector<double> results() const {
        std::vector<double> all;
        for (const Block& result : placement_.results)
            for_each_cell(result, [&](std::int64_t row, std::int64_t column) {
                all.push_back(cells_[result.buffer][index(result, row, column)]);
            });
        return all;
    }

    /// Cells that copies between GPUs brought, by GPU; and how often one cell
    /// was written, or brought, at most.
    std::vector<std::int64_t> brought() const {
        std::vector<std::int64_t> cells(static_cast<std::size_t>(graph_.gpus()));
        for (std::size_t i = 0; i < arrivals_.size(); ++i)
            for (const int count : arrivals_[i])
                cells[static_cast<std::size_t>(placement_.buffers[i].gpu)] += count;
        return cells;
    }
    int most_arrivals() const { return most(arrivals_); }
    int most_writes() const { return most(writes_); }

private:
    template <class Visit>
    static void for_each_cell(const Block& block, Visit&& visit) {
        for (std::int64_t row = 0; row < block.rows; ++row)
            for (std::int64_t column = 0; column < block.columns; ++column) visit(row, column);
    }
    std::size_t index(const Block& block, std::int64_t row, std::int64_t column) const {
        return static_cast<std::size_t>((block.row + row) * placement_.buffers[block.buffer].columns +
                                        block.column + column);
    }
    double& at(const Block& block, std::int64_t row, std::int64_t column) {
        return cells_.at(block.buffer).at(index(block, row, column));
    }
    static int most(const std::vector<std::vector<int>>& counts) {
        int result = 0;
        for (const auto& buffer : counts)
            for (const int count : buffer) result = std::max(result, count);
        return result;
    }

    void execute(TaskId id) {
        const Task& task = graph_[id];
        const Operands& operands = placement_.tasks[id];
        for (const auto* blocks : {&operands.from, &operands.to})
            for (const Block& block : *blocks) {
                const Buffer& buffer = placement_.buffers.at(block.buffer);
                REQUIRE(block.row >= 0);
                REQUIRE(block.rows > 0);
                REQUIRE(block.row + block.rows <= buffer.rows);
                REQUIRE(block.column + block.columns <= buffer.columns);
            }
        if (const auto* shape = std::get_if<GemmShape>(&task.work))
            return multiply(*shape, task.gpu, operands);
        if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
            CHECK(placement_.buffers[operands.from[0].buffer].gpu == copy->src);
            CHECK(placement_.buffers[operands.to[0].buffer].gpu == copy->dst);
            for_each_cell(operands.to[0], [&](std::int64_t row, std::int64_t column) {
                ++arrivals_[operands.to[0].buffer][index(operands.to[0], row, column)];
            });
        }
        if (task.kind() == TaskKind::reduce) return sum(operands);
        REQUIRE(operands.from.size() == operands.to.size());
        for (std::size_t i = 0; i < operands.from.size(); ++i)
            for_each_cell(operands.to[i], [&](std::int64_t row, std::int64_t column) {
                at(operands.to[i], row, column) = at(operands.from[i], row, column);
                ++writes_[operands.to[i].buffer][index(operands.to[i], row, column)];
            });
    }

    void multiply(const GemmShape& shape, int gpu, const Operands& operands) {
        const Block &a = operands.from.at(0), &b = operands.from.at(1), &c = operands.to.at(0);
        REQUIRE(std::array{a.rows, a.columns, b.rows, b.columns, c.rows, c.columns} ==
                std::array{shape.m, shape.k, shape.k, shape.n, shape.m, shape.n});
        for (const Block* block : {&a, &b, &c}) CHECK(placement_.buffers[block->buffer].gpu == gpu);
        for_each_cell(c, [&](std::int64_t row, std::int64_t column) {
            double value = shape.accumulate ? at(c, row, column) : 0;
            for (std::int64_t k = 0; k < shape.k; ++k) value += at(a, row, k) * at(b, k, column);
            at(c, row, column) = value;
            if (!shape.accumulate) ++writes_[c.buffer][index(c, row, column)];
        });
    }

    void sum(const Operands& operands) {
        for_each_cell(operands.to[0], [&](std::int64_t row, std::int64_t column) {
            double value = 0;
            for (const Block& part : operands.from) value += at(part, row, column);
            at(operands.to[0], row, column) = value;
        });
    }

    const TaskGraph& graph_;
    const Placement& placement_;
    std::vector<std::vector<double>> cells_;
    std::vector<std::vector<int>> writes_, arrivals_;
};

struct Outcome {
    std::vector<double> results;
    std::vector<std::int64_t> brought;
    int most_arrivals, most_writes;
};

Outcome outcome(const ScheduleEntry& entry, const Workload& workload, const Topology& topology,
                const Json& given, unsigned seed) {
    const bool chunked = entry.takes("chunks");
    Json with_chunks = given;
    if (chunked && !given.contains("chunks")) with_chunks["chunks"] = 3;
    const bool gathers = workload.pair()->order == Order::collective_first;
    const ScheduleParams params = entry.read({with_chunks, "params"}, workload, topology);
    const TaskGraph graph = entry.build(workload, topology, params);
    const Placement placement = place(graph, entry, workload, topology, params);
    PlainExecutor executor(graph, placement, gathers);
    executor.run(seed);
    return {executor.results(), executor.brought(), executor.most_arrivals(), executor.most_writes()};
}

Workload form(CollectiveKind kind, GemmShape gemm) {
    const Order order = kind == CollectiveKind::all_gather ? Order::collective_first : Order::gemm_first;
    return {"pair", "", pair_of(kind, order, gemm)};
}

Workload gathered_results(GemmShape gemm) {
    return {"pair", "", pair_of(CollectiveKind::all_gather, Order::gemm_first, gemm)};
}

bool accepts(const ScheduleEntry& entry, const Json& params) {
    for (const auto& [key, value] : params.items())
        if (!entry.takes(key)) return false;
    return true;
}

}  // namespace

TEST_CASE("a placed graph gives the result of serial in any order that it allows") {
    const std::vector<Json> variants{Json::object(),
                                     {{"chunks", 1}},
                                     {{"chunks", 2}, {"transfer", "push"}},
                                     {{"transfer", "pull"}, {"order", "ascending"}},
                                     {{"gemm", "chunk"}},
                                     {{"agent", "cu"}},
                                     {{"algorithm", "ring"}},
                                     {{"comm_shape", "2d"}, {"uniformity", "uniform"}},
                                     {{"comm_shape", "2d"}, {"granularity", "unfused"}}};
    int cases = 0;
    std::set<std::string> placed;
    for (const std::string machine : {"h200_2", "h200_4", "mi300x_8"}) {
        const Topology& topology = shipped_machine(machine).topology;
        for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
            const Workload workload = form(kind, {30, 7, 9});  // nothing divides evenly
            const std::vector<double> expected =
                outcome(find_schedule("serial"), workload, topology, Json::object(), 0).results;
            REQUIRE(!expected.empty());
            CHECK(std::count_if(expected.begin(), expected.end(), [](double x) { return x != 0; }) >
                  static_cast<std::ptrdiff_t>(expected.size() / 2));
            for (const ScheduleEntry& entry : schedules())
                for (const Json& given : variants) {
                    if (entry.own_kernel || !entry.handles(workload) || !accepts(entry, given)) continue;
                    if (entry.name == "two_streams") continue;  // its barriers have no place
                    INFO(machine << " " << name_of(kind) << " " << entry.name << " " << given.dump());
                    for (unsigned seed = 1; seed <= 2; ++seed) {
                        const Outcome found = outcome(entry, workload, topology, given, seed);
                        CHECK(found.results == expected);  // NaN where nothing was written: not equal
                        CHECK(found.most_arrivals == 1);
                        CHECK(found.most_writes == 1);
                        for (int rank = 0; rank < topology.gpus(); ++rank) {
                            // Rows of the other shards; before a reduction, P − 1 times those of a shard (in
                            // a ring each of another shard).
                            const std::int64_t own = part_length(30, topology.gpus(), rank);
                            const std::int64_t cells = found.brought[static_cast<std::size_t>(rank)];
                            if (kind == CollectiveKind::all_gather) CHECK(cells == (30 - own) * 9);
                            if (kind == CollectiveKind::reduce_scatter &&
                                given != Json({{"algorithm", "ring"}}) && entry.name != "ring_chunked")
                                CHECK(cells == (topology.gpus() - 1) * own * 7);
                        }
                    }
                    placed.insert(entry.name);
                    ++cases;
                }
        }
    }
    CHECK(cases >= 3 * 2 * 50);
    CHECK(placed.size() == schedules().size() - 5);  // all but those, and concurrent, which has no such pair
}

TEST_CASE("where results are gathered every GPU ends with the C of all, and is brought each once") {
    // 30 × 7 on each GPU; rows and columns in 3 uneven chunks.
    int cases = 0;
    for (const std::string machine : {"h200_2", "h200_4", "mi300x_8"}) {
        const Topology& topology = shipped_machine(machine).topology;
        const auto ranks = static_cast<std::size_t>(topology.gpus());
        const Workload workload = gathered_results({30, 7, 9});
        // Element (row, column) of the C of a rank by the definition of both operands.
        std::vector<double> expected;
        for (std::size_t rank = 0; rank < ranks; ++rank)
            for (std::int64_t row = 0; row < 30; ++row)
                for (std::int64_t column = 0; column < 7; ++column) {
                    double sum = 0;
                    for (std::int64_t k = 0; k < 9; ++k)
                        sum += element(rank, row, k) * element(100 + rank, k, column);
                    expected.push_back(sum);
                }
        for (const ScheduleEntry& entry : schedules())
            for (const Json& given : {Json::object(), Json{{"transfer", "pull"}}, Json{{"gemm", "chunk"}},
                                      Json{{"algorithm", "ring"}}, Json{{"chunks", 4}}}) {
                if (entry.own_kernel || !entry.handles(workload) || !accepts(entry, given)) continue;
                INFO(machine << " " << entry.name << " " << given.dump());
                const Outcome found = outcome(entry, workload, topology, given, 1);
                REQUIRE(found.results.size() == ranks * expected.size());
                for (std::size_t rank = 0; rank < ranks; ++rank)
                    CHECK(std::equal(
                        expected.begin(), expected.end(),
                        found.results.begin() + static_cast<std::ptrdiff_t>(rank * expected.size())));
                CHECK(found.most_arrivals == 1);
                for (const std::int64_t cells : found.brought)
                    CHECK(cells == static_cast<std::int64_t>(ranks - 1) * 30 * 7);
                ++cases;
            }
    }
    CHECK(cases == 3 * (3 + 4 + 3 + 3 + 3));  // serial, ring, hierarchical, two that cut a shard
}

TEST_CASE("a graph without a placement says why") {
    const Topology& topology = shipped_machine("h200_4").topology;
    const auto reason = [&](const std::string& name, const Workload& workload,
                            const Json& given = Json::object()) {
        return error_of([&] { outcome(find_schedule(name), workload, topology, given, 0); });
    };
    const Workload gather = form(CollectiveKind::all_gather, {64, 16, 16});
    CHECK_THAT(reason("flag_gated", gather), Catch::Contains("poll or set flags"));
    CHECK_THAT(reason("hetero_fused_1d", gather, {{"scatter", false}}), Catch::Contains("scatter is false"));
    CHECK_THAT(reason("serial", gather, {{"algorithm", "library"}}),
               Catch::Contains("no placement for a task"));
    CHECK_THAT(reason("serial", form(CollectiveKind::all_reduce, {64, 16, 16})),
               Catch::Contains("no placement for a workload 'gemm > all_reduce'"));
    CHECK_THAT(reason("serial", {"", "",
                                 pair_of(CollectiveKind::all_gather, Order::collective_first, {64, 16, 64},
                                         ShardDim::k)}),
               Catch::Contains("sharded along m"));
    const Machine two_nodes = shipped_machine("mi300x_16");
    CHECK_THAT(error_of([&] {
                   outcome(find_schedule("hierarchical_chunked"), gather, two_nodes.topology, Json::object(),
                           0);
               }),
               Catch::Contains("no placement for a copy of several shards"));
}

}  // namespace overlap::test::placement_laws_test
