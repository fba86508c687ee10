// What does a result say about how sure it is?
#include <catch2/catch.hpp>
#include <regex>

#include "sim/confidence/accuracy.hpp"
#include "sim/run/run.hpp"
#include "tests/resolved.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::confidence_test {

using Catch::Contains;

namespace {

RunResult run_on(const std::string& topology, const std::string& schedule,
                 const Json& more = Json::object()) {
    Json json{{"topology", topology}, {"schedule", schedule}, {"workload", "llama3_70b_gate_up_forward"}};
    json.update(more);
    return run(resolved(read_run_config(json, "x.json")));
}

const PricedPart& part(const Confidence& confidence, const std::string& name) {
    for (const PricedPart& part : confidence.parts)
        if (part.name == name) return part;
    FAIL("no part " << name);
    throw std::logic_error(name);
}

}  // namespace

TEST_CASE("evidence is read from fits, and from the sources of values that were not fitted") {
    const Json value{{"value", 1}, {"source", "data sheet"}},
        derived{{"value", 1}, {"source", "derived: from x"}},
        guess{{"value", 1}, {"source", "estimate: of ours"}};
    const Json device{
        {"dma", {{"a", value}, {"b", derived}, {"c", derived}, {"d", guess}}},
        {"collective_library",
         {{"name", "x"},
          {"channels", guess},
          {"all_gather",
           {{"latency_us", derived},
            {"bus_GBps", derived},
            {"error_pct", 2},
            {"small", {{"latency_us", guess}, {"bus_GBps", derived}}},
            {"by_ranks",
             {{"4", {{"source", "measured: x"}, {"error_pct", 5}, {"bytes", {1}}, {"us", {1}}}}}}}}}},
        {"interference", {{"compute_lost_to_dma", guess}, {"compute_lost_to_copy_kernels", value}}}};
    const auto in_fit = [](const char* source) {
        return Json{{"value", 1}, {"standard_error", 0.1}, {"source", source}};
    };
    const Json fit{{"rows_fitted", 40},
                   {"classes", {{"kernel copy >= 1 MiB", {{"mean_error_held_out_pct", 4.0}}}}}};
    const Json calibration{
        {"gemm",
         {{"bf16",
           {{"provenance", {{"rows_fitted", 9}, {"mean_error_cross_validated_pct", 7.0}}},
            {"a", in_fit("fitted to x")},
            {"b", in_fit("prior of y")},
            {"c", value},
            {"tiles", {{"64x64", in_fit("prior of y")}}}}},
          {"fp16", {{"provenance", {{"derived_from", "x bf16"}}}}},
          {"fp8", {{"provenance", {{"estimate", "scaled from those of y"}}}}}}},
        {"copy_kernel", {{"provenance", {{"kernel copies", fit}}}}},
        {"validation",
         {{"provenance", {{"machine", "2 x x"}}},
          {"schedules", {{"cases", 12}, {"mean_error_pct", 3.0}, {"p90_error_pct", 8.0}}}}}};
    const MachineEvidence all = evidence_of(device, calibration);
    CHECK(all.gemm.at(DType::bf16).basis == Basis::fitted);
    CHECK(all.gemm.at(DType::bf16).rows == 9);
    CHECK(*all.gemm.at(DType::bf16).error == Approx(0.07));
    CHECK(all.gemm.at(DType::fp16).basis == Basis::derived);
    CHECK(all.gemm.at(DType::fp8).basis == Basis::estimate);
    CHECK_FALSE(all.gemm.at(DType::fp8).error);
    CHECK(all.dma.basis == Basis::derived);  // two of four
    CHECK(all.dma.values == 4);
    CHECK(all.dma.estimates == 1);
    CHECK_FALSE(all.dma.error);
    CHECK(all.copy_kernels.basis == Basis::fitted);
    CHECK(*all.copy_kernels.error == Approx(0.04));
    CHECK(all.beside_dma.basis == Basis::estimate);
    CHECK(all.beside_copy_kernels.basis == Basis::published);
    // One value of three was fitted, a fourth is no value of the fit.
    CHECK(all.gemm.at(DType::bf16).values == 3);
    CHECK(all.gemm.at(DType::bf16).estimates == 2);
    CHECK(text_of({"GEMM bf16", all.gemm.at(DType::bf16), "x", all.gemm.at(DType::bf16).error}) ==
          "GEMM bf16 of x fitted ±7.0 % (9 rows; 2 of 3 prior)");
    CHECK(all.collectives.at("/all_gather").basis == Basis::derived);
    CHECK(*all.collectives.at("/all_gather").error == Approx(0.02));
    CHECK(all.collectives.at("/all_gather/small").basis == Basis::estimate);
    CHECK_FALSE(all.collectives.at("/all_gather/small").error);
    CHECK(all.collectives.at("/all_gather/by_ranks/4").basis == Basis::measured);
    CHECK(*all.collectives.at("/all_gather/by_ranks/4").error == Approx(0.05));
    CHECK(all.schedules->cases == 12);
    CHECK(all.schedules->p90 == Approx(0.08));
}

