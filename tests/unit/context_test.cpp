// Sequences that GPUs share, and optimisers that they share: closed forms of a ring, bytes, memory.
#include <catch2/catch.hpp>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/transformer/layer.hpp"
#include "sim/transformer/possible.hpp"
#include "tests/models.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::context_test {

std::vector<Operator> layer(const StepShape& step) {
    const Model model = shipped_model("llama3_8b");
    return overlap::layer_operators(model, step, layer_kinds(model).front());
}

/// Training on four GPUs that share sequences of 8192 tokens.
StepShape four(ContextExchange exchange) {
    StepShape step{Phase::training, 8192, 8192};
    step.spread = {4, 1, 1, 4};
    step.spread.context = 4;
    step.spread.exchange = exchange;
    return step;
}

/// The operators of a ring's forward or backward pass, with kernels of 1 ms and messages of `bytes`, or twice as much.
std::vector<Operator> ring(bool backward, Bytes bytes) {
    const std::vector<Operator> all = layer(four(ContextExchange::p2p));
    const Bytes message = std::get<SendWork>(called(all, "ring_send_1").work).bytes;
    std::vector<Operator> chosen;
    std::map<std::size_t, std::size_t> places;
    for (std::size_t index = 0; index < all.size(); ++index) {
        Operator op = all[index];
        const bool of_backward = op.name.ends_with("_grad") || op.name == "ring_return";
        if (of_backward != backward ||
            !(op.name.starts_with("ring_") || op.name == "attention" || op.name == "attention_grad"))
            continue;
        std::erase_if(op.needs, [&](std::size_t need) { return !places.contains(need); });
        for (std::size_t& need : op.needs) need = places.at(need);
        if (auto* send = std::get_if<SendWork>(&op.work)) send->bytes = (send->bytes / message) * bytes;
        if (auto* kernel = std::get_if<StreamingWork>(&op.work))
            *kernel = {.read = {}, .written = {}, .time = Seconds(1e-3)};
        places[index] = chosen.size();
        chosen.push_back(std::move(op));
    }
    return chosen;
}

double time_of(const std::vector<Operator>& list, const std::string& schedule) {
    RunConfig config;
    config.origin = "test";
    config.topology = "h100_8";
    config.schedule = schedule;
    config.workload = to_json(Workload{"ring", "", list});
    Resolver resolver(shipped);
    return makespan_of(resolver.resolve(config)).si();
}

TEST_CASE("a ring takes the longer of attention and messages") {
    const auto one = [](Operator op) {
        op.needs.clear();
        return time_of({op}, "serial");
    };
    for (const double bytes : {10e6, 2000e6}) {
        const std::vector<Operator> forward = ring(false, Bytes(bytes)), backward = ring(true, Bytes(bytes));
        REQUIRE(forward.size() == 4 + 3 + 1);
        REQUIRE(backward.size() == 1 + 4 + 3 + 1);
        const double kernel = one(called(forward, "attention")), send = one(called(forward, "ring_send_1")),
                     twice = one(called(backward, "ring_send_1_grad"));
        INFO(kernel << " s, " << send << " s");
        CHECK(time_of(forward, "serial") == Approx(5 * kernel + 3 * send).epsilon(0.02));
        CHECK(time_of(backward, "serial") == Approx(5 * kernel + 3 * twice + send).epsilon(0.02));
        const bool hidden = bytes < 1e9;
        CHECK((hidden ? twice < kernel : send > kernel));
        // Forward: the first attention, then three times the longer; behind the last message comes attention to it.
        // The sum of the parts is last.
        CHECK(time_of(forward, "concurrent") ==
              Approx(hidden ? 5 * kernel : 3 * send + 2 * kernel).epsilon(0.03));
        // Backward: before it the gradient of the sum, behind it the last gradients of keys and values.
        CHECK(time_of(backward, "concurrent") ==
              Approx(hidden ? 5 * kernel + send : kernel + 3 * twice + kernel + send).epsilon(0.03));
    }
}

