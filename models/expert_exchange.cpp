#include "models/expert_exchange.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/gemm_tiling.hpp"

namespace overlap {

std::span<const Field<ExchangeParameters>> ExchangeParameters::fields() {
    using P = ExchangeParameters;
    // clang-format off
    static const std::array rows{
        field<&P::launch>("launch_us", "Start of the kernel and its barriers with all GPUs."),
        field<&P::expert>("expert_us", "What each expert of all GPUs adds to the start.").optional(),
        field<&P::start>("start_GBps", "Rate at which one token goes through an idle machine: start grows by its bytes over this rate."),
        field<&P::start_exponent>("start_exponent", "s in (start^s + body^s)^(1/s).").in({0.3, 20}),
        field<&P::copy>("copy_us", "Time of one worker for each copy of a token that it sends or receives."),
        field<&P::unit>("GBps_per_cu", "Rate of one worker: an SM of the normal kernels, or an expert's warps."),
        field<&P::own>("own_GBps_per_cu", "Rate of one SM for what a token costs once, however many GPUs it goes to.").optional(),
        field<&P::token>("token_us", "Time of one SM for each token, however many GPUs it goes to.").optional(),
        field<&P::node>("node_GBps_per_cu", "Rate of one SM for a token's copies to nodes, its own included, where there are several.").optional(),
        field<&P::link>("link_GBps", "Rate of a GPU's links to all others together."),
        field<&P::link_exponent>("link_exponent", "q in (work^q + links^q)^(1/q).").in({1, 20})};
    // clang-format on
    return rows;
}

std::span<const Field<ExchangeParameters>> ExchangeParameters::fixed_fields() {
    static const std::array rows{
        field<&ExchangeParameters::nic>("nic_GBps", "Line rate of a GPU's network interface.")};
    return rows;
}

Seconds estimate_exchange(const ExpertExchange& exchange, const ExchangeGroup& group,
                          const ExchangeParameters& p) {
    using gemm_detail::smooth_max;
    // A rate of 0: the kernel has no such cost.
    const auto over = [](Bytes bytes, BytesPerSecond rate) {
        return rate.si() > 0 ? (bytes / rate).si() : 0.0;
    };
    const bool normal = !exchange.is_low_latency();
    const Bytes bytes = exchange.token_bytes();
    const double gpus = group.gpus, nodes = group.nodes, copies = exchange.copies_to(group.gpus),
                 to_nodes = exchange.copies_to(group.nodes), tokens = static_cast<double>(exchange.tokens);
    const double workers = normal ? exchange.sms : exchange.experts / gpus;
    double each = copies * (p.copy.si() + over(bytes, p.unit));
    if (normal) each += over(bytes, p.own) + p.token.si();
    if (normal && nodes > 1) each += to_nodes * over(bytes, p.node);
    const double work = tokens / workers * each;
    const double links = tokens * copies * (gpus - 1) / gpus * over(bytes, p.link);
    const double network = tokens * to_nodes * (nodes - 1) / nodes * over(bytes, p.nic);
    const double body = std::max(smooth_max(work, links, p.link_exponent), network);
    const double start = p.launch.si() + exchange.experts * p.expert.si() + over(bytes, p.start);
    return Seconds(smooth_max(start, body, p.start_exponent));
}

}  // namespace overlap
