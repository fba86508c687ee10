#include "sim/transformer/serve.hpp"

#include <array>

#include "sim/report/text_format.hpp"
#include "sim/transformer/layer.hpp"

namespace overlap {
namespace {

const std::array<bool, 2> ways{false, true};  // with nothing cut, and by the schedules found

Seconds step_time(const ModelReport& report, bool cut) {
    const StepStudy& step = report.steps.front();
    return cut ? step.cut : step.whole;
}

double tokens_per_second(const Served& served, bool cut) {
    return static_cast<double>(served.load.concurrency) / time_per_token(served, cut).si();
}

}  // namespace

StepShape decode_of(const ServeLoad& load, StepShape step) {
    step.phase = Phase::decode;
    step.tokens = load.concurrency * (1 + step.decoding.draft);
    step.sequence = load.input + load.output / 2;
    return step;
}

StepShape prefill_of(const ServeLoad& load, StepShape step) {
    step.phase = Phase::prefill;
    step.decoding.draft = 0;
    step.tokens = step.sequence = load.input;
    return step;
}

Seconds time_per_token(const Served& served, bool cut) {
    const double prompts =
        static_cast<double>(served.load.concurrency) / static_cast<double>(served.load.output);
    return step_time(served.decode, cut) / served.decode.steps.front().shape.decoding.accepted +
           prompts * step_time(served.prefill, cut);
}

Seconds time_to_first_token(const Served& served, bool cut) {
    return step_time(served.prefill, cut) + 0.5 * step_time(served.decode, cut);
}

std::int64_t fitting_sequences(const ServeLoad& load, const Model& model, StepShape step, Bytes capacity,
                               const ServedMemory& memory) {
    const auto held = [&](std::int64_t sequences) {
        step = decode_of({load.input + load.output, 0, sequences}, step);
        return least_memory(model, step);
    };
    // What a GPU holds grows by as much with each sequence.
    const Bytes one = held(1), more = held(2) - one, weights = one - more;
    const Bytes rest = memory.rest * (memory.all * capacity - weights);
    return rest < more ? 0 : static_cast<std::int64_t>(rest / more);
}

std::string to_text(const Served& served) {
    const ServeLoad& load = served.load;
    std::string text = served.decode.model.name + ": " + description_of(served.decode) + "\n\n" +
                       std::to_string(load.concurrency) + " sequences at a time, " +
                       std::to_string(load.input) + " tokens in, " + std::to_string(load.output) +
                       " tokens out\n" + std::string(28, ' ') + "    serial   overlap\n";
    const auto row = [&](std::string name, const auto& value, const std::string& meaning) {
        name.resize(28, ' ');
        text += name;
        for (const bool cut : ways) text += right(significant(value(cut)), 10);
        text += "  " + meaning + "\n";
    };
    const auto milliseconds = [](Seconds time) { return time.si() * 1e3; };
    row(
        "decode step", [&](bool cut) { return milliseconds(step_time(served.decode, cut)); },
        "ms, answers half-way");
    row(
        "prefill of a prompt", [&](bool cut) { return milliseconds(step_time(served.prefill, cut)); }, "ms");
    row(
        "time per token (TPOT)", [&](bool cut) { return milliseconds(time_per_token(served, cut)); },
        "ms, decode + running / output x prefill");
    row(
        "time to first token (TTFT)",
        [&](bool cut) { return milliseconds(time_to_first_token(served, cut)); },
        "ms, prefill + decode / 2; queues are not modelled");
    row(
        "tokens/s", [&](bool cut) { return tokens_per_second(served, cut); }, "of answers");
    text += "sequences that fit  " + std::to_string(served.fitting) + " of " +
            std::to_string(load.input + load.output) + " tokens, by memory\n\n";
    for (const std::string& line : lines_of(served.decode.confidence, SIZE_MAX)) text += line + "\n";
    for (const std::string& note : served.decode.notes) text += "note       " + note + "\n";
    return text;
}

Json to_json(const Served& served) {
    Json json = to_json(served.decode);
    json["phase"] = "serve";
    if (!served.server.empty()) json["server"] = served.server;
    json.update({{"input_tokens", served.load.input},
                 {"output_tokens", served.load.output},
                 {"concurrency", served.asked},
                 {"running_sequences", served.load.concurrency},
                 {"fitting_sequences", served.fitting}});
    for (const bool cut : ways) {
        const std::string way = cut ? "_overlapped" : "_serial";
        json["tpot" + way + "_us"] = to_microseconds(time_per_token(served, cut));
        json["ttft" + way + "_us"] = to_microseconds(time_to_first_token(served, cut));
        json["tokens_per_s" + way] = tokens_per_second(served, cut);
    }
    json["steps"] = {{"decode", json["steps"].front()},
                     {"prefill", to_json(served.prefill)["steps"].front()}};
    return json;
}

}  // namespace overlap