TEST_CASE("one after another, an error of the GEMM weighs as much as the GEMM's time") {
    const RunResult result = run_on("mi300x_8", "serial");
    const double of_gemm = *part(result.confidence, "GEMM bf16").evidence.error;
    CHECK(of_gemm > 0.02);
    CHECK(result.confidence.causes.at("GEMM bf16") ==
          Approx(of_gemm * (result.phases.gemm / result.makespan)).epsilon(0.02));
    CHECK(result.confidence.parts.size() == 2);  // nothing runs at once, so there is no contention
    // Nobody measured copies by DMA of MI300X here: they are as uncertain as such prices were elsewhere.
    const PricedPart& copies = part(result.confidence, "DMA copies");
    CHECK_FALSE(copies.evidence.error);
    const auto known = read_accuracy(source_folder / "configs");
    const Accuracy& accuracy = *known;
    CHECK(*copies.expected == Approx(accuracy.widths.at("DMA copies")));
    CHECK(result.confidence.causes.at("DMA copies") ==
          Approx(*copies.expected * (result.phases.comm / result.makespan)).epsilon(0.05));
    CHECK(*result.confidence.p90() == Approx(accuracy.p90_over_mean * *result.confidence.makespan_error()));
    CHECK_THAT(to_text(result.confidence), Contains("nine of ten within") && Contains("as elsewhere"));
    CHECK(to_json(result.confidence)["p90_error_pct"] > to_json(result.confidence)["makespan_error_pct"]);
}

TEST_CASE("an interval widens with the distance from what was measured") {
    const auto p90 = [](const std::string& topology) {
        return *run_on(topology, "hetero_fused_1d").confidence.p90();
    };
    CHECK(p90("h200_2") < p90("h200_4"));
    CHECK(p90("h200_4") < p90("h200_8"));
    // As stated where it was measured.
    const RunResult measured = run_on("h200_2", "hetero_fused_1d");
    CHECK(*measured.confidence.p90() == measured.confidence.measured->p90);
}

TEST_CASE("published figures of such runs that are not met are named") {
    // FiCCO's shard-level overlap is known to be predicted too slow.
    const RunResult result = run_on("mi300x_8", "shard_p2p");
    CHECK(result.confidence.kind == "DMA copies beside GEMMs");
    CHECK(std::ranges::any_of(result.confidence.missed,
                              [](const MissedFigure& one) { return one.experiment == "ficco/schedules"; }));
    CHECK_THAT(to_text(result.confidence), Contains("published figures of such runs are not met"));
    CHECK(run_on("h200_2", "hetero_fused_1d").confidence.missed.empty());
}

TEST_CASE("a collective by the library has the error of what prices it, and one of its own beside a GEMM") {
    const Json by_library{{"params", {{"algorithm", "library"}}}};
    const RunResult result = run_on("mi300x_8", "serial", by_library);
    const PricedPart& alone = part(result.confidence, "library collectives");
    CHECK(alone.kernels_of == "RCCL, 64 channels");
    CHECK(*alone.evidence.error == Approx(0.017));  // all_gather in configs/devices/mi300x.json
    CHECK(result.confidence.makespan_error());
    const RunResult both =
        run_on("mi300x_8", "concurrent",
               {{"params", {{"algorithm", "library"}}}, {"workload", "llama3_70b_independent"}});
    CHECK(*part(both.confidence, "contention with the library").evidence.error == Approx(0.06).epsilon(0.05));
    CHECK(*part(both.confidence, "library beside GEMMs").evidence.error == Approx(0.138).epsilon(0.05));
    CHECK(*part(run_on("h200_8", "serial", by_library).confidence, "library collectives").evidence.error ==
          Approx(0.103));
    CHECK(both.confidence.makespan_error());
    CHECK_THAT(to_text(both.confidence), Contains("makespan ±"));
}

