#include <algorithm>

#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/transformer/study_report.hpp"

namespace overlap {
namespace {

constexpr std::size_t time_width = 9, gain_width = 7;

/// Width of the names of a report.
std::size_t name_width(const ModelReport& report) {
    std::size_t width = 24;
    for (const StepStudy& step : report.steps)
        for (const ListStudy& list : step.lists)
            for (const OperatorStudy& one : list.operators) width = std::max(width, one.name.size() + 2);
    return width;
}

std::string operator_line(const OperatorStudy& one, const TimeScale& scale, std::size_t width) {
    std::string line = left("  " + one.name, width) + right(scale.format(one.whole), time_width) +
                       right(scale.format(one.cut), time_width);
    if (one.is_pair && !one.best) return line + "  no schedule fits";
    if (!one.best) return line;
    line += right(signed_percent_text(one.gain), gain_width + 2) + "  ";
    const std::string& decides = one.decided_by;
    return joined(field(line, one.label() + (decides.empty() ? "" : ", " + decides), SIZE_MAX), "\n");
}

/// What the power limit leaves of the speed of GEMMs; empty if all.
std::string clock_text(const ListStudy& list) {
    if (!list.steady_whole || std::min(list.steady_whole->gemm_speed, list.steady_cut->gemm_speed) == 1)
        return "";
    return "; GEMMs at " + fixed(100 * list.steady_whole->gemm_speed, 1) + " and " +
           fixed(100 * list.steady_cut->gemm_speed, 1) + " % of a cool GPU's speed";
}

/// How much of what overlap gains in all such lists an iteration gains.
std::string hidden_text(const ListStudy& list) {
    const Seconds gained = static_cast<double>(list.count) * (list.whole - list.cut);
    if (!list.gained_of_iteration || gained <= Seconds()) return "";
    const TimeScale scale(gained);
    return "; overlap gains a GPU " + scale.format(gained) + ", the iteration " +
           scale.format(*list.gained_of_iteration) + " " + scale.unit();
}

std::string sum_line(const char* name, const std::string& whole, const std::string& cut, std::size_t width) {
    return left(name, width) + right(whole, time_width) + right(cut, time_width);
}

std::string list_text(const ListStudy& list, const TimeScale& scale, std::size_t width) {
    std::string text =
        clipped(left(list.name + (list.count > 1 ? " (x " + std::to_string(list.count) + ")" : ""), width) +
                right("serial", time_width) + right("overlap", time_width) + right("alone", gain_width + 2) +
                "  schedule, what decides") +
        "\n";
    for (const OperatorStudy& one : list.operators) text += operator_line(one, scale, width) + "\n";
    const auto sum = [&](const char* name, Seconds whole, Seconds cut) {
        return sum_line(name, scale.format(whole), scale.format(cut), width) + " " + scale.unit() + "\n";
    };
    return text + sum("  all", list.whole, list.cut) +
           sum("  exposed communication", list.exposed_whole, list.exposed_cut) + "  " + serial_of(list) +
           (list.concurrent ? "; with overlap, operators outside of pairs as their data allow" : "") +
           clock_text(list) + hidden_text(list) + "\n";
}

std::string pipeline_text(const StepShape& shape, const PipelineStudy& study, std::size_t width) {
    const Pipeline& pipeline = shape.pipeline;
    const TimeScale scale(study.slowest_whole.backward);
    const auto sum = [&](const char* name, Seconds StageTimes::*time) {
        return sum_line(name, scale.format(study.slowest_whole.*time), scale.format(study.slowest_cut.*time),
                        width) +
               " " + scale.unit() + "\n";
    };
    std::string text = std::to_string(pipeline.micro_batches) + " micro-batches";
    if (pipeline.stages > 1)
        text += ", " + std::to_string(pipeline.stages) + " stages" +
                (pipeline.chunks > 1 ? " of " + std::to_string(pipeline.chunks) + " chunks" : "") + ", " +
                pipeline_order_names[static_cast<std::size_t>(pipeline.order)] + ", a send takes " +
                us_text(study.send) + " us";
    text += "\n" + sum("  forward, slowest stage", &StageTimes::forward) +
            sum("  backward", &StageTimes::backward) +
            (pipeline.directions() == 2 ? sum("  less by both directions", &StageTimes::gain) : "") +
            sum("  last micro-batch, more", &StageTimes::last);
    if (pipeline.stages > 1)
        text += sum_line("  bubble", fixed(100 * bubble(study.whole), 1), fixed(100 * bubble(study.cut), 1),
                         width) +
                " %\n";
    return text;
}

std::string step_text(const StepStudy& step, std::size_t width) {
    const TimeScale scale(std::max(step.whole, step.cut));
    const auto sum = [&](const char* name, Seconds whole, Seconds cut) {
        return sum_line(name, scale.format(whole), scale.format(cut), width) + " " + scale.unit();
    };
    std::string text = step.pipeline ? pipeline_text(step.shape, *step.pipeline, width) : "";
    text += sum("step", step.whole, step.cut) + "  " + significant(step.whole / step.cut) + " x\n";
    if (step.cut_by_library)
        text += sum("  with library kernels", step.whole, *step.cut_by_library) + "  " +
                significant(step.whole / *step.cut_by_library) + " x\n";
    if (step.one_batch) text += sum("  in one batch", step.one_batch->whole, step.one_batch->cut) + "\n";
    std::string sms;
    for (const auto& [count, time] : step.by_sms)
        sms += (sms.empty() ? "" : ", ") + std::to_string(count) + " " + scale.format(time);
    if (!sms.empty()) text += left("  by SMs (--sms best)", width) + "  " + sms + " " + scale.unit() + "\n";
    text += sum("  exposed communication", step.exposed_whole, step.exposed_cut) + "\n";
    if (step.shape.tokens > 0)
        text += sum_line("  tokens/s", significant(step.tokens_per_second(step.whole)),
                         significant(step.tokens_per_second(step.cut)), width) +
                "\n";
    if (step.mfu_whole)
        text += sum_line("  share of peak (MFU)", fixed(100 * *step.mfu_whole, 1),
                         fixed(100 * *step.mfu_cut, 1), width) +
                " %\n";
    return text;
}

}  // namespace

std::string to_text(const ModelReport& report) {
    std::string text = report.model.name + ": " + description_of(report) + "\n";
    const std::size_t width = name_width(report);
    for (const StepStudy& step : report.steps) {
        text += "\n" + label_of(step);
        if (!report.is_list())
            text += (step.shape.phase == Phase::decode ? ", contexts of " : ", sequences of ") +
                    std::to_string(step.shape.sequence);
        text += "\n";
        for (const ListStudy& list : step.lists)
            text += list_text(list, TimeScale(std::max(list.whole, list.cut)), width);
        text += step_text(step, width);
    }
    text += "\n";
    if (report.has_own_kernels()) text += own_kernel_meaning + "\n";
    for (const std::string& line : lines_of(report.confidence, SIZE_MAX)) text += line + "\n";
    for (const std::string& line : lines_of(report.remarks())) text += line + "\n";
    return text;
}

}  // namespace overlap
