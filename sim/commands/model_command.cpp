#include <spdlog/spdlog.h>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/commands/model_flags.hpp"
#include "sim/commands/model_notes.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/run.hpp"
#include "sim/transformer/possible.hpp"
#include "sim/transformer/server.hpp"
#include "sim/transformer/step_request.hpp"
#include "sim/transformer/step_study.hpp"
#include "sim/transformer/study_report.hpp"

namespace overlap {

namespace {

const std::string flags_place = "command line";

/// The layer of which the model has most, as a workload file.
void write_workload(const ModelFlags& flags, const ModelReport& report) {
    const std::vector<ListStudy>& lists = report.steps.front().lists;
    const auto most = std::ranges::max_element(lists, {}, &ListStudy::count);
    const StepShape& shape = report.steps.front().shape;
    Json json{{"schema", 1},
              {"name", std::filesystem::path(flags.write).stem().string()},
              {"description", report.model.name + ", one " + most->name + ", " + flags.phase + ", " +
                                  std::to_string(shape.tokens) + " tokens, sequences of " +
                                  std::to_string(shape.sequence) + ", " + to_text(shape.spread) + "."},
              {"source", "sim model " + report.model.name + "; sizes: the model's config.json"}};
    for (const char* key : {"order", "operators"}) json[key] = to_json(most->workload)[key];
    write_file_atomically(flags.write, in_lines(json, 400) + "\n");
}

/// A step as `study` has it with the options; where these allow own kernels, with its time by library kernels beside
/// it.
template <class Study>
StepStudy with_library_kernels(const StudyOptions& options, Study&& study) {
    StepStudy step = study(options);
    if (!options.allowed.own_kernels) return step;
    StudyOptions library = options;
    library.allowed.own_kernels = false;
    step.cut_by_library = study(library).cut;
    return step;
}

/// Adds how sure the prices are, writes the page, and prints.
void put_report(const ModelFlags& flags, ModelReport report, const StudyOptions& options,
                Resolver& resolver) {
    report.confidence = confidence_of(report.steps.front(), options, resolver);
    if (!flags.html.empty()) write_page(flags.html, page_of(report));
    if (flags.format == "text") return print_for_people(to_text(report));
    print(flags.format == "json"  ? json_text(to_json(report)) + "\n"
          : flags.format == "csv" ? to_csv(report)
                                  : to_markdown(report));
}

/// Whether CONFIG is an operator list instead of a model: a workload file, or the name of one that no model has.
bool names_list(const std::string& config, const ConfigFolder& folder) {
    std::error_code ignored;
    if (std::filesystem::exists(config, ignored) && !std::filesystem::is_directory(config, ignored)) {
        const Json json = read_model_file(config);
        return json.is_object() && json.contains("operators");
    }
    const auto has = [&](const std::string& kind) { return contains(folder.names(kind), config); };
    return !has("models") && has("workloads");
}

StudyOptions options_of(const ModelFlags& flags) {
    StudyOptions options{{}, {{}, flags.kernels == "any"}, flags.all};
    options.run.topology = flags.topology;
    options.run.seeds = flags.seeds;
    assign_what_ifs(options.run.what_if, flags.what_if);
    return options;
}

/// Sizes and parallelism of an operator list are those that it has.
ModelReport study_list(const ModelFlags& flags, StudyOptions& options, const Machine& machine,
                       Resolver& resolver) {
    if (!flags.given.empty())
        throw UserError(flags_place + ": " + flags.given.front() + " is for models, but " + flags.config +
                        " is an operator list, whose sizes are given");
    RunConfig config;
    config.origin = flags_place;
    config.workload = flags.config;
    const Workload list = resolver.workload(config);
    ModelReport report{{}, machine.topology.name(), machine.topology.device().name, {}, {}};
    report.model.name = list.name;
    const std::vector<DType> operands = mapped(list.gemms(), &GemmShape::dtype);
    options.clock = step_clock(flags, machine, operands);
    report.steps.push_back(
        with_library_kernels(options, [&](const StudyOptions& by) { return study(list, by, resolver); }));
    report.notes.push_back(clock_note(flags, machine, operands));
    return report;
}

/// All but the confidence; sets the clock of `options`. `quiet`: without progress.
ModelReport studied(const ModelFlags& flags, const ConfigFolder& folder, StudyOptions& options,
                    Resolver& resolver, bool quiet = false) {
    if (names_list(flags.config, folder))
        return study_list(flags, options,
                          folder.machine(flags.topology, WhatIf(options.run.what_if, flags_place)), resolver);
    if (!flags.server.empty()) throw UserError(flags_place + ": --server is for --phase serve");
    for (const char* one : {"--optimizer-dtype", "--fp8-recipe"})
        if (flags.phase != "training" && contains(flags.given, one))
            throw UserError(flags_place + ": " + one + " is for --phase training");
    Model model = named_model(flags.config, folder, flags.known_part ? Unread::left_out : Unread::refused);
    if (flags.layers) model.layers = *flags.layers;
    if (flags.predicting > 0) add_predicting_layers(model, flags.predicting);
    const Machine machine = folder.machine(flags.topology, WhatIf(options.run.what_if, flags_place));
    StepRequest request = flags.request;
    request.phase = static_cast<Phase>(place_of(phase_names, flags.phase));
    if (!flags.pipeline.empty())
        request.pipeline.order = static_cast<PipelineOrder>(place_of(pipeline_order_names, flags.pipeline));
    else if (request.pipeline.chunks > 1)
        request.pipeline.order = PipelineOrder::interleaved;
    if (request.has_batch() && contains(flags.given, "--tokens"))
        throw UserError(flags_place +
                        ": --tokens goes without --micro-batch and --global-batch, which count sequences");
    if (request.pipeline.virtual_stages() > 1 && !request.global_batch)
        throw UserError(flags_place + ": --pp needs --global-batch");
    take_formats(flags.dtype, machine, request, model);
    const bool whole_scales =
        request.dtype == DType::fp8 && (!request.stored.is_set() || request.stored.name == "fp8_tensor");
    if (contains(flags.given, "--fp8-recipe") && !whole_scales)
        throw UserError(
            flags_place +
            ": --fp8-recipe is for --dtype fp8, whose scales are of tensors; others' are of blocks");
    if (request.phase == Phase::training) take_training_libraries(request, folder, options, model);
    const Parallelism spread = spread_of(request, machine.topology.gpus());
    std::vector<StepShape> shapes;
    if (request.has_batch())
        shapes.push_back(step_of_batch(request, model, spread, flags_place));
    else
        for (const std::int64_t tokens : flags.tokens)
            shapes.push_back(step_of(request, model, spread, tokens));
    const bool normal = flags.all_to_all == "deepep";
    if (!normal && contains(flags.given, "--sms"))
        throw UserError(flags_place + ": --sms is for --all-to-all deepep");
    for (StepShape& shape : shapes) {
        shape.rotates_apart = rotates_apart(shape, machine);
        if (!flags.all_to_all.empty()) shape.deepep_sms = normal ? flags.sms : std::int16_t{0};
        require_possible(model, shape, flags_place);
    }
    ModelReport report{model, machine.topology.name(), machine.topology.device().name, {}, {}};
    std::size_t parts = 0;
    for (const StepShape& shape : shapes)
        parts += (options.allowed.own_kernels ? 2 : 1) * parts_of(model, shape);
    std::optional<ProgressReporter> progress;
    if (!quiet) options.done = progress.emplace("pairs", parts).counter();
    options.clock = step_clock(flags, machine, std::array{request.dtype});
    for (const StepShape& shape : shapes)
        report.steps.push_back(with_library_kernels(
            options, [&](const StudyOptions& by) { return study(model, shape, by, resolver); }));
    const std::string file = folder.machine_files(flags.topology).device.name,
                      device = std::filesystem::path(file).stem().string();
    std::error_code ignored;
    const bool shipped =
        std::filesystem::equivalent(file, folder.folder("devices") / (device + ".json"), ignored);
    report.notes = notes_of(model, report.steps, machine, shipped ? device : file);
    report.notes.push_back(clock_note(flags, machine, std::array{request.dtype}));
    options.done = nullptr;
    return report;
}

RunConfig config_of(const ListStudy& list, const ModelFlags& flags) {
    RunConfig config = read_run_config(list.run->config(), flags_place);
    config.topology = flags.topology;
    return config;
}

bool same_times(const ModelReport& a, const ModelReport& b) {
    const auto times = [](const StepStudy& step) { return std::pair(step.whole.si(), step.cut.si()); };
    return mapped(a.steps, times) == mapped(b.steps, times);
}

/// What the what-if changed, and remarks on it from a run of the most frequent list.
void add_what_if(const ModelFlags& flags, const ConfigFolder& folder, const StudyOptions& options,
                 Resolver& resolver, ModelReport& report) {
    if (flags.what_if.empty()) return;
    Json asked = Json::object();
    assign_what_ifs(asked, flags.what_if);
    const auto is_same = [&](const Json& what_if) {
        StudyOptions other = options;
        other.run.what_if = what_if;
        return same_times(report, studied(flags, folder, other, resolver, true));
    };
    const RunConfig config =
        config_of(*std::ranges::max_element(report.steps.front().lists, {}, &ListStudy::count), flags);
    const Scenario scenario = resolver.resolve(config);
    const Remarks remarks = Remarker(folder).on_what_if(config, scenario, makespan_of(scenario),
                                                        {"in any of these times", is_same, asked});
    report.what_if = remarks.what_if;
    append(report.notes, remarks.notes);
    for (const std::string& note : remarks.notes) spdlog::warn("{}", note);
}

void execute_serve(const ModelFlags& flags, const ConfigFolder& folder) {
    for (const char* one :
         {"--tokens", "--sequence", "--dp", "--pp", "--cp", "--micro-batch", "--global-batch", "--recompute",
          "--optimizer-dtype", "--fp8-recipe", "--fsdp", "--zero", "--mixed"})
        if (contains(flags.given, one))
            throw UserError(flags_place + ": " + one +
                            " is not for --phase serve, which has one copy of the model");
    if (!flags.write.empty() || !flags.html.empty())
        throw UserError(flags_place +
                        ": --phase serve writes no file (--write and --html: prefill or decode)");
    if (flags.format != "text" && flags.format != "json")
        throw UserError(flags_place + ": --format " + flags.format +
                        " is not for --phase serve (allowed: text, json)");
    StudyOptions options = options_of(flags);
    Resolver resolver(folder);
    const Machine machine = folder.machine(flags.topology, WhatIf(options.run.what_if, flags_place));
    const Parallelism spread = spread_of(flags.request, machine.topology.gpus());
    if (spread.experts == 1 && spread.data > 1)
        throw UserError(flags_place + ": --tp " + std::to_string(spread.tensor) + " leaves " +
                        std::to_string(spread.data) +
                        " copies of the model, --phase serve is for one: a topology of " +
                        std::to_string(spread.tensor) + " GPUs");
    ServeLoad load = flags.load.value_or(ServeLoad{});
    ServedMemory memory;
    ModelFlags served_by = flags;
    served_by.server.clear();  // from here on its kernels count
    std::vector<std::string> notes;
    if (!flags.server.empty()) {
        const Server& server = *std::ranges::find(servers(), flags.server, &Server::name);
        notes.push_back(take_server(server, machine, options, served_by.request));
        memory = server.memory;
    }
    const auto report_of = [&](StepShape step) {
        ModelFlags one = served_by;
        one.phase = phase_names[static_cast<std::size_t>(step.phase)];
        one.tokens = {step.tokens};
        one.request.sequence = step.sequence;
        if (step.phase == Phase::prefill) {
            one.request.draft = 0;
            one.request.accepted.reset();
        }
        ModelReport report = studied(one, folder, options, resolver);
        report.confidence = confidence_of(report.steps.front(), options, resolver);
        return report;
    };
    ModelReport decode = report_of(decode_of(load, {}));
    const std::int64_t asked = load.concurrency,
                       fitting = fitting_sequences(load, decode.model, decode.steps.front().shape,
                                                   machine.topology.device().hbm_capacity, memory);
    if (0 < fitting && fitting < asked && memory.preempts) {
        notes.push_back(
            std::to_string(fitting) + " of " + std::to_string(asked) +
            " sequences fit with whole answers: others are paused at times, which counts as if all ran");
    } else if (0 < fitting && fitting < asked) {
        load.concurrency = fitting;
        decode = report_of(decode_of(load, {}));
        notes.push_back(std::to_string(fitting) + " of " + std::to_string(asked) +
                        " sequences fit and run; the others wait, which TTFT leaves out");
    }
    if (fitting == 0) notes.emplace_back("does not fit: not one sequence beside the weights");
    Served served{load, asked, fitting, std::move(decode), report_of(prefill_of(load, {})), flags.server};
    append(served.decode.notes, notes);
    if (flags.format == "json") return print(json_text(to_json(served)) + "\n");
    print_for_people(to_text(served));
}

void execute(const ModelFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    if (flags.phase == "serve") return execute_serve(flags, folder);
    if (flags.load) throw UserError(flags_place + ": --isl, --osl and --concurrency are for --phase serve");
    if (!flags.write.empty()) {
        if (flags.tokens.size() > 1) throw UserError(flags_place + ": --write takes one number of --tokens");
    }
    require_outputs(std::vector<std::filesystem::path>{flags.write, flags.html},
                    std::vector<std::filesystem::path>{flags.config, flags.topology});
    StudyOptions options = options_of(flags);
    Resolver resolver(folder);
    ModelReport report = studied(flags, folder, options, resolver);
    add_what_if(flags, folder, options, resolver, report);
    if (!flags.write.empty()) write_workload(flags, report);
    put_report(flags, std::move(report), options, resolver);
}

}  // namespace

std::vector<std::pair<RunConfig, double>> runs_of_step(const ModelFlags& flags, const ConfigFolder& folder) {
    if (flags.tokens.size() > 1)
        throw UserError(flags_place + ": --tokens has several numbers, expected one");
    if (flags.phase == "serve")
        throw UserError(flags_place + ": --phase serve is two steps, expected one: prefill or decode");
    StudyOptions options = options_of(flags);
    Resolver resolver(folder);
    return mapped(studied(flags, folder, options, resolver).steps.front().lists, [&](const ListStudy& list) {
        return std::pair(config_of(list, flags), static_cast<double>(list.count));
    });
}

void add_model_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "model",
        "Step time of a transformer: the best schedule for each pair of its layers, with and without overlap");
    const std::shared_ptr<ModelFlags> flags = add_model_flags(*command);
    command->add_option("--write", flags->write,
                        "Write the layer's operators as a workload file, for sim --workload");
    command->add_option("--html", flags->html,
                        "Also write a self-contained page: operators by tokens, bars of the steps");
    command->add_option("--format", flags->format, "Output: text, json, csv or md")
        ->check(CLI::IsMember({"text", "json", "csv", "md"}));
    command->callback([flags] {
        if (!flags->write.empty()) flags->given.emplace_back("--write");
        execute(*flags);
    });
}

}  // namespace overlap
