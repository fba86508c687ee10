#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

/// How rows are divided among experts: groups of a GEMM. None for an MLP that all rows go through.
struct Groups {
    Whole of_gpu = 1, ranks = 1, chosen = 1;
    double imbalance = 0;
};

GemmShape grouped(GemmShape gemm, const Groups& groups) {
    if (groups.of_gpu == 1) return gemm;
    gemm.groups = narrowed<std::int32_t>(groups.of_gpu, "the number of experts of a GPU");
    gemm.group_ranks = narrowed<std::int32_t>(groups.ranks, "the number of GPUs with experts");
    gemm.group_choices = narrowed<std::int32_t>(groups.chosen, "the number of experts of a token");
    gemm.imbalance = groups.imbalance;
    return gemm;
}

/// The projections of an MLP of `width` columns on this GPU, for `rows` tokens.
void add_projections(const Model& model, const std::string& prefix, Whole rows, Whole width,
                     std::vector<std::size_t> input, OperatorList& list, const Groups& groups = {}) {
    const Whole made = (model.gated ? 2 : 1) * width;
    list.add(prefix + (model.gated ? "gate_up" : "up"), grouped(list.gemm(rows, made, model.hidden), groups),
             std::move(input));
    list.add(prefix + "activation", list.streams(rows * made, rows * width));
    list.add(prefix + "down", grouped(list.gemm(rows, model.hidden, width), groups));
}

}  // namespace

void add_mlp(const Model& model, const StepShape& step, std::size_t input, OperatorList& list) {
    add_projections(model, "", rows_of(step), model.width / step.spread.tensor, {input}, list);
}

// Every GPU is sent its mean share of tokens; its grouped GEMMs have the rows of the busiest GPU (StepShape::imbalance).
void add_experts(const Model& model, const StepShape& step, std::size_t norm, OperatorList& list) {
    const ExpertsShape& experts = model.experts;
    const Parallelism& spread = step.spread;
    const bool exchanged = spread.experts > 1;
    const Whole rows = exchanged ? norm_rows_of(step) : rows_of(step);
    const std::int64_t parts = exchanged ? 1 : spread.tensor;  // of an expert's width
    const std::size_t input = exchanged ? norm : add_gather(step, "mlp_gather", model.hidden, norm, list);
    const std::size_t router = list.add("router", list.gemm(rows, experts.count, model.hidden));
    std::vector<std::size_t> results;
    if (experts.shared > 0) {
        add_projections(model, "shared_", rows, experts.shared * experts.width / parts, {input}, list);
        results.push_back(list.last());
    }
    const Whole chosen = rows * experts.chosen;
    if (exchanged) {
        const std::size_t arrived = list.add(
            "dispatch",
            list.collective(CollectiveKind::all_to_all, chosen, model.hidden, false, spread.experts_group()),
            {router});
        add_projections(model, "expert_", chosen, experts.width, {arrived}, list,
                        {experts.count / spread.experts, spread.experts, experts.chosen, step.imbalance});
        list.add("combine", list.collective(CollectiveKind::all_to_all, chosen, model.hidden, true,
                                            spread.experts_group()));
    } else {
        const std::size_t sorted =
            list.add("permute", list.streams(rows * model.hidden, chosen * model.hidden), {router});
        add_projections(model, "expert_", chosen, experts.width / parts, {sorted}, list,
                        {experts.count, 1, experts.chosen, step.imbalance});
    }
    results.push_back(list.last());
    const Whole shared = experts.shared > 0 ? rows : Whole(0);
    list.add("experts_sum", list.streams((chosen + shared) * model.hidden, rows * model.hidden), results);
}

}  // namespace overlap
