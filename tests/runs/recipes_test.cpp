// Are recipes read as they are meant, and is each mistake in one refused where it stands?
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/core/json.hpp"
#include "tests/recipes.hpp"

namespace overlap::test::recipes_test {

using Catch::Contains;

namespace {

const std::string tiles =
    R"({"schema": 1, "description": "two", "lists": {"two": {"tiles": ["256x128", "64x64"], "row_step": 8, "source": "a test"}},
                              "of_platform": {"AMD": "two", "NVIDIA": "two"}})";
const Json recipe = Json::parse(R"({"schema": 1, "device": "gpu",
    "tables": [{"dtype": "bf16", "file": "gpu.csv", "origin": "a test", "licence": "none", "rows": {"where": {"lib": "a"}, "warm_below_MB": 19, "run_gap": {"us": 2, "cache_MB": 130, "source": "a test"}},
                "prior": {"compute_units": 100, "peak_TFLOPS": 600, "hbm_GBps": 3000, "cache_MB": 50, "tiles": "two", "memory_start_us": 2, "rows_of_family": 16,
                          "source": "a test"},
                "anchors": [{"M": 1000, "N": 1000, "K": 1000, "TFLOPS": 500, "source": "a test"}]}],
    "derived": [{"dtype": "fp8", "from": {"device": "gpu", "dtype": "fp16"}, "reason": "a test"},
                {"dtype": "fp16", "from": {"device": "gpu", "dtype": "bf16"}, "rates": {"here": 300, "there": 600}, "reason": "a test"}]})");

GemmRecipes read(const Json& json) {
    const TemporaryFolder folder;
    std::ofstream(folder / "tiles.json") << tiles;
    std::ofstream(folder / "gpu.json") << json.dump();
    return read_gemm_recipes(folder.path());
}

std::string error_with(const std::string& pointer, const Json& value) {
    Json changed = recipe;
    changed[Json::json_pointer(pointer)] = value;
    return error_of([&] { read(changed); });
}

}  // namespace

TEST_CASE("a recipe is a table, a prior that its hardware decides, and what is derived in order") {
    const GemmRecipes recipes = read(recipe);
    REQUIRE(recipes.tables.size() == 1);
    const GemmRecipe& table = recipes.tables.front();
    CHECK(table.device == "gpu");
    CHECK(table.filter.where.at("lib") == "a");
    CHECK(to_teraflops(table.prior.start.peak_rate) == Approx(600));
    CHECK(to_gigabytes_per_second(table.prior.start.memory.unit_bandwidth) == Approx(3000.0 / 60));
    REQUIRE(table.prior.start.tiles.size() == 2);
    CHECK(table.prior.start.tiles[1].efficiency == Approx(std::pow(1.0 / 8, 0.15)));  // 64 x 64 of 256 x 128
    CHECK(table.prior.start.row_step == 8);
    CHECK(table.prior.start.memory.start == microseconds(2));
    CHECK(table.prior.rows_of_family == 16);
    CHECK(table.filter.warm_below.si() == Approx(19e6));
    CHECK(table.filter.run_gap.pause == microseconds(2));
    CHECK(table.filter.run_gap.cache.si() == Approx(130e6));
    CHECK(table.anchors.front().measurement(DType::bf16).time.si() == Approx(2e9 / 500e12));
    REQUIRE(recipes.derivations.size() == 2);
    CHECK(recipes.derivations[0].dtype == DType::fp16);  // the source of fp8
    CHECK(recipes.derivations[0].rates.ratio() == 0.5);
    CHECK(recipes.derivations[1].dtype == DType::fp8);
}

TEST_CASE("mistakes in recipes are refused where they stand") {
    CHECK_THAT(error_with("/tables/0/prior/tiles", "tow"),
               Contains("gpu.json: /tables/0/prior/tiles") && Contains("did you mean 'two'?"));
    CHECK_THAT(error_with("/device", "cpu"), Contains("gpu.json: /device") && Contains("'gpu'"));
    CHECK_THAT(error_with("/tables/0/dtype", "bf61"), Contains("/tables/0/dtype") && Contains("bf16"));
    CHECK_THAT(error_with("/tables/0/prior/hbm_GBps", -1), Contains("/tables/0/prior/hbm_GBps"));
    CHECK_THAT(error_with("/derived/1/from/dtype", "fp8"), Contains("derived from one another in a circle"));
    CHECK_THAT(error_with("/tabels", 1), Contains("/tabels") && Contains("tables"));
}

}  // namespace overlap::test::recipes_test
