#include "sim/advise/regret_tree.hpp"

#include <catch2/catch.hpp>

namespace overlap::test::regret_tree_test {
namespace {

/// A grid of scenarios with features x and y in 0 … side−1 and an action that costs nothing there; the other
/// actions cost `wrong`.
RegretSamples grid(int side, std::size_t actions, std::size_t (*right)(int x, int y), double wrong = 0.5) {
    RegretSamples samples{2, actions, {}, {}, {}};
    for (int x = 0; x < side; ++x)
        for (int y = 0; y < side; ++y) {
            std::vector<double> regret(actions, wrong);
            regret[right(x, y)] = 0;
            samples.known.push_back({double(x), double(y)});
            samples.regret.push_back(regret);
            samples.weight.push_back(1);
        }
    return samples;
}

double mean_regret(const RegretTree& tree, const RegretSamples& samples) {
    double sum = 0;
    for (std::size_t i = 0; i < samples.known.size(); ++i)
        sum += samples.regret[i][action_of(tree, samples.known[i])];
    return sum / static_cast<double>(samples.known.size());
}

}  // namespace

TEST_CASE("fit_tree finds a threshold midway between the classes") {
    const RegretSamples samples = grid(10, 2, [](int x, int) -> std::size_t { return x < 6 ? 0 : 1; });
    const RegretTree tree = fit_tree(samples, {});
    REQUIRE(leaves_of(tree) == 2);
    CHECK(tree[0].feature == 0);
    CHECK(tree[0].threshold == Approx(5.5));  // between 5 and 6
    CHECK(mean_regret(tree, samples) == 0);
}

TEST_CASE("fit_tree finds an exclusive or, of which no single split gains anything") {
    const RegretSamples samples =
        grid(10, 2, [](int x, int y) -> std::size_t { return (x < 5) != (y < 5) ? 1 : 0; });
    const RegretTree tree = fit_tree(samples, {});
    CHECK(mean_regret(tree, samples) == 0);
    CHECK(leaves_of(tree) == 4);
}

TEST_CASE("fit_tree minimises regret, not the number of wrong choices") {
    // Action 0 is best in 9 scenarios of 10, by 1 %; in the tenth it costs 50 %. Action 1 costs 1 % at most.
    RegretSamples samples{1, 2, {}, {}, {}};
    for (int i = 0; i < 40; ++i) {
        samples.known.push_back({0});
        samples.regret.push_back(i % 10 == 0 ? std::vector<double>{0.5, 0} : std::vector<double>{0, 0.01});
        samples.weight.push_back(1);
    }
    const RegretTree tree = fit_tree(samples, {});
    REQUIRE(leaves_of(tree) == 1);
    CHECK(tree[0].action == 1);  // 0.9 · 1 % < 0.1 · 50 %
}

TEST_CASE("fit_tree keeps within its bounds") {
    const auto checkered = [](int x, int y) -> std::size_t {
        return static_cast<std::size_t>((x * 7 + y * 3) % 5);
    };
    const RegretSamples samples = grid(12, 5, checkered);
    TreeOptions options;
    options.most_leaves = 5;
    options.least_scenarios = 20;
    const RegretTree tree = fit_tree(samples, options);
    CHECK(leaves_of(tree) <= 5);
    std::vector<int> in_leaf(tree.size());
    for (const auto& known : samples.known) {
        std::size_t node = 0;
        while (!tree[node].leaf())
            node = known[tree[node].feature] < tree[node].threshold ? tree[node].below : tree[node].above;
        ++in_leaf[node];
    }
    for (std::size_t node = 0; node < tree.size(); ++node)
        if (tree[node].leaf()) CHECK(in_leaf[node] >= 20);
}

TEST_CASE("fit_tree heeds the weights of scenarios") {
    RegretSamples samples{1, 2, {{0}, {0}}, {{0, 0.3}, {0.3, 0}}, {1, 3}};
    CHECK(fit_tree(samples, {})[0].action == 1);
    samples.weight = {3, 1};
    CHECK(fit_tree(samples, {})[0].action == 0);
}

TEST_CASE("summarise_regrets counts hits up to 2 %") {
    const std::vector<double> regrets{0, 0.02, 0.021, 0.159};
    const RegretSummary summary = summarise_regrets(regrets);
    CHECK(summary.scenarios == 4);
    CHECK(summary.hit_rate == 0.5);
    CHECK(summary.mean_regret == Approx(0.05));  // (0 + 2 + 2.1 + 15.9) % / 4
    CHECK(summary.worst_regret == 0.159);
}

}  // namespace overlap::test::regret_tree_test
