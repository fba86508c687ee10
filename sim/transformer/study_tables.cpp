#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"
#include "sim/transformer/study_report.hpp"

namespace overlap {
namespace {

Json operator_json(const OperatorStudy& row) {
    Json json{{"name", row.name},
              {"serial_us", to_microseconds(row.whole)},
              {"overlapped_us", to_microseconds(row.cut)}};
    if (!row.is_pair) return json;
    json["schedule"] = row.best ? Json(row.best->schedule) : Json();
    if (!row.best) return json;
    json["params"] = row.best->params();
    json["own_kernel"] = row.own_kernel();
    if (row.own_serial) json["serial_params"] = row.own_serial->params();
    json["gain"] = row.gain;
    json["decided_by"] = or_null(row.decided_by);
    json["decided_by_us"] = to_microseconds(row.difference);
    return json;
}

void add_times(const StudyTimes& times, Json& json) {
    json["serial_us"] = to_microseconds(times.whole);
    json["overlapped_us"] = to_microseconds(times.cut);
    json["exposed_serial_us"] = to_microseconds(times.exposed_whole);
    json["exposed_overlapped_us"] = to_microseconds(times.exposed_cut);
}

Json list_study_json(const ListStudy& list) {
    Json json{{"name", list.name},
              {"count", list.count},
              {"serial", list.serial},
              {"own_serial_of_pairs", list.own_serial}};
    add_times(list, json);
    json["rest"] = list.concurrent ? "concurrent" : "serial";
    if (list.gained_of_iteration) json["gained_of_iteration_us"] = to_microseconds(*list.gained_of_iteration);
    json["gemm_speed_serial"] = list.steady_whole ? list.steady_whole->gemm_speed : 1;
    json["gemm_speed_overlapped"] = list.steady_cut ? list.steady_cut->gemm_speed : 1;
    json["operators"] = mapped(list.operators, operator_json);
    return json;
}

Json pipeline_json(const Pipeline& pipeline, const PipelineStudy& study) {
    Json json{{"stages", pipeline.stages},
              {"chunks", pipeline.chunks},
              {"order", pipeline_order_names[static_cast<std::size_t>(pipeline.order)]},
              {"micro_batches", pipeline.micro_batches},
              {"send_us", to_microseconds(study.send)},
              {"forward_serial_us", to_microseconds(study.slowest_whole.forward)},
              {"forward_overlapped_us", to_microseconds(study.slowest_cut.forward)},
              {"backward_serial_us", to_microseconds(study.slowest_whole.backward)},
              {"backward_overlapped_us", to_microseconds(study.slowest_cut.backward)},
              {"bubble_serial", bubble(study.whole)},
              {"bubble_overlapped", bubble(study.cut)}};
    if (pipeline.directions() == 2) {
        json["gain_serial_us"] = to_microseconds(study.slowest_whole.gain);
        json["gain_overlapped_us"] = to_microseconds(study.slowest_cut.gain);
    }
    return json;
}

Json step_json(const StepStudy& step) {
    const auto of_model = [&](auto value) { return step.shape.tokens == 0 ? Json() : Json(value); };
    Json json{{"tokens", of_model(all_tokens(step.shape))}, {"sequence", of_model(step.shape.sequence)}};
    add_times(step, json);
    json["speedup"] = step.whole / step.cut;
    if (step.cut_by_library) {
        json["overlapped_library_kernels_us"] = to_microseconds(*step.cut_by_library);
        json["speedup_library_kernels"] = step.whole / *step.cut_by_library;
    }
    if (step.one_batch)
        json["one_batch"] = {{"serial_us", to_microseconds(step.one_batch->whole)},
                             {"overlapped_us", to_microseconds(step.one_batch->cut)}};
    if (step.shape.deepep_sms) json["sms"] = *step.shape.deepep_sms;
    for (const auto& [sms, time] : step.by_sms)
        json["overlapped_us_by_sms"][std::to_string(sms)] = to_microseconds(time);
    json["tokens_per_s_serial"] = of_model(step.tokens_per_second(step.whole));
    json["tokens_per_s_overlapped"] = of_model(step.tokens_per_second(step.cut));
    json["mfu_serial"] = or_null(step.mfu_whole);
    json["mfu_overlapped"] = or_null(step.mfu_cut);
    if (step.pipeline) json["pipeline"] = pipeline_json(step.shape.pipeline, *step.pipeline);
    json["lists"] = mapped(step.lists, list_study_json);
    return json;
}

std::string table_row(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + cell + " |";
    return line + "\n";
}

}  // namespace

bool ModelReport::has_own_kernels() const {
    return std::ranges::any_of(steps, [](const StepStudy& step) {
        return std::ranges::any_of(step.lists, [](const ListStudy& list) {
            return std::ranges::any_of(list.operators, &OperatorStudy::own_kernel);
        });
    });
}

std::string label_of(const StepStudy& step) {
    return step.shape.tokens == 0 ? "step" : std::to_string(all_tokens(step.shape)) + " tokens";
}

std::string serial_of(const ListStudy& list) {
    const std::string by = list.serial.substr(list.serial.rfind("/-/") + 3);
    return "serial by " + by + (list.own_serial ? ", pairs by their own fastest" : "");
}

std::string description_of(const ModelReport& report) {
    const Model& model = report.model;
    const StepShape& shape = report.steps.front().shape;
    const std::string gpus = std::to_string(shape.spread.gpus) + " x " + report.device;
    if (report.is_list())
        return std::to_string(report.steps.front().lists.front().operators.size()) + " operators; " + gpus;
    const auto billions = [](std::int64_t count) {
        return significant(static_cast<double>(count) * 1e-9) + " G";
    };
    std::string text = billions(parameters(model)) + " parameters";
    if (model.has_experts()) text += ", " + billions(active_parameters(model)) + " for a token";
    return text + ", " + std::to_string(model.layers) + " layers; " +
           phase_names[static_cast<std::size_t>(shape.phase)] + ", " + name_of(shape.dtype) + ", " + gpus +
           ", " + to_text(shape.spread);
}

std::string to_text(const Parallelism& spread) {
    std::vector<std::string> parts;
    if (spread.tensor > 1) parts.push_back("tp " + std::to_string(spread.tensor));
    if (spread.sequence) parts.push_back("sequence-parallel");
    if (spread.experts > 1) parts.push_back("ep " + std::to_string(spread.experts));
    if (spread.stages > 1) parts.push_back("pp " + std::to_string(spread.stages));
    if (spread.context > 1) parts.push_back("cp " + std::to_string(spread.context));
    if (const int copies = spread.data / spread.context; copies > 1)
        parts.push_back("dp " + std::to_string(copies));
    if (spread.sharded) parts.push_back("fsdp");
    return parts.empty() ? "one GPU" : joined(parts);
}

Json to_json(const ModelReport& report) {
    const StepShape& shape = report.steps.front().shape;
    const std::string library = report.confidence.gemm_library();
    Json json{{"schema", 1}, {report.is_list() ? "workload" : "model", report.model.name}};
    if (!report.is_list())
        json.update({{"family", report.model.family},
                     {"parameters", parameters(report.model)},
                     {"active_parameters", active_parameters(report.model)},
                     {"layers", std::int64_t{report.model.layers}}});
    json["topology"] = report.topology;
    if (!report.is_list())
        json.update({{"phase", phase_names[static_cast<std::size_t>(shape.phase)]},
                     {"dtype", name_of(shape.dtype)},
                     {"tp", shape.spread.tensor},
                     {"ep", shape.spread.experts},
                     {"pp", shape.spread.stages},
                     {"cp", shape.spread.context},
                     {"dp", shape.spread.data / shape.spread.context},
                     {"recompute", recompute_names[static_cast<std::size_t>(shape.training.recompute)]},
                     {"sequence_parallel", shape.spread.sequence},
                     {"fsdp", shape.spread.sharded}});
    if (shape.spread.context > 1)
        json["cp_comm_type"] = context_exchange_names[static_cast<std::size_t>(shape.spread.exchange)];
    if (!report.is_list() && shape.phase == Phase::training)
        json["optimizer_dtype"] = name_of(shape.training.moments);
    if (shape.phase == Phase::training && shape.dtype == DType::fp8)
        json["fp8_recipe"] = fp8_recipe_names[static_cast<std::size_t>(shape.training.recipe)];
    if (shape.spread.zero != Zero::none) json["zero"] = static_cast<int>(shape.spread.zero);
    json["gemm_library"] = or_null(library);
    json["confidence"] = to_json(report.confidence);
    add_remarks(report.remarks(), json);
    json["steps"] = mapped(report.steps, step_json);
    return json;
}

std::string to_csv(const ModelReport& report) {
    std::string text =
        "tokens,list,count,operator,serial_us,overlapped_us,exposed_serial_us,exposed_overlapped_us,schedule,own_kernel,gain,decided_by," +
        confidence_columns + "," + remark_columns + "\n";
    const std::string sure = confidence_cells(&report.confidence) + "," + remark_cells(report.remarks());
    const auto add = [&](const std::vector<Json>& cells) {
        for (const Json& cell : cells) text += csv_cell(cell) + ",";
        text += sure + "\n";
    };
    const auto us = [](Seconds time) { return Json(to_microseconds(time)); };
    const Json none;
    for (const StepStudy& step : report.steps) {
        const Json tokens = step.shape.tokens == 0 ? none : Json(all_tokens(step.shape));
        const auto add_sum = [&](const std::string& name, std::int64_t count, const StudyTimes& sum) {
            add({tokens, name, count, none, us(sum.whole), us(sum.cut), us(sum.exposed_whole),
                 us(sum.exposed_cut), none, none, none, none});
        };
        for (const ListStudy& list : step.lists) {
            for (const OperatorStudy& row : list.operators) {
                const Json schedule = row.best ? Json(row.best->label()) : none;
                const Json gain = row.best ? Json(row.gain) : none;
                add({tokens, list.name, list.count, row.name, us(row.whole), us(row.cut), none, none,
                     schedule, row.best ? Json(row.own_kernel()) : none, gain, or_null(row.decided_by)});
            }
            add_sum(list.name, list.count, list);
        }
        add_sum("step", 1, step);
        if (step.cut_by_library)
            add({tokens, "step with library kernels", 1, none, us(step.whole), us(*step.cut_by_library), none,
                 none, none, none, none, none});
    }
    return text;
}

std::string to_markdown(const ModelReport& report) {
    std::string text = "## " + report.model.name + " on " + report.topology +
                       (report.is_list() ? "" : ", " + to_text(report.steps.front().shape.spread)) + "\n\n";
    text += table_row({"step", "serial ms", "with overlap ms", "speed-up", "exposed, serial ms",
                       "exposed, overlap ms", "tokens/s", "MFU"}) +
            table_row({"---", "---", "---", "---", "---", "---", "---", "---"});
    const auto ms = [](Seconds time) { return fixed(time.si() * 1e3, 2); };
    for (const StepStudy& step : report.steps) {
        text += table_row({label_of(step), ms(step.whole), ms(step.cut), fixed(step.whole / step.cut, 3),
                           ms(step.exposed_whole), ms(step.exposed_cut),
                           report.is_list() ? "" : significant(step.tokens_per_second(step.cut)),
                           step.mfu_cut ? percent_text(*step.mfu_cut) : "n/a"});
        if (step.cut_by_library)
            text += table_row(
                {label_of(step) + ", library kernels", ms(step.whole), ms(*step.cut_by_library),
                 fixed(step.whole / *step.cut_by_library, 3), "", "",
                 report.is_list() ? "" : significant(step.tokens_per_second(*step.cut_by_library)), ""});
    }
    for (const StepStudy& step : report.steps)
        for (const ListStudy& list : step.lists) {
            text += "\n### " + label_of(step) + ", " + list.name + " (" + std::to_string(list.count) +
                    ")\n\n" +
                    table_row({"operator", "serial us", "with overlap us", "schedule", "gain alone",
                               "decided by"}) +
                    table_row({"---", "---", "---", "---", "---", "---"});
            for (const OperatorStudy& row : list.operators)
                text += table_row({row.name, us_text(row.whole), us_text(row.cut), row.label(),
                                   row.best ? percent_text(row.gain) : "", row.decided_by});
        }
    if (report.has_own_kernels()) text += "\n" + own_kernel_meaning + "\n";
    if (const std::string sure = to_text(report.confidence); !sure.empty()) text += "\n" + sure + "\n";
    for (const std::string& one : texts_of(report.remarks())) text += "\n" + one + "\n";
    return text;
}

}  // namespace overlap
