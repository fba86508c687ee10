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
    json["schedule"] = row.best ? Json(row.best->schedule) : Json(nullptr);
    if (!row.best) return json;
    json["params"] = row.best->params();
    if (row.own_serial) json["serial_params"] = row.own_serial->params();
    json["gain"] = row.gain;
    json["decided_by"] = row.decided_by.empty() ? Json(nullptr) : Json(row.decided_by);
    json["decided_by_us"] = to_microseconds(row.difference);
    return json;
}

Json list_json(const ListStudy& list) {
    Json json{{"name", list.name},
              {"count", list.count},
              {"serial", list.serial},
              {"own_serial_of_pairs", list.own_serial},
              {"serial_us", to_microseconds(list.whole)},
              {"overlapped_us", to_microseconds(list.cut)},
              {"exposed_serial_us", to_microseconds(list.exposed_whole)},
              {"exposed_overlapped_us", to_microseconds(list.exposed_cut)},
              {"rest", list.concurrent ? "concurrent" : "serial"},
              {"gemm_speed_serial", list.steady_whole ? list.steady_whole->gemm_speed : 1},
              {"gemm_speed_overlapped", list.steady_cut ? list.steady_cut->gemm_speed : 1},
              {"operators", Json::array()}};
    for (const OperatorStudy& row : list.operators) json["operators"].push_back(operator_json(row));
    return json;
}

Json number_or_null(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json step_json(const StepStudy& step) {
    const auto rate = [&](Seconds time) {
        return step.shape.tokens == 0 ? Json(nullptr) : Json(step.tokens_per_second(time));
    };
    Json json{{"tokens", step.shape.tokens == 0 ? Json(nullptr) : Json(step.shape.tokens)},
              {"sequence", step.shape.tokens == 0 ? Json(nullptr) : Json(step.shape.sequence)},
              {"serial_us", to_microseconds(step.whole)},
              {"overlapped_us", to_microseconds(step.cut)},
              {"exposed_serial_us", to_microseconds(step.exposed_whole)},
              {"exposed_overlapped_us", to_microseconds(step.exposed_cut)},
              {"speedup", step.whole / step.cut},
              {"tokens_per_s_serial", rate(step.whole)},
              {"tokens_per_s_overlapped", rate(step.cut)},
              {"mfu_serial", number_or_null(step.mfu_whole)},
              {"mfu_overlapped", number_or_null(step.mfu_cut)},
              {"lists", Json::array()}};
    for (const ListStudy& list : step.lists) json["lists"].push_back(list_json(list));
    return json;
}

std::string table_row(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + cell + " |";
    return line + "\n";
}

std::string share_text(const std::optional<double>& share) {
    return share ? percent_text(*share) : "n/a";
}

std::string in_us(Seconds time) {
    return fixed(to_microseconds(time), 1);
}

}  // namespace

std::string label_of(const StepStudy& step) {
    return step.shape.tokens == 0 ? "step" : std::to_string(step.shape.tokens) + " tokens";
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
    if (model.experts.count > 0) text += ", " + billions(active_parameters(model)) + " for a token";
    return text + ", " + std::to_string(model.layers) + " layers; " +
           phase_names[static_cast<std::size_t>(shape.phase)] + ", " + name_of(shape.dtype) + ", " + gpus +
           ", " + to_text(shape.spread);
}

std::string to_text(const Parallelism& spread) {
    std::string text;
    const auto put = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
    if (spread.tensor > 1) put("tp " + std::to_string(spread.tensor));
    if (spread.sequence) put("sequence-parallel");
    if (spread.experts > 1) put("ep " + std::to_string(spread.experts));
    if (spread.data > 1) put("dp " + std::to_string(spread.data));
    if (spread.sharded) put("fsdp");
    return text.empty() ? "one GPU" : text;
}

