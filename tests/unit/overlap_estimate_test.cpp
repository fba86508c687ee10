// Estimates of the static heuristic against sums by hand, on a machine of round numbers: a GEMM of 2 ms, an
// operand that takes 1.5 ms to gather, four GPUs.
#include <catch2/catch.hpp>

#include "models/heuristic/overlap_features.hpp"

namespace overlap_advice::estimate_test {
namespace {

constexpr double ms = 1e-3;

// 1 TFLOP/s in tiles of one element, memory that takes no time, and nothing that has a fixed time.
Machine machine() {
    Machine m{};
    m.gpus = 4;
    m.compute_units = 100;
    m.stream_units = 1e-6;
    m.hbm_rate = 1e18;
    m.gemm.compute_units = 100;
    m.gemm.k_step = 1;
    m.gemm.peak_rate = 1e12;
    m.gemm.tail_floor = m.gemm.partial_floor = 0;
    m.gemm.hbm = m.gemm.unit_bandwidth = 1e18;
    m.gemm.overlap_exponent = 50;
    m.gemm.split_k_rate = 1e18;
    m.gemm.sustained_time = 1;
    m.gemm.tiles[0] = {1, 1, 1};
    m.gemm.tile_count = 1;
    m.dma.pull = m.dma.push = {1e9, 0, 1e9, 1e9};
    m.dma.ring_rate = m.dma.peer_rate = 1e9;
    m.kernels = m.dma;
    m.engines.rate = 1e18;
    return m;
}

Operator gathered() {
    return {1000, 1000, 1000, 2, 2, false, false, false, false};
}
Operator sent() {
    Operator op = gathered();
    op.gemm_first = op.all_to_all = true;
    return op;
}

constexpr Plan in_series{serial, false, false, false, false}, one_peer{shard_p2p, false, false, false, false},
    halves{pieces, true, false, false, false};

double in_ms(const Machine& m, const Operator& op, const Plan& plan, int chunks) {
    return Estimator(m, op)(plan, chunks, true) / ms;
}

}  // namespace

TEST_CASE("estimates go through the steps of a plan") {
    const Machine m = machine();
    CHECK(in_ms(m, gathered(), in_series, 1) == Approx(3.5));
    CHECK(in_ms(m, sent(), in_series, 1) == Approx(3.5));
    // Own quarter to 0.5, a shard every 0.5, each multiplied in 0.5 as it comes.
    CHECK(in_ms(m, gathered(), one_peer, 1) == Approx(2.0));
    // The other way the last shard leaves at 1.5, when three are made; the own part goes on to 2.
    CHECK(in_ms(m, sent(), one_peer, 1) == Approx(2.0));
    // Halves of all shards at 0.75 and 1.5, each three GEMMs of 0.25.
    CHECK(in_ms(m, gathered(), halves, 2) == Approx(2.25));
}

TEST_CASE("estimates know launches, waits for other streams, and copies issued one at a time") {
    Machine m = machine();
    m.launch = 0.01 * ms;
    m.dependency = 0.02 * ms;
    CHECK(in_ms(m, gathered(), in_series, 1) == Approx(3.51));
    CHECK(in_ms(m, sent(), in_series, 1) == Approx(3.53));
    m = machine();
    m.event = 0.1 * ms;  // of four GEMMs, three send a shard each before the own one
    CHECK(in_ms(m, sent(), one_peer, 1) == Approx(2.3));
    CHECK(in_ms(m, gathered(), one_peer, 1) == Approx(2.0));
    m = machine();
    m.dma.issue = 0.4 * ms;  // three copies a half: its period is 1.2, longer than its bytes take
    CHECK(in_ms(m, gathered(), {pieces, true, true, true, false}, 2) == Approx(0.75 + 1.2 + 0.75));
    // Three kernels behind three quarters of the GEMM: they share the links for 1.5, or the last is issued at 1.6.
    m = machine();
    m.kernels.issue = 0.4 * ms;
    CHECK(in_ms(m, sent(), {pieces, true, true, false, true}, 1) == Approx(1.5 + 1.5));
    m.kernels.issue = 0.8 * ms;
    CHECK(in_ms(m, sent(), {pieces, true, true, false, true}, 1) == Approx(1.5 + 1.6 + 0.5));
}

TEST_CASE("an engine takes longer to begin a copy to another peer") {
    Machine m = machine();
    m.engines.shared = true;
    m.dma.peer_step = 0.01 * ms;
    m.dma.switch_over = 0.04 * ms;
    // Three shards, the first at 0.5: by one stream, and by one for each peer.
    CHECK(in_ms(m, sent(), one_peer, 1) == Approx(0.5 + 3 * 0.51));
    CHECK(in_ms(m, sent(), {pieces, true, false, false, false}, 1) == Approx(0.5 + 3 * 0.55));
}

TEST_CASE("estimated GEMMs are slower beside transfers by what these hold") {
    Machine m = machine();
    m.kernels.units = 30;  // ten a peer
    const Plan by_kernels{shard_p2p, false, false, false, true};
    // At 0.9 of the rate to 1.5 ms, which leaves 0.65 of the 2.
    CHECK(in_ms(m, gathered(), by_kernels, 1) == Approx(2.15));
    m.kernels.few_waves_lost = 0.5;  // 10,000 waves of tiles are not few
    CHECK(in_ms(m, gathered(), by_kernels, 1) == Approx(2.15));
    m.kernels_wait = true;
    // Each copy starts at the end of a GEMM: own to 0.5, copy to 1, shard 1 beside copy 2 to 1 + 0.5/0.9 less
    // what is left when the copy ends at 1.5; so three times.
    const double beside = 0.5 + (0.5 - 0.9 * 0.5);
    CHECK(in_ms(m, gathered(), by_kernels, 1) == Approx(0.5 + 0.5 + 2 * beside + 0.5));
    m = machine();
    m.dma.gemm_lost = 0.2;
    CHECK(in_ms(m, gathered(), one_peer, 1) == Approx(1.5 + 2 - 0.8 * 1.5));
}

TEST_CASE("copy kernels begin beside a GEMM that leaves compute units, and get no others") {
    Machine m = machine();
    m.kernels_wait = true;
    m.dependency = 1 * ms;
    const Plan by_kernels{shard_p2p, false, false, false, true};
    // Four GEMMs of 5 ms in one wave of 2 x n tiles; copies that can begin 1 ms after each of the first three.
    Operator op = sent();
    op.m = 8, op.n = 50, op.k = 2.5e7;  // hold all 100 units: copies begin when the next GEMM is over
    m.kernels.peer_rate = received(m, op) / 3 / (4 * ms);
    CHECK(in_ms(m, op, by_kernels, 1) == Approx(10 + 5 + 5 + 4));
    op.n = 40;  // GEMMs of 4 ms that leave 20 units: copies from 5, 9 and 13
    m.kernels.peer_rate = received(m, op) / 3 / (4 * ms);
    CHECK(in_ms(m, op, by_kernels, 1) == Approx(17));
    // A copy wants 40 units: beside GEMMs it has half of its rate. From 5 to 13, by 16 three eighths of the second.
    m.kernels.units = 120;
    CHECK(in_ms(m, op, by_kernels, 1) == Approx(16 + 2.5 + 4));
}

TEST_CASE("a gated GEMM waits for copy kernels only where it leaves them compute units") {
    Machine m = machine();
    const Plan gated{flag_gated, false, false, false, true};
    const auto can = [&](Operator op, double n) {
        op.m = 8;
        op.n = n;
        return serves(GemmPrices(m, op), gated);
    };
    CHECK(can(gathered(), 1000));
    m.kernels_wait = true;
    CHECK_FALSE(can(gathered(), 1000));
    CHECK(can(gathered(), 12));        // 96 tiles, 100 units
    CHECK_FALSE(can(gathered(), 13));  // a second wave
    CHECK(can(sent(), 1000));          // here copies wait for GEMMs, and no GEMM for a copy
}

TEST_CASE("column blocks cost DMA engines, not kernels, by the length of their rows") {
    Machine m = machine();
    m.engines.rate = 1e9;
    m.engines.strided_run = 1000;  // half of K in two blocks: runs of 1000 bytes take twice as long
    const Plan columns{pieces, true, true, true, false};
    CHECK(in_ms(m, gathered(), columns, 2) == Approx(1.5 + 1.5 + 0.75));
    Plan by_kernels = columns;
    by_kernels.by_kernels = true;
    CHECK(in_ms(m, gathered(), by_kernels, 2) == Approx(0.75 + 0.75 + 0.75));
}

TEST_CASE("pieces sent to peers that have links of their own do not wait for each other") {
    Machine m = machine();
    m.dma.peer_rate = 1e9 / 3;  // three such links are 1e9
    Operator op = sent();
    op.m = 1200;
    // 9 GEMMs of 0.2 ms; each piece takes 0.6 on its link, the last one from 1.8
    // on, and the own part ends at 2.4.
    CHECK(in_ms(m, op, {pieces, true, false, false, false}, 3) == Approx(2.4));
    // Without an own part at the end the last piece counts: of 12 GEMMs the one before the last.
    CHECK(in_ms(m, op, {pieces, false, false, false, false}, 3) == Approx(11 * 0.2 + 0.6));
}

TEST_CASE("the direction and the chunk count with the least estimate are taken") {
    Machine m = machine();
    m.dma.pull.rate = 2e9;
    const Operator op = gathered();
    CHECK_FALSE(Estimator(m, op).pushes(halves, 2));
    CHECK(Estimator(m, op).pushes(one_peer, 1));
    CHECK(Estimator(m, op)(halves, 2) == Estimator(m, op)(halves, 2, false));
    m.dma.step = 0.3 * ms;
    m.dma.pull.latency = m.dma.push.latency = 0.3 * ms;
    const Estimator time(m, op);
    const int chunks = time.chunks(halves, 1);
    for (const int other : {1, 2, 4, 8, 16}) CHECK(time(halves, chunks) <= time(halves, other));
    CHECK(time(halves, 2) == Estimator(m, op)(halves, 2));  // also when asked again
    CHECK(chunks < 16);
}

}  // namespace overlap_advice::estimate_test