TEST_CASE("a ring has as many FLOPs, in equal parts") {
    const StepShape shared = four(ContextExchange::p2p), one{Phase::training, 8192, 8192};
    const auto flops = [](const std::vector<Operator>& list, bool first) {
        double sum = 0;
        for (const Operator& op : list)
            if ((first && op.name == "attention") ||
                (op.name.starts_with("ring_attention_") && !op.name.ends_with("_grad")))
                sum += std::get<StreamingWork>(op.work).flops.si();
        return sum;
    };
    const std::vector<Operator> list = layer(shared);
    CHECK(4 * flops(list, true) == Approx(flops(layer(one), true)));
    // Of 2048 tokens a GPU: two products of 1024 by 1024 with each other GPU's keys, 2 FLOPs for each of 2 x 128
    // numbers of 32 heads.
    CHECK(flops(list, false) == Approx(3 * 2.0 * 1024 * 1024 * 2 * 2 * 128 * 32));
    const AttentionCall& call = std::get<StreamingWork>(called(list, "ring_attention_2").work).attention;
    CHECK(call.tokens == 1024);
    CHECK(call.sequences == 2);
    CHECK(call.mask == AttentionMask::none);
    const auto& send = std::get<SendWork>(called(list, "ring_send_3").work);
    CHECK(send.bytes.si() == 2048.0 * 2 * 8 * 128 * 2);
    CHECK(send.to == std::vector<std::int64_t>{1, 2, 3, 0});
    CHECK(std::get<SendWork>(called(list, "ring_send_3_grad").work).bytes == 2 * send.bytes);
    // Parts of results are added, not kept.
    CHECK(kept_activations(shipped_model("llama3_8b"), shared).si() ==
          Approx(kept_activations(shipped_model("llama3_8b"), one).si() / 4));
}

TEST_CASE("rings go around groups with a stride") {
    StepShape step = four(ContextExchange::p2p);
    step.spread.gpus = 8;
    step.spread.tensor = 2;
    step.spread.sequence = true;
    CHECK(std::get<SendWork>(called(layer(step), "ring_send_1").work).to ==
          std::vector<std::int64_t>{2, 3, 4, 5, 6, 7, 0, 1});
}

TEST_CASE("all-to-alls give each GPU a part of the heads") {
    const std::vector<Operator> list = layer(four(ContextExchange::a2a)),
                                gathered = layer(four(ContextExchange::all_gather));
    // Each GPU sends the queries, keys and values of its 2048 rows, and back the results.
    CHECK(std::get<CollectiveWork>(called(list, "heads_scatter").work).operand.si() ==
          2048.0 * (32 + 2 * 8) * 128 * 2);
    CHECK(std::get<CollectiveWork>(called(list, "heads_gather").work).operand.si() == 2048.0 * 32 * 128 * 2);
    CHECK(std::get<StreamingWork>(called(list, "attention").work).attention ==
          std::get<StreamingWork>(called(gathered, "attention").work).attention);
}

TEST_CASE("shared optimisers") {
    const Model model = shipped_model("llama3_8b");
    StepShape step{Phase::training, 8192, 8192};
    step.spread = {4, 1, 1, 4};
    const double weights = static_cast<double>(layer_parameters(model, model.shapes.front()));
    const auto held = [&](Zero zero) {
        step.spread.zero = zero;
        return least_memory(model, step).si();
    };
    // Of 16 bytes a weight 12 are the optimiser's states, 2 the gradient.
    const double all = held(Zero::none);
    CHECK(held(Zero::states) == Approx(all * (4 + 12.0 / 4) / 16));
    CHECK(held(Zero::gradients) == Approx(all * (2 + 14.0 / 4) / 16));
    const auto of = [&](Zero zero, bool accumulates) {
        step.spread.zero = zero;
        step.training.accumulates = accumulates;
        return layer(step);
    };
    const auto has = [](const std::vector<Operator>& list, const std::string& name) {
        return std::ranges::find(list, name, &Operator::name) != list.end();
    };
    const std::vector<Operator> list = of(Zero::states, false), whole = of(Zero::none, false);
    const auto& sum = std::get<CollectiveWork>(called(list, "gradient_reduce").work);
    CHECK(sum.kind == CollectiveKind::reduce_scatter);
    CHECK(sum.operand.si() == Approx(2 * weights));
    CHECK(std::get<CollectiveWork>(called(list, "parameters_gather").work).operand == sum.operand);
    CHECK(4 * std::get<StreamingWork>(called(list, "adam").work).read.si() ==
          Approx(std::get<StreamingWork>(called(whole, "adam").work).read.si()));
    // Between micro-batches only those who hold a share of the gradients scatter them.
    CHECK_FALSE(has(of(Zero::states, true), "gradient_reduce"));
    CHECK(has(of(Zero::gradients, true), "gradient_reduce"));
    CHECK_FALSE(has(of(Zero::gradients, true), "parameters_gather"));
}

}  // namespace overlap::test::context_test
