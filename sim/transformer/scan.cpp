#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

// States are kept in fp32: transformers' NemotronHConfig (mamba_ssm_cache_dtype) and vLLM's default of
// --mamba-ssm-cache-dtype for Qwen3-Next.
constexpr Bytes state_number(4);
// A number of a state takes the product that is added to it and the one with what reads it, for each token (arXiv
// 2405.21060, equation 1); what a rule of deletion adds is not counted.
constexpr double flops_of_state = 4;

Whole local(Whole columns, const StepShape& step) {
    return share(columns, step.spread.tensor);
}

/// The recurrence itself: a lower bound, by the memory that it moves. Whole sequences are cut into chunks, between
/// which the state goes through memory; a decode step reads and writes the state of each sequence.
StreamingWork scanned(const ScanShape& scan, const StepShape& step, const OperatorList& list) {
    const Whole rows = rows_of(step);
    StreamingWork work = list.streams(rows * local(scan.columns, step), rows * local(scan.inner, step));
    const bool decode = step.phase == Phase::decode;
    const Whole states = decode            ? Whole(sequences_of(step) + (step.decoding.chunk > 0 ? 1 : 0))
                         : scan.chunk == 0 ? Whole(0)
                                           : Whole(share(rows, scan.chunk));
    const Bytes moved = static_cast<double>(states * local(scan.state, step)) * state_number;
    work.read += moved;
    work.written += moved;
    work.flops = Flops(flops_of_state * static_cast<double>(rows * local(scan.state, step)));
    work.dtype = output_type(step.dtype);
    return work;
}

}  // namespace

void add_scan(const Model& model, const ScanShape& scan, const StepShape& step, std::size_t input,
              OperatorList& list) {
    const Whole rows = rows_of(step), channels = local(scan.channels, step);
    list.add("scan_in", list.gemm(rows, local(scan.columns, step), model.hidden), {input});
    if (scan.kernel > 0) {
        const Whole kept =
            step.phase == Phase::decode ? sequences_of(step) * (scan.kernel - 1) * channels : Whole(0);
        list.add("convolution", list.streams(rows * channels + kept, rows * channels + kept));
    }
    list.add("scan", scanned(scan, step, list));
    list.add("scan_out", list.gemm(rows, model.hidden, local(scan.inner, step)));
}

Bytes kept_state(const ScanShape& scan, const StepShape& step) {
    const Whole neighbours = scan.kernel > 0 ? (scan.kernel - 1) * local(scan.channels, step) : Whole(0);
    const Bytes of_convolution = static_cast<double>(neighbours) * element_size(output_type(step.dtype));
    return static_cast<double>(sequences_of(step)) *
           (static_cast<double>(local(scan.state, step)) * state_number + of_convolution);
}

}  // namespace overlap
