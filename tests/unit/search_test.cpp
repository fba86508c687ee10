#include "sim/search/search.hpp"

#include <catch2/catch.hpp>

#include "sim/plan/plan_checks.hpp"
#include "sim/run/run.hpp"
#include "tests/resolved.hpp"

namespace overlap::test::search_test {
namespace {

SearchSpace space_for(const Pair& pair, int ranks, std::int64_t tile = 16) {
    SearchSpace space{.pair = pair,
                      .ranks = ranks,
                      .ranks_per_node = ranks,
                      .tile = tile,
                      .compute_units = 132,
                      .cus = 8,
                      .agents = {Agent::dma, Agent::cu}};
    for (std::size_t i = 0; i < dimension_names.size(); ++i)
        space.free.push_back(static_cast<SearchDimension>(i));
    return space;
}

const GemmShape shape{1030, 640, 1024};  // shards of 258 and 257 rows on 4 ranks
const std::vector<Pair> pairs{pair_of(CollectiveKind::all_gather, Order::collective_first, shape),
                              pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, shape),
                              pair_of(CollectiveKind::all_reduce, Order::gemm_first, shape)};

/// Throws UserError if a GEMM or a sum reads what is not there; checks that each rank does all of its work once.
void check_work(const Plan& plan, const SearchSpace& space) {
    require_written(plan);
    double flops = 0, bytes = 0, sums = 0;
    for (TaskId id = 0; id < plan.graph.size(); ++id) {
        const Work& work = plan.graph[id].work;
        const Operands& places = plan.placement->tasks[id];
        if (const auto* gemm = std::get_if<GemmShape>(&work)) {
            flops += gemm->flops().si();
            CHECK(gemm->accumulate == (gemm->accumulate && places.to.size() == 1));
            CHECK((places.to[0].rows == gemm->m && places.to[0].columns == gemm->n &&
                   places.from[0].columns == gemm->k));
        }
        if (const auto* copy = std::get_if<CopyWork>(&work)) {
            bytes += copy->bytes.si();
            CHECK(plan.graph[id].gpu == (copy->direction == Direction::pull ? copy->dst : copy->src));
        }
        if (const auto* sum = std::get_if<ReduceWork>(&work)) sums += sum->bytes.si();
    }
    const double ranks = space.ranks, operand = space.pair.operand(space.ranks).si();
    CHECK(flops == Approx(ranks * space.pair.gemm.flops().si()));
    const bool twice = space.pair.collective == CollectiveKind::all_reduce;
    CHECK(bytes == Approx((ranks - 1) * operand * (twice ? 2 : 1)));
    CHECK(sums == Approx(space.gathers() ? 0 : operand));
}

}  // namespace

TEST_CASE("every genome that mutations make does all work once, from data that are there") {
    for (const Pair& pair : pairs) {
        const SearchSpace space = space_for(pair, 4);
        std::mt19937_64 random(7);
        int checked = 0, columns = 0;
        for (Genome genome : start_genomes(space)) {
            REQUIRE(is_valid(genome, space));
            for (int i = 0; i < 40; ++i) {
                Genome changed = genome;
                if (!mutate(changed, space, random) || !is_valid(changed, space)) continue;
                genome = std::move(changed);
            }
            check_work(plan_of(genome, space, true), space);
            ++checked;
            columns += genome.columns ? 1 : 0;
        }
        CHECK(checked > 50);
        CHECK(columns > 10);
    }
}

TEST_CASE("a genome without a part of a shard, or with it twice, is not valid") {
    const SearchSpace space = space_for(pairs[0], 2);
    const std::int64_t unit = 32, parts = space.parts({false, unit, {}});
    const auto step = [](int first, int last, std::int64_t from, std::int64_t to) {
        return SearchStep{.first = first, .last = last, .from = from, .to = to};
    };
    CHECK(is_valid({false, unit, {step(0, 0, 0, parts), step(1, 1, 0, 3), step(1, 1, 3, parts)}}, space));
    CHECK_FALSE(
        is_valid({false, unit, {step(0, 0, 0, parts), step(1, 1, 0, 3), step(1, 1, 4, parts)}}, space));
    CHECK_FALSE(is_valid({false, unit, {step(0, 1, 0, parts), step(1, 1, 3, parts)}}, space));
}

TEST_CASE("pieces as in listed schedules take as long as these") {
    for (const std::string topology : {"h200_4", "mi300x_8"})
        for (const auto& [schedule, chunks, fused] :
             {std::tuple("hetero_unfused_1d", 2, false), std::tuple("hetero_fused_1d", 4, true)}) {
            RunConfig config;
            config.topology = topology;
            config.schedule = schedule;
            config.params = {{"chunks", chunks}, {"agent", "dma"}};
            config.workload = {{"collective", "all_gather"},
                               {"gemm", {{"m", 8192}, {"n", 2560}, {"k", 8192}, {"dtype", "bf16"}}}};
            const Scenario listed = resolved(config);
            const int ranks = listed.machine->topology.gpus();
            SearchSpace space = space_for(*listed.workload.pair(), ranks, 256);
            space.ranks_per_node = listed.machine->topology.gpus_per_node();
            Genome genome{false, 8192 / ranks / chunks, {{.last = 0, .to = chunks}}};
            const int peers = fused ? 1 : ranks - 1;
            for (int chunk = 0; chunk < chunks; ++chunk)
                for (int d = 1; d <= peers; ++d)
                    genome.steps.push_back(
                        {.first = d, .last = fused ? ranks - 1 : d, .from = chunk, .to = chunk + 1});
            REQUIRE(is_valid(genome, space));
            Plan plan = plan_of(genome, space, false);
            plan.config = {{"topology", topology}, {"workload", config.workload}};
            RunConfig planned;
            planned.origin = "test";
            planned.read = std::make_shared<const Plan>(std::move(plan));
            CHECK(makespan_of(resolved(planned)).si() == Approx(makespan_of(listed).si()).epsilon(1e-6));
        }
}

TEST_CASE("a gain under draws is that of the runs where nothing is drawn, and wider errors draw wider") {
    RunConfig config;
    config.topology = "h200_4";
    config.schedule = "serial";
    const Scenario slow = resolved(config);
    config.schedule = "shard_p2p";
    const Scenario fast = resolved(config);
    const double gain = makespan_of(slow) / makespan_of(fast) - 1;
    const PriceErrors known = price_errors(slow, fast);
    CHECK(known.work.gemm > 0);
    CHECK(known.latency > 0);
    const GainDraws exact = drawn_gain(slow, fast, {{0, 0, 0, 0, 0, 0, 0}, 0}, 20, 1);
    CHECK(exact.p10 == Approx(gain));
    CHECK(exact.error == Approx(0).margin(1e-9));
    CHECK(exact.ahead == Approx(1));
    const GainDraws narrow = drawn_gain(slow, fast, {{.01, .01, .01, 0, 0, 0, 0}, 0}, 200, 1),
                    wide = drawn_gain(slow, fast, {{.1, .1, .1, 0, 0, 0, 0}, 0}, 200, 1);
    CHECK(narrow.error > 0);
    CHECK(wide.error > 5 * narrow.error);
    CHECK(wide.p10 < narrow.p10);
    CHECK(narrow.p10 < gain);
}

}  // namespace overlap::test::search_test
