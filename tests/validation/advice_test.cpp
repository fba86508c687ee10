// The static heuristic as shipped: made from the committed tables, which are what the simulator says, and as
// good on unseen models as README claims.
#include <tbb/parallel_for.h>
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <sstream>

#include "sim/advise/advise.hpp"
#include "tests/sample.hpp"

namespace overlap::test::advice_test {
namespace {

const std::string root = OVERLAP_SOURCE_DIR;
const ConfigFolder folder(root + "/configs");

std::vector<SimulatedScenario> table(const std::string& set) {
    return read_scenario_table(root + "/models/heuristic/" + set + ".csv");
}

}  // namespace

TEST_CASE("the committed header is the one that the committed table gives, to the byte", "[.all]") {
    const auto fit = table("fit");
    const Heuristic library = fit_heuristic(fit, folder, false), any = fit_heuristic(fit, folder, true);
    CHECK(leaves_of(library.tree) <= 16);
    CHECK(leaves_of(any.tree) <= 16);
    std::ifstream in(root + "/models/heuristic/overlap_advice.hpp");
    std::ostringstream shipped;
    shipped << in.rdbuf();
    REQUIRE(shipped.str() == to_header(library, any));

    // The compiled function and the table agree on every judged scenario.
    ConstantsOf constants(folder);
    std::size_t judged = 0;
    for (const SimulatedScenario& row : table("judge")) {
        const auto machine = constants(row.scenario.topology, row.scenario.pair.gemm.dtype);
        const auto op = heuristic_operator(row.scenario.pair);
        for (const Heuristic* heuristic : {&library, &any}) {
            const bool own = heuristic->own_kernels;
            REQUIRE(advice_by(*heuristic, machine, op).label() == shipped_advice(machine, op, own).label());
        }
        ++judged;
    }
    CHECK(judged >= 1600);
}

TEST_CASE(
    "a machine's rates of copies are no more than its DMA engines have, also where these serve many peers") {
    ConstantsOf constants(folder);
    for (const std::string topology : {"h200_8", "mi300x_8", "gb200_72"}) {
        INFO(topology);
        const auto machine = constants(topology, DType::bf16);
        for (const auto& way : {machine.dma.pull, machine.dma.push})
            for (const double rate : {way.rate, way.sent_rate, way.pieces_rate}) {
                CHECK(rate > 0);
                CHECK(rate <= machine.engines.rate);
            }
    }
}

TEST_CASE("every row of the committed tables is the scenario of its place, with that scenario's candidates") {
    std::size_t checked = 0;
    for (const ScenarioSet set : {ScenarioSet::fit, ScenarioSet::judge}) {
        const std::string& name = scenario_set_names[static_cast<std::size_t>(set)];
        const auto committed = table(name);
        std::size_t row = 0;
        for (const auto& [topology, count] : scenario_counts(set, folder)) {
            const Topology machine = folder.topology(topology);
            for (const AdviceScenario& listed : scenarios_of(set, topology, folder, count)) {
                REQUIRE(row < committed.size());
                const auto& [scenario, makespan_us] = committed[row];
                INFO(name << " row " << row << " of " << topology);
                ++row;
                REQUIRE(scenario.topology == topology);
                REQUIRE(scenario.family == listed.family);
                REQUIRE(scenario.pair.gemm == listed.pair.gemm);
                REQUIRE(scenario.pair.collective == listed.pair.collective);
                REQUIRE(scenario.pair.order == listed.pair.order);
                REQUIRE(scenario.pair.shard_dim == listed.pair.shard_dim);
                // Those that it has are candidates; those that it has not are refused (the sample below).
                std::size_t present = 0, of_serial = 0;
                for (const Candidate& candidate :
                     candidates_for(Workload{listed.family, "", listed.pair}, machine)) {
                    if (!makespan_us.contains(candidate.label())) continue;
                    ++present;
                    of_serial += candidate.schedule == "serial";
                }
                REQUIRE(present == makespan_us.size());
                REQUIRE(of_serial > 0);
                ++checked;
            }
        }
        CHECK(row == committed.size());
    }
    CHECK(checked == 3100);
}

TEST_CASE("a sample of the committed tables is what the simulator says") {
    // Of each machine of each table some rows; of each of those some
    // candidates, and two that it has no time of.
    const std::size_t rows_of_each = sampled<std::size_t>(3, 8),
                      candidates_of_each = sampled<std::size_t>(4, 8), absent_of_each = 2;
    struct Sample {
        const SimulatedScenario* row;
        std::string label;
        std::optional<double> again = std::nullopt;  ///< none: refused
    };
    std::mt19937 random(21);
    const auto draw = [&](const auto& all, std::size_t count) {
        std::vector<std::decay_t<decltype(*all.begin())>> drawn;
        std::sample(all.begin(), all.end(), std::back_inserter(drawn), count, random);
        return drawn;
    };
    std::array<std::vector<SimulatedScenario>, 2> committed;
    std::vector<Sample> samples;
    for (const ScenarioSet set : {ScenarioSet::fit, ScenarioSet::judge}) {
        auto& rows = committed.at(static_cast<std::size_t>(set));
        rows = table(scenario_set_names.at(static_cast<std::size_t>(set)));
        for (const auto& [topology, count] : scenario_counts(set, folder)) {
            const Topology machine = folder.topology(topology);
            std::vector<const SimulatedScenario*> of_machine;
            for (const SimulatedScenario& row : rows)
                if (row.scenario.topology == topology) of_machine.push_back(&row);
            for (const SimulatedScenario* row : draw(of_machine, rows_of_each)) {
                std::vector<std::string> present, absent;
                for (const Candidate& one :
                     candidates_for(Workload{row->scenario.family, "", row->scenario.pair}, machine))
                    (row->makespan_us.contains(one.label()) ? present : absent).push_back(one.label());
                for (const std::string& label : draw(present, candidates_of_each))
                    samples.push_back({row, label});
                for (const std::string& label : draw(absent, absent_of_each)) samples.push_back({row, label});
            }
        }
    }
    tbb::parallel_for(std::size_t{0}, samples.size(), [&](std::size_t i) {
        Sample& one = samples[i];
        const Scenario base = base_scenario(one.row->scenario, folder, table_seeds);
        try {
            const Candidate candidate = parse_candidate(one.label, "table");
            one.again = to_microseconds(predict(with_candidate(base, candidate)).makespan);
        } catch (const UserError&) {
        }
    });
    std::size_t simulated = 0, refused = 0;
    for (const Sample& one : samples) {
        const AdviceScenario& scenario = one.row->scenario;
        INFO(scenario.topology << ", " << scenario.family << ", " << shape_name(scenario.pair.gemm) << ", "
                               << one.label);
        const auto committed_us = one.row->makespan_us.find(one.label);
        CHECK(one.again.has_value() == (committed_us != one.row->makespan_us.end()));
        ++(one.again ? simulated : refused);
        if (one.again && committed_us != one.row->makespan_us.end())
            CHECK(committed_us->second == Approx(*one.again).epsilon(1e-4));  // it has five digits
    }
    CHECK(simulated == 15 * rows_of_each * candidates_of_each);
    CHECK(refused > 15);
}

TEST_CASE("models that were fitted to are not those that are judged") {
    std::vector<std::string> fitted;
    for (const SimulatedScenario& row : table("fit")) fitted.push_back(row.scenario.family);
    for (const SimulatedScenario& row : table("judge"))
        REQUIRE(std::find(fitted.begin(), fitted.end(), row.scenario.family) == fitted.end());
}

namespace {

// Hit rate and mean regret of each machine, with a tenth of misses and of regret to spare: the best that any trees so far
// have reached there. All machines together were to reach 90 % and 1 %: with any kernels a known gap.
struct Bounds {
    double hits, regret;
    bool hold(const RegretSummary& choice) const {
        return 1 - choice.hit_rate <= 1.1 * (1 - hits) && choice.mean_regret <= 1.1 * regret;
    }
};
struct Claim {
    std::string group;
    bool own_kernels;
    Bounds holds;
};
const std::vector<Claim> heuristic_claims{
    {"mi300x_8", false, {0.960, 0.0023}}, {"h200_8", false, {0.935, 0.0071}},
    {"h200_4", false, {0.930, 0.0039}},   {"h200_2", false, {0.975, 0.0012}},
    {"ring_8", false, {0.985, 0.0029}},   {"mi355x_8", false, {0.985, 0.0024}},
    {"h100_8", false, {0.890, 0.0106}},   {"torus_4x4", false, {0.840, 0.0151}},
    {"mi300x_8", true, {0.970, 0.0031}},  {"h200_8", true, {0.855, 0.0128}},
    {"h200_4", true, {0.850, 0.0127}},    {"h200_2", true, {0.950, 0.0032}},
    {"ring_8", true, {0.985, 0.0021}},    {"mi355x_8", true, {0.930, 0.0039}},
    {"h100_8", true, {0.805, 0.0168}},    {"torus_4x4", true, {0.785, 0.0172}}};

/// Judges the heuristic on the unseen models of these machines, and checks their claims.
std::vector<Judgement> judge_on(std::span<const std::string> machines) {
    const auto among = [&](const std::string& name) {
        return std::find(machines.begin(), machines.end(), name) != machines.end();
    };
    std::vector<SimulatedScenario> rows = table("judge");
    std::erase_if(rows, [&](const SimulatedScenario& row) { return !among(row.scenario.topology); });
    std::vector<Judgement> judgements = judge(rows, folder);
    for (const Claim& claim : heuristic_claims) {
        if (!among(claim.group)) continue;
        std::size_t found = 0;
        for (const Judgement& one : judgements) {
            if (one.group != claim.group || one.own_kernels != claim.own_kernels) continue;
            INFO(claim.group << (claim.own_kernels ? ", any kernels" : ", library kernels"));
            CHECK(one.heuristic.scenarios >= 200);
            CHECK(claim.holds.hold(one.heuristic));
            ++found;
        }
        CHECK(found == 1);
    }
    return judgements;
}

}  // namespace

TEST_CASE("the static heuristic on unseen models of a machine is as good as README says") {
    judge_on(std::array<std::string, 1>{"mi300x_8"});
}

TEST_CASE("the static heuristic on all unseen models is as good as README says", "[.all]") {
    std::vector<std::string> machines;
    for (const auto& [topology, count] : scenario_counts(ScenarioSet::judge, folder))
        machines.push_back(topology);
    CHECK(2 * machines.size() == heuristic_claims.size());
    std::size_t found = 0;
    for (const Judgement& one : judge_on(machines)) {
        if (one.group != "all") continue;
        INFO("all" << (one.own_kernels ? ", any kernels" : ", library kernels"));
        if (one.own_kernels) {
            CHECK(one.heuristic.hit_rate >= 0.87);
            CHECK(one.heuristic.hit_rate < 0.9);
            CHECK(one.heuristic.mean_regret <= 0.0112);
            CHECK(one.heuristic.mean_regret > 0.01);
        } else {
            CHECK(one.heuristic.hit_rate >= 0.92);
            CHECK(one.heuristic.mean_regret <= 0.0063);
        }
        CHECK(one.heuristic.mean_regret < one.least_estimate.mean_regret);
        ++found;
    }
    CHECK(found == 2);
}

TEST_CASE("advice on the measured schedules of H200", "[.all]") {
    const std::vector<std::string> traces{root + "/traces/h200_4/overlap", root + "/traces/h200_2/overlap"};
    const MeasuredJudgement measured = judge_measured(read_measured_cases(traces), folder);
    CHECK(measured.simulation.scenarios == 39);
    CHECK(1 - measured.simulation.hit_rate <= 1.1 * (1 - 0.897));
    CHECK(measured.simulation.mean_regret <= 1.1 * 0.0064);
    CHECK(measured.heuristic.scenarios + measured.heuristic_not_measured == 39);
    CHECK(measured.heuristic.scenarios == 24);
    CHECK(1 - measured.heuristic.hit_rate <= 1.1 * (1 - 0.737));
    CHECK(measured.heuristic.mean_regret <= 1.1 * 0.0350);
}

}  // namespace overlap::test::advice_test
