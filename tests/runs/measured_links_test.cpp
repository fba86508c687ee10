// Are links of a measured machine found from its copies and from what its driver says?
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/calibrate/measurements/measured_links.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::measured_links_test {

using Catch::Contains;

namespace {

constexpr double mebi = 1 << 20;

/// A copy that takes 10 µs more than its bytes at `GBps`.
void add_copy(std::ofstream& file, const std::string& pattern, int gpus, double mebibytes, double GBps) {
    const double bytes = mebibytes * mebi, us = 10 + bytes / GBps * 1e-3;
    Json line{{"kind", "peer_copy"}, {"pass", 1}, {"pattern", pattern}, {"gpus", gpus}, {"size", bytes}};
    line.update(
        Json::parse(R"({"agent": "dma", "transfer": "push", "blocks": 0, "chunks": 1, "row": 0, "gemms": 0,
                                "unit": "us", "runs": 1})"));
    for (const char* key : {"median", "min", "p90"}) line[key] = us;
    line["samples"] = {us};
    file << line.dump() << '\n';
}

/// Four GPUs: a link moves 100 GB/s, and one GPU sends to three others at `fan_out_GBps`.
std::optional<MeasuredLinks> links_of(double fan_out_GBps, const FastLinks& fast = {}, int gpus = 4) {
    const TemporaryFolder folder;
    const std::string machine =
        R"({"schema": 1, "kind": "machine", "date": "2026-11-23T00:00:00Z", "device": "GPU"})";
    std::ofstream two(folder / "two_gpus.jsonl"), four(folder / "four_gpus.jsonl");
    two << machine << '\n';
    four << machine << '\n';
    for (const double size : {1.0, 64.0, 1024.0}) add_copy(two, "pair", 2, size, 100);
    add_copy(four, "one_with_all", 4, 1024, fan_out_GBps / 3);  // of each of three copies
    two.close();
    four.close();
    return measured_links(folder.path(), "node7", gpus, fast);
}

FastLinks joined(int gpus, const std::vector<std::pair<int, int>>& pairs) {
    const auto count = static_cast<std::size_t>(gpus);
    FastLinks fast(count, std::vector<bool>(count));
    for (const auto& [a, b] : pairs) {
        fast[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
        fast[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = true;
    }
    return fast;
}

}  // namespace

TEST_CASE(
    "one GPU that sends to three others as fast as to one has a switch, at three times the rate a mesh") {
    const MeasuredLinks by_switch = *links_of(100), mesh = *links_of(300);
    CHECK(by_switch.group.at("type") == "switch");
    CHECK(mesh.group.at("type") == "full_mesh");
    // (1024 - 64) MiB in the time between: the 10 us of each copy cancel.
    CHECK(mesh.group.at("bandwidth_GBps").at("value") == 100.0);
    CHECK_THAT(mesh.group.at("bandwidth_GBps").at("source").get<std::string>(),
               Contains("node7/two_gpus.jsonl") && Contains("300 GB/s in all"));
    CHECK(links_among_first(mesh.group, 3) == mesh.group);
}

TEST_CASE("the driver says which GPUs form a ring, and of which GPUs an island consists") {
    const MeasuredLinks ring = *links_of(200, joined(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}));
    CHECK(ring.group.at("type") == "ring");
    CHECK(ring.notes.empty());
    CHECK(links_among_first(ring.group, 3).at("pairs") == Json::parse("[[0, 1], [1, 2]]"));

    const MeasuredLinks island = *links_of(100, joined(4, {{0, 2}, {1, 3}}));
    CHECK(island.gpus == 2);
    CHECK(island.group.at("type") == "full_mesh");  // of GPUs 0 and 2
    REQUIRE(island.notes.size() == 1);
    CHECK_THAT(island.notes.front(), Contains("of the 2 GPUs"));

    const MeasuredLinks line = *links_of(100, joined(4, {{0, 1}, {1, 3}, {3, 2}}));
    CHECK(line.group.at("type") == "links");
    CHECK(line.group.at("pairs") == Json::parse("[[0, 1], [1, 3], [2, 3]]"));
    CHECK(links_among_first(line.group, 3).is_null());  // 2 is joined by 3 only
}

TEST_CASE("two GPUs have a link, and one GPU has none") {
    CHECK(links_of(100, {}, 2)->group.at("type") == "switch");
    CHECK_FALSE(links_of(100, {}, 1));
}

}  // namespace overlap::test::measured_links_test
