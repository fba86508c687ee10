#include "sim/chakra/chakra_numbers.hpp"

#include <sim/chakra/execution_trace.pb.h>
#include <algorithm>
#include <array>
#include <cmath>

namespace overlap {

std::uint64_t whole_number(double value) {
    return static_cast<std::uint64_t>(std::llround(std::min(value, 9e18)));
}

ChakraNumbers chakra_numbers(const Operator& op, std::int64_t ranks) {
    ChakraNumbers numbers;
    if (const auto* gemm = std::get_if<GemmShape>(&op.work)) {
        const Bytes operands = matrix_size(gemm->m, gemm->k, gemm->dtype) +
                               matrix_size(gemm->k, gemm->n, gemm->dtype) +
                               matrix_size(gemm->m, gemm->n, output_type(gemm->dtype));
        numbers.ops = whole_number(gemm->flops().si());
        numbers.tensor_bytes = whole_number(static_cast<double>(gemm->batch) * operands.si());
    } else if (const auto* stream = std::get_if<StreamingWork>(&op.work)) {
        if (const Seconds time = std::max(stream->time, op.recorded.time); time > Seconds()) {
            numbers.micros = std::max<std::uint64_t>(1, whole_number(to_microseconds(time)));
            return numbers;
        }
        // ASTRA-sim's roofline divides by the number of operations.
        numbers.ops = std::max<std::uint64_t>(1, whole_number(stream->flops.si()));
        numbers.tensor_bytes = whole_number((stream->read + stream->written).si());
    } else if (const auto* sum = std::get_if<ReductionWork>(&op.work)) {
        numbers.ops = 1;
        numbers.tensor_bytes = whole_number((sum->parts + 1) * sum->bytes.si());
    } else if (const auto* collective = std::get_if<CollectiveWork>(&op.work)) {
        static constexpr std::array types{chakra::ALL_GATHER, chakra::REDUCE_SCATTER, chakra::ALL_REDUCE,
                                          chakra::ALL_TO_ALL};  // by CollectiveKind
        const bool gathers = collective->kind == CollectiveKind::all_gather;
        numbers.comm_type = types[static_cast<std::size_t>(collective->kind)];
        numbers.comm_bytes = whole_number(
            collective->operand.si() /
            (gathers ? static_cast<double>(collective->group.members(static_cast<int>(ranks))) : 1));
    }
    return numbers;
}

}  // namespace overlap
