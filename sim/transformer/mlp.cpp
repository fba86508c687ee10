#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

/// The projections of an MLP of `width` columns on this GPU, for `rows` tokens.
void add_projections(const Model& model, const std::string& prefix, std::int64_t rows, std::int64_t width,
                     std::vector<std::size_t> input, OperatorList& list) {
    const std::int64_t made = (model.gated ? 2 : 1) * width;
    list.add(prefix + (model.gated ? "gate_up" : "up"), list.gemm(rows, made, model.hidden),
             std::move(input));
    list.add(prefix + "activation", list.streams(rows * made, rows * width));
    list.add(prefix + "down", list.gemm(rows, model.hidden, width));
}

}  // namespace

void add_mlp(const Model& model, const StepShape& step, std::size_t input, OperatorList& list) {
    add_projections(model, "", rows_of(step), model.width / step.spread.tensor, {input}, list);
}

// Every GPU gets its mean share of tokens: routing is balanced. The GEMMs of its experts are priced as one.
void add_experts(const Model& model, const StepShape& step, std::size_t norm, OperatorList& list) {
    const ExpertsShape& experts = model.experts;
    const Parallelism& spread = step.spread;
    const bool exchanged = spread.experts > 1;
    const std::int64_t rows = exchanged ? norm_rows_of(step) : rows_of(step);
    const std::int64_t parts = exchanged ? 1 : spread.tensor;  // of an expert's width
    const std::size_t input = exchanged ? norm : add_gather(step, "mlp_gather", model.hidden, list);
    const std::size_t router = list.add("router", list.gemm(rows, experts.count, model.hidden));
    std::vector<std::size_t> results;
    if (experts.shared > 0) {
        add_projections(model, "shared_", rows, experts.shared * experts.width / parts, {input}, list);
        results.push_back(list.last());
    }
    const std::int64_t chosen = rows * experts.chosen;
    if (exchanged) {
        const std::size_t arrived = list.add(
            "dispatch",
            list.collective(CollectiveKind::all_to_all, chosen, model.hidden, false, spread.experts_group()),
            {router});
        add_projections(model, "expert_", chosen, experts.width, {arrived}, list);
        list.add("combine", list.collective(CollectiveKind::all_to_all, chosen, model.hidden, true,
                                            spread.experts_group()));
    } else {
        const std::size_t sorted =
            list.add("permute", list.streams(rows * model.hidden, chosen * model.hidden), {router});
        add_projections(model, "expert_", chosen, experts.width / parts, {sorted}, list);
    }
    results.push_back(list.last());
    const std::int64_t shared = experts.shared > 0 ? rows : 0;
    list.add("experts_sum", list.streams((chosen + shared) * model.hidden, rows * model.hidden), results);
}

}  // namespace overlap
