#pragma once

#include <span>

#include "sim/core/fields.hpp"
#include "sim/core/operators.hpp"

namespace overlap {

/// Parameters of one of DeepEP's kernels on a device. What each means stands in `fields()`.
struct ExchangeParameters {
    BytesPerSecond nic;
    Seconds launch, expert, copy, token;
    BytesPerSecond start, unit, own, node, link;
    double link_exponent = 3, start_exponent = 1;

    static std::span<const Field<ExchangeParameters>> fields();
    static std::span<const Field<ExchangeParameters>> fixed_fields();
    friend bool operator==(const ExchangeParameters&, const ExchangeParameters&) = default;
};

/// The GPUs that exchange.
struct ExchangeGroup {
    int gpus = 8, nodes = 1;
};

/// Time of one kernel alone, with n tokens of a GPU of b bytes and P GPUs.
///   copies  = distinct GPUs of a token's experts (normal), or its experts (low latency)
///   workers = SMs, or experts of a GPU, each of whose rows one group of warps receives
///   work    = n / workers · (copies · (copy + b / unit) + b / own + token + nodes of the token · b / node)
///   links   = n · copies · (P − 1) / P · b / link rate
///   body    = (work^q + links^q)^(1/q), at least the bytes to other nodes over the NIC
///   time    = (start^s + body^s)^(1/s), start = launch + experts · expert + b / start rate
/// Ignored: imbalance, gates that choose nodes first, and the kernel before a normal dispatch that tells the sizes.
Seconds estimate_exchange(const ExpertExchange& exchange, const ExchangeGroup& group,
                          const ExchangeParameters& parameters);

}  // namespace overlap
