#include <cmath>

#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

/// How rows are divided among experts: groups of a GEMM. None for an MLP that all rows go through.
struct Groups {
    Whole of_gpu = 1, ranks = 1, chosen = 1;
    std::optional<double> imbalance = {};
    double weight_bits = 0;              ///< of experts alone
    std::optional<DType> operands = {};  ///< of experts alone
};

GemmShape grouped(GemmShape gemm, const Groups& groups) {
    if (groups.weight_bits > 0) gemm.weight_bits = groups.weight_bits;
    gemm.dtype = groups.operands.value_or(gemm.dtype);
    if (groups.of_gpu == 1) return gemm;
    gemm.groups = narrowed<std::int32_t>(groups.of_gpu, "the number of experts of a GPU");
    gemm.group_ranks = narrowed<std::int32_t>(groups.ranks, "the number of GPUs with experts");
    gemm.group_choices = narrowed<std::int32_t>(groups.chosen, "the number of experts of a token");
    gemm.imbalance = groups.imbalance.value_or(0);
    if (!groups.imbalance) gemm.group_routing = GroupRouting::random;
    return gemm;
}

/// The projections of an MLP of `width` columns on this GPU, for `rows` tokens of `hidden` numbers.
void add_projections(const Model& model, const std::string& prefix, Whole rows, Whole hidden, Whole width,
                     std::vector<std::size_t> input, OperatorList& list, const Groups& groups = {}) {
    const Whole made = (model.gated ? 2 : 1) * width;
    list.add(prefix + (model.gated ? "gate_up" : "up"), grouped(list.gemm(rows, made, hidden), groups),
             std::move(input));
    list.add(prefix + "activation", list.streams(rows * made, rows * width));
    list.add(prefix + "down", grouped(list.gemm(rows, hidden, width), groups));
}

}  // namespace

void add_mlp(const Model& model, Whole width, const StepShape& step, std::size_t input, OperatorList& list) {
    add_projections(model, "", rows_of(step), model.hidden, width / step.spread.tensor, {input}, list);
}

// Every GPU is sent its mean share of tokens; its grouped GEMMs have the rows of the busiest GPU
// (StepShape::imbalance).
void add_experts(const Model& model, const ExpertsShape& experts, const StepShape& step, std::size_t input,
                 OperatorList& list) {
    const Parallelism& spread = step.spread;
    const bool exchanged = spread.experts > 1;
    const Whole rows = exchanged ? norm_rows_of(step) : rows_of(step), columns = experts.input;
    const std::int64_t parts = exchanged ? 1 : spread.tensor;  // of an expert's width
    const std::size_t router =
        list.add("router", list.gemm(rows, experts.count + experts.idle, model.hidden), {input});
    const bool quantised = step.stored.only_experts && step.phase != Phase::training;
    const DType operands = quantised ? step.stored.operands : step.dtype;
    const double weight_bits = quantised ? step.stored.bits_beside(operands) : 0;
    std::vector<std::size_t> results;
    if (experts.shared_width > 0) {
        add_projections(model, "shared_", rows, model.hidden, experts.shared_width / parts, {input}, list);
        results.push_back(list.last());
    }
    std::size_t sent = router;
    const bool latent = columns != model.hidden;
    if (latent) sent = list.add("experts_in", list.gemm(rows, columns, model.hidden), {router});
    const Whole chosen = rows * experts.chosen;
    Whole summed = chosen;  // rows that are left to add
    if (exchanged) {
        const auto all_to_all = [&](ExchangePhase phase) {
            CollectiveWork work = list.collective(CollectiveKind::all_to_all, chosen, columns,
                                                  phase == ExchangePhase::combine, spread.experts_group());
            if (!step.deepep_sms) return work;
            work.exchange = {.tokens = rows,
                             .hidden = narrowed<std::int32_t>(columns, "the size of a token"),
                             .choices = narrowed<std::int32_t>(experts.chosen, "the experts of a token"),
                             .experts = narrowed<std::int32_t>(experts.count, "the number of experts"),
                             .sms = *step.deepep_sms,
                             .phase = phase,
                             .dtype = work.dtype == DType::fp4 ? DType::fp8 : work.dtype};
            work.operand = static_cast<double>(Whole(rows)) * work.exchange.copies_to(spread.experts) *
                           work.exchange.token_bytes();
            return work;
        };
        const CollectiveWork dispatch = all_to_all(ExchangePhase::dispatch);
        std::size_t arrived = list.add("dispatch", dispatch, {sent});
        // DeepEP's normal kernels send a token once to each GPU, and its sum back.
        const bool once = step.deepep_sms && !dispatch.exchange.is_low_latency();
        const Whole received =
            once
                ? Whole(std::llround(static_cast<double>(rows) * dispatch.exchange.copies_to(spread.experts)))
                : chosen;
        if (once) arrived = list.add("permute", list.streams(received * columns, chosen * columns));
        add_projections(model, "expert_", chosen, columns, experts.width, {arrived}, list,
                        {experts.count / spread.experts, spread.experts, experts.chosen, step.imbalance,
                         weight_bits, operands});
        if (once) list.add("unpermute", list.streams(chosen * columns, received * columns));
        list.add("combine", all_to_all(ExchangePhase::combine));
        if (step.deepep_sms) summed = rows;
    } else {
        const std::size_t sorted =
            list.add("permute", list.streams(rows * columns, chosen * columns), {sent});
        add_projections(model, "expert_", chosen, columns, experts.width / parts, {sorted}, list,
                        {experts.count, 1, experts.chosen, step.imbalance, weight_bits, operands});
    }
    results.push_back(list.last());
    const Whole shared = experts.shared_width > 0 && !latent ? rows : Whole(0);
    list.add("experts_sum", list.streams((summed + shared) * columns, rows * columns), results);
    if (latent) list.add("experts_out", list.gemm(rows, model.hidden, columns));
}

}  // namespace overlap