TEST_CASE("GEMMs by a roofline are derived, of no library") {
    const RunResult result = run_on("mi300x_8", "serial", {{"cost_models", {"gemm_roofline"}}});
    const PricedPart& gemm = part(result.confidence, "GEMM bf16");
    CHECK(gemm.evidence.basis == Basis::derived);
    CHECK(gemm.kernels_of.empty());
    CHECK(part(run_on("h200_4", "serial", {{"cost_models", {"gemm_tiled"}}}).confidence, "GEMM bf16")
              .evidence.basis == Basis::fitted);
}

TEST_CASE("an error of what is hidden moves the makespan less") {
    const Json gemm_bound{{"workload",
                           {{"collective", "all_gather"},
                            {"gemm", {{"m", 16384}, {"n", 16384}, {"k", 8192}, {"dtype", "bf16"}}}}}};
    const RunResult result = run_on("mi300x_8", "hetero_fused_1d", gemm_bound);
    const double of_gemm = *part(result.confidence, "GEMM bf16").evidence.error;
    CHECK(part(result.confidence, "contention with DMA").evidence.basis == Basis::estimate);
    CHECK(result.confidence.causes.at("GEMM bf16") > 0.5 * of_gemm);
    const RunResult bound_by_copies = run_on("mi300x_8", "ring_chunked");
    CHECK(bound_by_copies.confidence.causes.at("GEMM bf16") < 0.25 * of_gemm);
}

TEST_CASE(
    "where schedules of the machine were measured, they give the makespan's error, but not of a what-if") {
    const RunResult result = run_on("h200_2", "hetero_fused_1d");
    REQUIRE(result.confidence.measured);
    CHECK(*result.confidence.makespan_error() == result.confidence.measured->mean);
    CHECK_THAT(to_text(result.confidence), Contains("measured on 2 x NVIDIA H200)"));
    CHECK(part(result.confidence, "GEMM bf16").evidence.basis == Basis::measured);
    // No schedule with a kernel of its own was measured.
    const RunResult gated = run_on("h200_4", "flag_gated");
    CHECK_FALSE(gated.confidence.measured);
    CHECK(gated.confidence.makespan_error());
    const RunResult changed =
        run_on("h200_2", "hetero_fused_1d", {{"what_if", {{"topology.fabric.0.bandwidth_GBps", "2x"}}}});
    CHECK_FALSE(changed.confidence.measured);
    CHECK(*changed.confidence.makespan_error() > *result.confidence.makespan_error());
    // Copies were measured on four GPUs, schedules were not: errors of GEMMs' contention and of copies, as squares.
    const RunResult four = run_on("h200_4", "hetero_fused_1d");
    CHECK_FALSE(four.confidence.measured);
    REQUIRE(four.confidence.makespan_error());
    const double contention = *part(four.confidence, "contention with DMA").evidence.error,
                 copies = *part(four.confidence, "DMA copies").evidence.error;
    CHECK(*four.confidence.makespan_error() > 0);
    const double program = four.confidence.causes.at("another program");
    CHECK(*four.confidence.makespan_error() <= 1.05 * std::hypot(contention, copies, program));
}

