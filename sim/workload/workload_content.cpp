#include "sim/workload/workload.hpp"

namespace overlap {

bool Pair::sends_c() const {
    return order == Order::gemm_first || collective == CollectiveKind::reduce_scatter ||
           collective == CollectiveKind::all_reduce;
}

DType Pair::operand_type() const {
    return sends_c() ? output_type(gemm.dtype) : gemm.dtype;
}

Bytes Pair::operand(int ranks) const {
    const std::int64_t rows = gathers_results() ? ranks * gemm.m : gemm.m;
    return matrix_size(rows, sends_c() ? gemm.n : gemm.k, operand_type());
}

std::vector<Operator> Workload::operators(int gpus) const {
    const Pair* only = pair();
    if (only == nullptr) return std::get<std::vector<Operator>>(content);
    Operator gemm{"gemm", only->gemm, {}};
    Operator collective{name_of(only->collective),
                        CollectiveWork{only->collective, only->operand(gpus), only->operand_type()},
                        {}};
    if (only->order == Order::gemm_first) {
        collective.needs = {0};
        return {gemm, collective};
    }
    if (only->order == Order::collective_first) gemm.needs = {0};
    return {collective, gemm};
}

std::vector<GemmShape> Workload::gemms() const {
    if (const Pair* only = pair()) return {only->gemm};
    std::vector<GemmShape> gemms;
    for (const Operator& op : std::get<std::vector<Operator>>(content))
        if (const auto* gemm = std::get_if<GemmShape>(&op.work); gemm != nullptr && !op.recorded.is_taken())
            gemms.push_back(*gemm);
    return gemms;
}

std::string Workload::form() const {
    const Pair* both = pair();
    if (both == nullptr) return "operators";
    const std::string& collective = name_of(both->collective);
    switch (both->order) {
        case Order::collective_first:
            return collective + " > gemm";
        case Order::gemm_first:
            return "gemm > " + collective;
        case Order::independent:
            return "gemm | " + collective;
    }
    return {};
}

}  // namespace overlap