Json to_json(const ModelReport& report) {
    const StepShape& shape = report.steps.front().shape;
    const std::string library = report.confidence.gemm_library();
    if (report.is_list()) {
        Json json{{"schema", 1},
                  {"workload", report.model.name},
                  {"topology", report.topology},
                  {"gemm_library", library.empty() ? Json() : Json(library)},
                  {"confidence", to_json(report.confidence)},
                  {"notes", report.notes},
                  {"steps", Json::array()}};
        for (const StepStudy& step : report.steps) json["steps"].push_back(step_json(step));
        return json;
    }
    Json json{{"schema", 1},
              {"model", report.model.name},
              {"family", report.model.family},
              {"parameters", parameters(report.model)},
              {"active_parameters", active_parameters(report.model)},
              {"layers", report.model.layers},
              {"topology", report.topology},
              {"phase", phase_names[static_cast<std::size_t>(shape.phase)]},
              {"dtype", name_of(shape.dtype)},
              {"tp", shape.spread.tensor},
              {"ep", shape.spread.experts},
              {"dp", shape.spread.data},
              {"sequence_parallel", shape.spread.sequence},
              {"fsdp", shape.spread.sharded},
              {"gemm_library", library.empty() ? Json() : Json(library)},
              {"confidence", to_json(report.confidence)},
              {"notes", report.notes},
              {"steps", Json::array()}};
    for (const StepStudy& step : report.steps) json["steps"].push_back(step_json(step));
    return json;
}

std::string to_csv(const ModelReport& report) {
    std::string text =
        "tokens,list,count,operator,serial_us,overlapped_us,exposed_serial_us,exposed_overlapped_us,schedule,gain,decided_by," +
        confidence_columns + "\n";
    const std::string sure = confidence_cells(&report.confidence);
    const auto add = [&](const std::vector<Json>& cells) {
        for (std::size_t i = 0; i < cells.size(); ++i) text += csv_cell(cells[i]) + ",";
        text += sure + "\n";
    };
    const auto number = [](Seconds time) { return Json(to_microseconds(time)); };
    for (const StepStudy& step : report.steps) {
        const Json tokens = step.shape.tokens == 0 ? Json() : Json(step.shape.tokens);
        for (const ListStudy& list : step.lists) {
            for (const OperatorStudy& row : list.operators) {
                const Json schedule = row.best ? Json(row.best->label()) : Json();
                add({tokens,
                     list.name,
                     list.count,
                     row.name,
                     number(row.whole),
                     number(row.cut),
                     {},
                     {},
                     schedule,
                     row.best ? Json(row.gain) : Json(),
                     row.decided_by.empty() ? Json() : Json(row.decided_by)});
            }
            add({tokens,
                 list.name,
                 list.count,
                 {},
                 number(list.whole),
                 number(list.cut),
                 number(list.exposed_whole),
                 number(list.exposed_cut),
                 {},
                 {},
                 {}});
        }
        add({tokens,
             "step",
             1,
             {},
             number(step.whole),
             number(step.cut),
             number(step.exposed_whole),
             number(step.exposed_cut),
             {},
             {},
             {}});
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
    for (const StepStudy& step : report.steps)
        text += table_row({label_of(step), ms(step.whole), ms(step.cut), fixed(step.whole / step.cut, 3),
                           ms(step.exposed_whole), ms(step.exposed_cut),
                           report.is_list() ? "" : significant(step.tokens_per_second(step.cut)),
                           share_text(step.mfu_cut)});
    for (const StepStudy& step : report.steps)
        for (const ListStudy& list : step.lists) {
            text += "\n### " + label_of(step) + ", " + list.name + " (" + std::to_string(list.count) +
                    ")\n\n" +
                    table_row({"operator", "serial us", "with overlap us", "schedule", "gain alone",
                               "decided by"}) +
                    table_row({"---", "---", "---", "---", "---", "---"});
            for (const OperatorStudy& row : list.operators)
                text +=
                    table_row({row.name, in_us(row.whole), in_us(row.cut), row.best ? row.best->label() : "",
                               row.best ? percent_text(row.gain) : "", row.decided_by});
        }
    if (const std::string sure = to_text(report.confidence); !sure.empty()) text += "\n" + sure + "\n";
    for (const std::string& note : report.notes) text += "\n" + note + "\n";
    return text;
}

}  // namespace overlap
