#include "sim/schedules/pieces.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "tests/test_support.hpp"

namespace overlap::test::pieces_test {

using Catch::Contains;

namespace {

// 3 ranks, bf16 (2 B): M = 11 gives shards of 4, 4 and 3 rows; K = 7; N = 5.
const GemmShape shape{11, 5, 7};
const Pair gather_m = pair_of(CollectiveKind::all_gather, Order::collective_first, shape);
const Pair gather_k = pair_of(CollectiveKind::all_gather, Order::collective_first, shape, ShardDim::k);
const Pair scatter = pair_of(CollectiveKind::reduce_scatter, Order::gemm_first, shape);

GemmShape gemm_of(const Pieces& pieces, int shard, int chunk) {
    return pieces.gemm(std::array{shard}, chunk);
}

std::string making(const Pair& pair, int ranks, int chunks, CommShape cut = CommShape::one_d) {
    return error_of([&] { Pieces(pair, ranks, chunks, cut); });
}

/// Whether each of these GEMMs of rank 0, in this order, adds to a C that is written already.
std::vector<bool> accumulates(const Pieces& pieces,
                              const std::vector<std::pair<std::vector<int>, int>>& gemms) {
    TaskGraph graph;
    const Topology topology = topology_of(pieces.ranks(), group("full_mesh"));
    Transfers transfers(graph, topology, {});
    GemmStream stream(transfers, pieces, 0);
    std::vector<bool> result;
    for (const auto& [shards, chunk] : gemms)
        result.push_back(std::get<GemmShape>(graph[stream.add(shards, chunk, {})].work).accumulate);
    return result;
}

}  // namespace

TEST_CASE("parts differ by one at most and add up") {
    CHECK(part_length(11, 3, 0) == 4);
    CHECK(part_length(11, 3, 1) == 4);
    CHECK(part_length(11, 3, 2) == 3);
    int checked = 0;
    for (std::int64_t total = 1; total <= 50; ++total) {
        for (std::int64_t parts = 1; parts <= total; ++parts, ++checked) {
            std::int64_t sum = 0;
            for (std::int64_t i = 0; i < parts; ++i) sum += part_length(total, parts, i);
            REQUIRE(sum == total);
            REQUIRE(part_length(total, parts, 0) - part_length(total, parts, parts - 1) <= 1);
            REQUIRE(part_length(total, parts, parts - 1) >= 1);
        }
    }
    CHECK(checked == 1275);  // 50 · 51 / 2
}

TEST_CASE("1d pieces are contiguous bands of rows, the last ones smaller") {
    const Pieces pieces(gather_m, 3, 3, CommShape::one_d);
    // Shard 0: 4 rows in chunks of 2, 1, 1. Bytes: rows · 7 · 2.
    CHECK(pieces.payload(0, 0).bytes.si() == 28);
    CHECK(pieces.payload(0, 2).bytes.si() == 14);
    CHECK(pieces.payload(2, 0).bytes.si() == 14);
    CHECK(pieces.payload(0, -1).bytes.si() == 56);
    CHECK(pieces.payload(0, 0).run.si() == 28);
    CHECK(gemm_of(pieces, 0, 0) == GemmShape{2, 5, 7});
    CHECK(gemm_of(pieces, 2, -1) == GemmShape{3, 5, 7});
    // Chunk 0 of shards 1 and 2 together: 2 + 1 rows.
    CHECK(pieces.gemm(std::array{1, 2}, 0) == GemmShape{3, 5, 7});
}

TEST_CASE("2d pieces are strided blocks of columns") {
    const Pieces pieces(gather_m, 3, 3, CommShape::two_d);
    // K = 7 in blocks of 3, 2, 2. Shard 0: 4 rows of 3 · 2 B.
    CHECK(pieces.payload(0, 0).bytes.si() == 24);
    CHECK(pieces.payload(0, 0).run.si() == 6);
    CHECK(pieces.payload(0, 1).run.si() == 4);
    CHECK(pieces.payload(0, -1).run.si() == 56);  // a whole shard is contiguous
    CHECK(gemm_of(pieces, 0, 1) == GemmShape{4, 5, 2});
    // Before a reduce-scatter the blocks are of columns of C: N = 5 in 2, 2, 1.
    CHECK(gemm_of(Pieces(scatter, 3, 3, CommShape::two_d), 2, 2) == GemmShape{3, 1, 7});
}

TEST_CASE("with tokens in K shards are slabs of K, cut along K or along M") {
    // K = 7 on 3 ranks: 3, 2, 2. 1d in 2 chunks: 2 + 1; a slab is 11 rows of A by its columns.
    const Pieces slabs(gather_k, 3, 2, CommShape::one_d);
    CHECK(gemm_of(slabs, 0, 0) == GemmShape{11, 5, 2});
    CHECK(gemm_of(slabs, 0, 1) == GemmShape{11, 5, 1});
    CHECK(slabs.payload(0, 0).bytes.si() == 44);  // 11 · 2 · 2 B
    // 2d in 2 chunks: M = 11 in 6 + 5.
    CHECK(gemm_of(Pieces(gather_k, 3, 2, CommShape::two_d), 0, 0) == GemmShape{6, 5, 3});
}

TEST_CASE("all pieces of a shard, and all shards, add up to the whole") {
    int checked = 0;
    for (const Pair& pair : {gather_m, gather_k, scatter}) {
        for (const CommShape cut : {CommShape::one_d, CommShape::two_d}) {
            const Pieces pieces(pair, 3, 2, cut);
            double bytes = 0, flops = 0;
            for (int shard = 0; shard < 3; ++shard) {
                for (int chunk = 0; chunk < 2; ++chunk, ++checked) {
                    bytes += pieces.payload(shard, chunk).bytes.si();
                    flops += gemm_of(pieces, shard, chunk).flops().si();
                }
            }
            CHECK(bytes == pair.operand(3).si());
            CHECK(flops == shape.flops().si());
        }
    }
    CHECK(checked == 36);
}

TEST_CASE("a GEMM accumulates where its block of C has been written") {
    using Flags = std::vector<bool>;
    // Bands of rows are written once each; column blocks of K all add to the same rows.
    CHECK(accumulates({gather_m, 3, 2, CommShape::one_d}, {{{0}, -1}, {{1}, 0}, {{1}, 1}}) == Flags{0, 0, 0});
    CHECK(accumulates({gather_m, 3, 2, CommShape::two_d}, {{{0}, -1}, {{1}, 0}, {{1}, 1}}) == Flags{0, 0, 1});
    CHECK(accumulates({gather_m, 3, 2, CommShape::two_d}, {{{0, 1, 2}, 0}, {{0, 1, 2}, 1}}) == Flags{0, 1});
    // Slabs of K all add to the whole C; cut along M too, each band of C takes one slab of every shard.
    CHECK(accumulates({gather_k, 3, 2, CommShape::one_d}, {{{0}, -1}, {{1}, 0}, {{1}, 1}}) == Flags{0, 1, 1});
    CHECK(accumulates({gather_k, 3, 2, CommShape::two_d}, {{{1}, 0}, {{2}, 0}, {{1}, 1}}) == Flags{0, 1, 0});
    CHECK(accumulates({gather_k, 3, 2, CommShape::two_d}, {{{0}, -1}, {{1}, 0}, {{1}, 1}}) == Flags{0, 1, 1});
    // Blocks of C's columns never meet.
    CHECK(accumulates({scatter, 3, 2, CommShape::two_d}, {{{1}, 0}, {{1}, 1}, {{0}, -1}}) == Flags{0, 0, 0});
}

TEST_CASE("a fused GEMM restages C before, A or B after, whole rows at a time") {
    const GemmShape fused{4, 5, 6};
    // C after the gather: 4 rows of 5 · 2 B.
    CHECK(Pieces(gather_m, 3, 2, CommShape::one_d).restage(fused).bytes.si() == 40);
    CHECK(Pieces(gather_m, 3, 2, CommShape::one_d).restage(fused).run.si() == 10);
    // B with tokens in K: 6 rows of 5 · 2 B.
    CHECK(Pieces(gather_k, 3, 2, CommShape::one_d).restage(fused).bytes.si() == 60);
    // A before the scatter: 4 rows of 6 · 2 B.
    CHECK(Pieces(scatter, 3, 2, CommShape::one_d).restage(fused).bytes.si() == 48);
    CHECK(Pieces(scatter, 3, 2, CommShape::one_d).restage(fused).run.si() == 12);
}

TEST_CASE("more pieces than there is length are refused with the largest number allowed") {
    CHECK_THAT(making(gather_m, 12, 1), Contains("gemm.m is 11, less than one for each of 12 GPUs"));
    CHECK_THAT(making(gather_k, 8, 1), Contains("gemm.k is 7, less than one for each of 8 GPUs"));
    // The smallest of three shards of M = 11 has 3 rows.
    CHECK(making(gather_m, 3, 3) == "");
    CHECK_THAT(making(gather_m, 3, 4), Contains("chunks is 4") && Contains("(allowed: 1 to 3)"));
    CHECK(making(gather_m, 3, 7, CommShape::two_d) == "");
    CHECK_THAT(making(gather_m, 3, 8, CommShape::two_d), Contains("(allowed: 1 to 7)"));
}

}  // namespace overlap::test::pieces_test
