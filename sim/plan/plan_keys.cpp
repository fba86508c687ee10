#include "sim/plan/plan_keys.hpp"

namespace overlap {

// clang-format off
InputKeys<PlanMeasure> measure_keys() {
    using M = PlanMeasure;
    static const std::vector<InputKey<M>> keys{
        InputKey<M>(field<&M::repeats>("repeats", "Timed executions. 0, the default: as replay is told.").plain_in({0, 10000})).optional(),
        InputKey<M>(field<&M::warm_ups>("warm_ups", "Executions before these.").plain_in({0, 10000})).optional(),
        InputKey<M>(field<&M::at_peak_clock>("at_peak_clock", "GPUs rest before each until they run at their peak clocks.")).optional(),
        InputKey<M>(field<&M::cold_caches>("cold_caches", "Caches are overwritten before each.")).optional(),
        InputKey<M>(field<&M::marks>("marks", "An event after each task; its time is in the results of each execution.")).optional()};
    return keys;
}

InputKeys<PlanHead> plan_head_keys() {
    using H = PlanHead;
    static const std::vector<InputKey<H>> keys{
        version_key<H>("plan"),
        text_key<H>("description", &H::description, "What it does, for people.").optional(),
        field<&H::gpus>("gpus", "Ranks 0 to gpus - 1.").plain_in({1, 1e6}),
        object_key<H>("config", &H::config, {{"description", "Run config that it is a plan of, or its workload alone, with which 'serial' is compared. A run takes from it what it is not told otherwise."}, {"type", "object"}}).optional(),
        InputKey<H>(field<&H::spans>("spans", "For replay: record the times of each task, too.")).optional().written_if([](const H& head) { return head.spans; }),
        member_key<H>("measure", &H::measure, "How replay measures it.", measure_keys()).optional().written_if([](const H& head) { return head.measure != PlanMeasure(); }),
        InputKey<H>(plain_field<&H::order>("order", list_order_names, "program: a stream runs its tasks in their order; data: those first whose data are there.")).optional()
            .written_if([](const H& head) { return head.order == ListOrder::data; }),
        texts_key<H>("streams", &H::streams, "Names of streams beside compute, local and transfer N.").optional().written_if([](const H& head) { return !head.streams.empty(); }),
        text_key<H>("not_placed", &H::not_placed, "Why the data have no places: such a graph can't be executed.").optional()};
    return keys;
}

InputKeys<Buffer> buffer_keys() {
    static const std::vector<InputKey<Buffer>> keys{
        field<&Buffer::gpu>("gpu", "Whose memory it is in.").plain_in({0, 999999}),
        text_key<Buffer>("name", &Buffer::name, "What it is for. Of ours a, b, c: of the GEMM, whole; stage a, stage c: rows of fused steps, step after step; parts: partial results that have arrived, before they are summed."),
        field<&Buffer::rows>("rows", "0 where this plan does not need the buffer.").plain_in({0, 1e12}),
        field<&Buffer::columns>("columns", "Elements of a row.").plain_in({1, 1e12}),
        plain_field<&Buffer::dtype>("dtype", dtype_names, "Number format.")};
    return keys;
}
// clang-format on

}  // namespace overlap
