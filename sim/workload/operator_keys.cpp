#include "sim/workload/operator_keys.hpp"

namespace overlap {
namespace {

constexpr Range dimension{1, 1e9};

}  // namespace

// clang-format off
InputKeys<GemmShape> gemm_keys() {
    using G = GemmShape;
    constexpr auto of_groups = [](const G& gemm) { return gemm.groups > 1; };
    constexpr auto of_random_groups = [](const G& gemm) {
        return gemm.groups > 1 && gemm.group_routing == GroupRouting::random;
    };
    static const std::vector<InputKey<G>> keys{
        field<&G::m>("m", "Rows of A and C, after the gather.").plain_in(dimension),
        field<&G::n>("n", "Columns of B and C on one GPU.").plain_in(dimension),
        field<&G::k>("k", "Columns of A, rows of B, after the gather.").plain_in(dimension),
        plain_field<&G::dtype>("dtype", dtype_names, "Number format of the operands."),
        InputKey<G>(field<&G::groups>("groups", "Above 1: a grouped GEMM, whose m rows are divided among so many matrices B, the experts of one GPU.").plain_in({1, 65536}).optional()).written_if(of_groups),
        InputKey<G>(field<&G::group_ranks>("group_ranks", "GPUs that have so many groups each (expert parallelism); the busiest is priced.").plain_in({1, 65536}).optional().only_with("groups")).written_if(of_groups),
        InputKey<G>(field<&G::group_choices>("group_choices", "Groups that each token goes to (top k).").plain_in({1, 65536}).optional().only_with("groups")).written_if(of_groups),
        InputKey<G>(plain_field<&G::group_routing>("group_routing", group_routing_names, "even: as many rows for each group as whole rows allow (default). random: each token picks its groups at random, so that of few tokens some groups get none.").optional().only_with("groups")).written_if(of_random_groups),
        InputKey<G>(field<&G::imbalance>("imbalance", "Exponent of a power law by which rows are spread over groups, instead of group_routing; 0: none.").plain_in({0, 10}).optional().only_with("groups")).written_if(of_groups),
        InputKey<G>(field<&G::weight_bits>("weight_bits", "Bits of an element of B in memory, with its share of scales, where the kernel widens it: 4.25 of MXFP4. Default: those of dtype.").plain_in({1, 64}).optional()).written_if([](const G& gemm) { return gemm.weight_bits > 0; }),
        InputKey<G>(field<&G::batch>("batch", "GEMMs in one kernel, each with its own operands.").plain_in(dimension).optional()).written_if([](const G& gemm) { return gemm.batch > 1; })};
    return keys;
}

InputKeys<RankGroup> group_keys() {
    static const std::vector<InputKey<RankGroup>> keys{
        field<&RankGroup::size>("size", "GPUs of a group.").plain_in({1, 65536}),
        field<&RankGroup::stride>("stride", "Difference of the ranks of neighbours in a group: 1 for ranks 0, 1, 2, ...; 8 "
            "for ranks 0, 8, 16, ... Default: 1.").plain_in({1, 65536}).optional()};
    return keys;
}

InputKeys<AttentionCall> attention_keys() {
    using A = AttentionCall;
    constexpr Range count{1, 1e6}, dims{1, 4096};
    static const std::vector<InputKey<A>> keys{
        plain_field<&A::kind>("kind", attention_kind_names, "prefill: as many queries as keys; decode: one query a sequence; backward: of a prefill."),
        field<&A::sequences>("sequences", "Sequences.").plain_in(count),
        field<&A::tokens>("tokens", "Keys of each sequence; of decode the context.").plain_in({1, 1e9}),
        field<&A::heads>("heads", "Query heads of one GPU.").plain_in(dims),
        field<&A::kv_heads>("kv_heads", "Key and value heads of one GPU; divides heads.").plain_in(dims),
        field<&A::head_dim>("head_dim", "Elements of a query or key of a head.").plain_in(dims),
        field<&A::value_dim>("value_dim", "Elements of a value of a head. Default: head_dim.").plain_in({0, 4096}).optional(),
        field<&A::window>("window", "Keys that a query sees at most. Default: all.").plain_in({0, 1e9}).optional(),
        plain_field<&A::mask>("mask", attention_mask_names, "causal: a query sees no later key.").optional(),
        plain_field<&A::dtype>("dtype", dtype_names, "Number format of the products.").optional(),
        plain_field<&A::kv_dtype>("kv_dtype", dtype_names, "Number format of the cached keys and values.").optional()};
    return keys;
}

InputKeys<ExpertExchange> exchange_keys() {
    using E = ExpertExchange;
    constexpr Range count{1, 65536};
    static const std::vector<InputKey<E>> keys{
        plain_field<&E::phase>("phase", exchange_phase_names, "dispatch: tokens to experts; combine: results back."),
        field<&E::tokens>("tokens", "Tokens of one GPU.").plain_in(dimension),
        field<&E::hidden>("hidden", "Numbers of a token.").plain_in({1, 1e6}),
        field<&E::choices>("top_k", "Experts that each token goes to.").plain_in(count),
        field<&E::experts>("experts", "Experts of all GPUs.").plain_in(count),
        field<&E::sms>("sms", "SMs of the normal kernels; 0: the low-latency kernels.").plain_in({0, 1024}),
        plain_field<&E::dtype>("dtype", dtype_names, "Number format of what is sent; fp8: with a scale for 128 numbers.")};
    return keys;
}
// clang-format on

}  // namespace overlap