TEST_CASE("a machine with other links, GPUs or rates than those measured claims no measured error") {
    const Json by_library{{"params", {{"algorithm", "library"}}}};
    const auto claims_nothing_between_gpus = [](const Confidence& confidence, const std::string& name) {
        const Evidence& evidence = part(confidence, name).evidence;
        CHECK(evidence.basis >= Basis::published);
        CHECK_FALSE(evidence.error);
        CHECK_FALSE(confidence.measured);
        CHECK(*part(confidence, name).expected > 0);
        const std::string text = to_text(confidence);
        CHECK_THAT(text, Contains("as elsewhere"));
        // "2400 measured on 2 x H100", which "measured on another machine", a width, is not.
        CHECK_FALSE(std::regex_search(text, std::regex("[0-9]\\s+measured\\s+on")));
    };
    const auto with = [](const Json& json, const std::string& key, const Json& value) {
        Json changed = json;
        changed["what_if"] = {{key, value}};
        return changed;
    };
    // As measured.
    CHECK(run_on("h200_2", "hetero_fused_1d").confidence.measured);
    CHECK(part(run_on("h200_8", "serial", by_library).confidence, "library collectives").evidence.error);
    // Another rate, number of GPUs, value of the device, or a slow GPU.
    const std::string rate = "topology.fabric.0.bandwidth_GBps";
    claims_nothing_between_gpus(run_on("h200_8", "serial", with(by_library, rate, 46.5)).confidence,
                                "library collectives");
    claims_nothing_between_gpus(run_on("mi300x_8", "serial", with(by_library, rate, 12)).confidence,
                                "library collectives");
    claims_nothing_between_gpus(run_on("h200_8", "hetero_fused_1d").confidence, "DMA copies");
    claims_nothing_between_gpus(run_on("h200_8", "hetero_fused_1d").confidence, "contention with DMA");
    claims_nothing_between_gpus(
        run_on("h200_2", "hetero_fused_1d", with(Json::object(), "device.dma.engine_GBps", "2x")).confidence,
        "DMA copies");
    // Links are no matter of a GPU's own work, units are.
    CHECK(part(run_on("h200_8", "serial", with(by_library, rate, 46.5)).confidence, "GEMM bf16")
              .evidence.basis == Basis::measured);
    const Confidence units =
        run_on("mi300x_8", "serial", with(by_library, "device.compute_units", 200)).confidence;
    claims_nothing_between_gpus(units, "GEMM bf16");
}

TEST_CASE("nothing of the confidence is cut, however many parts it has") {
    Confidence confidence;
    for (int i = 0; i < 40; ++i) confidence.parts.push_back({"part number " + std::to_string(i), {}});
    std::string joined;
    for (const std::string& line : lines_of(confidence, SIZE_MAX)) {
        CHECK(line.size() <= 100);
        joined += line + " ";
    }
    CHECK_THAT(joined, Contains("part number 39 estimate") && !Contains("...") && !Contains("…"));
}

TEST_CASE("a run that its host bounds is as uncertain as the host's calls, a run of long kernels is not") {
    const auto on_host = [](int m) {
        return run_on("h200_2", "async_tp",
                      {{"host", "pytorch_eager"},
                       {"repeat", "steady"},
                       {"workload",
                        {{"collective", "all_gather"},
                         {"gemm", {{"m", m}, {"n", 4096}, {"k", 4096}, {"dtype", "bf16"}}}}}});
    };
    // error_pct of configs/hosts/pytorch_eager.json: an operator of short kernels takes as long as its calls, which may
    // take 38 % longer.
    const RunResult small = on_host(1024);
    CHECK(*part(small.confidence, "host calls of pytorch_eager").evidence.error == Approx(0.38));
    CHECK(small.confidence.causes.at("host calls of pytorch_eager") == Approx(0.38).epsilon(0.001));
    CHECK(*on_host(32'768).confidence.makespan_error() < 0.06);
}

TEST_CASE("in a steady state, errors of parts move the steady makespan", "[confidence]") {
    const RunResult steady =
        run_on("h200_4", "hetero_fused_1d", {{"repeat", "steady"}, {"host", "pytorch_eager"}});
    REQUIRE(steady.steady->gemm_speed < 0.95);  // so that the cool makespan is another
    const double contention = *part(steady.confidence, "contention with DMA").evidence.error,
                 copies = *part(steady.confidence, "DMA copies").evidence.error;
    CHECK(*steady.confidence.makespan_error() > 0);
    const double any_run = steady.confidence.causes.at("any run");
    CHECK(*steady.confidence.makespan_error() <= 1.05 * std::hypot(contention, copies, any_run));
}

}  // namespace overlap::test::confidence_test
