#include "sim/transformer/step_request.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>

#include "sim/core/file_kind.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/transformer/layer.hpp"
#include "sim/transformer/possible.hpp"

namespace overlap {

namespace {

constexpr std::int64_t most_tokens = 1'000'000'000;
constexpr int most_gpus = 1'000'000;

/// What Python's json writes for numbers that JSON does not have.
constexpr std::array<std::string_view, 3> not_in_json{"-Infinity", "Infinity", "NaN"};

StepRequest read_request(ConfigObject& config) {
    StepRequest request;
    const auto degree = [&](const char* key) -> std::optional<int> {
        if (!config.has(key)) return std::nullopt;
        return static_cast<int>(config.integer(key, 1, most_gpus));
    };
    const auto is_set = [&](const char* key) { return config.has(key) && config.boolean(key); };
    if (config.has("phase")) request.phase = static_cast<Phase>(config.choice("phase", phase_names));
    if (config.has("dtype")) request.dtype = static_cast<DType>(config.choice("dtype", dtype_names));
    if (config.has("sequence")) request.sequence = config.integer("sequence", 1, most_tokens);
    request.tensor = degree("tp");
    request.experts = degree("ep");
    request.data = degree("dp");
    request.sequence_parallel = is_set("sequence_parallel");
    request.sharded = is_set("fsdp");
    if (config.has("imbalance")) request.imbalance = config.number("imbalance", {0, 10});
    return request;
}

}  // namespace

Json read_model_file(const std::filesystem::path& path) {
    std::ifstream in = open_input(path, "a JSON file");
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::string changed;
    bool quoted = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = std::string_view(text).substr(at);
        const auto word =
            std::ranges::find_if(not_in_json, [&](std::string_view one) { return rest.starts_with(one); });
        const bool replaced = !quoted && word != not_in_json.end();
        const std::size_t size = replaced ? word->size() : quoted && rest.starts_with('\\') ? 2 : 1;
        if (rest.starts_with('"')) quoted = !quoted;
        changed += replaced ? "null" : rest.substr(0, size);
        at += size;
    }
    return parse_json(changed, path.string());
}

const Families& families_of(const ConfigFolder& folder) {
    static std::mutex mutex;
    static std::map<std::filesystem::path, Families> known;
    const std::filesystem::path file = folder.folder("families.json");
    const std::scoped_lock lock(mutex);
    const auto found = known.find(file);
    return found != known.end() ? found->second : known.emplace(file, read_families(file)).first->second;
}

Model named_model(const std::string& name, const ConfigFolder& folder, Unread unread) {
    const std::filesystem::path path = folder.find("models", name);
    const Json json = read_model_file(path);
    require_kind(json, path.string(), FileKind::model_config);
    const bool names_itself = json.is_object() && json.contains("name") && json["name"].is_string();
    return read_model(ConfigObject(json, path.string()),
                      names_itself ? json["name"].get<std::string>() : path.stem().string(),
                      families_of(folder), unread);
}

Parallelism spread_of(const StepRequest& request, int gpus) {
    Parallelism spread{gpus, 1, request.experts.value_or(1), 1, request.sequence_parallel, request.sharded};
    spread.stages = request.pipeline.stages;
    spread.context = request.context;
    spread.exchange = request.exchange;
    spread.zero = request.zero;
    const int part = gpus / spread.stages / spread.context;
    const int left = request.data ? part / *request.data : spread.experts > 1 || request.sharded ? 1 : part;
    spread.tensor = request.tensor.value_or(std::max(left, 1));
    spread.data = request.data.value_or(std::max(part / spread.tensor, 1));
    if (std::int64_t{spread.tensor} * spread.data != part &&
        std::int64_t{spread.tensor} * spread.data * spread.experts == part)
        spread.data *= spread.experts;
    spread.data *= spread.context;
    return spread;
}

StepShape step_of(const StepRequest& request, const Model& model, const Parallelism& spread,
                  std::int64_t tokens) {
    StepShape step{request.phase, tokens, 0, request.dtype, spread, request.imbalance, request.stored};
    step.training.recompute = request.recompute;
    step.training.moments = request.moments;
    step.training.recipe = request.recipe;
    step.training.gemms_cast = request.gemms_cast;
    step.pipeline = request.pipeline;
    step.two_batches = request.two_batches;
    step.best_sms = request.best_sms;
    step.decoding.draft = request.draft;
    step.decoding.chunk = request.mixed;
    step.decoding.fused_norms = request.fused_norms;
    step.decoding.accepted = request.accepted.value_or(1.0 + static_cast<double>(step.decoding.draft));
    step.tokens = tokens * (1 + step.decoding.draft) + step.decoding.chunk * spread.data;
    step.sequence = request.sequence.value_or(
        step.phase == Phase::decode
            ? std::min<std::int64_t>(model.longest, 8192)
            : std::min<std::int64_t>(model.longest, std::max<std::int64_t>(tokens / spread.data, 1)));
    return step;
}

StepShape step_of_batch(const StepRequest& request, const Model& model, const Parallelism& spread,
                        const std::string& where) {
    const std::int64_t copies = spread.data / spread.context, micro = request.micro_batch.value_or(1),
                       together = micro * copies, global = request.global_batch.value_or(together);
    if (global % together != 0)
        throw UserError(where + ": --global-batch " + std::to_string(global) +
                        " is no multiple of --micro-batch times data parallelism (" + std::to_string(micro) +
                        " x " + std::to_string(copies) + ")");
    const std::int64_t sequence = request.sequence.value_or(std::min<std::int64_t>(model.longest, 4096));
    StepShape step = step_of(request, model, spread, together * sequence);
    step.sequence = sequence;
    step.pipeline.micro_batches = global / together;
    return step;
}

namespace {

void take_operands(const std::string& dtype, const Machine& machine, StepRequest& request, Model& model) {
    if (contains(dtype_names, dtype)) {
        request.dtype = static_cast<DType>(place_of(dtype_names, dtype));
        if (model.stored.is_set())
            model.notes.push_back("weights of the files are in " + model.stored.name + "; --dtype " + dtype +
                                  " counts");
        return;
    }
    const bool trains = request.phase == Phase::training;
    if (dtype.empty() && trains) {
        if (model.stored.is_set())
            model.notes.emplace_back("training in bf16, though weights are stored in " + model.stored.name);
        return;
    }
    const WeightFormat format = dtype.empty() ? model.stored : weight_format(dtype);
    if (!format.is_set()) return;
    request.stored = format;
    const DeviceSpec& device = machine.topology.device();
    const bool has_rate = machine.calibration.gemm.contains(format.operands);
    if (!has_rate) request.stored.operands = DType::bf16;
    request.dtype = format.only_experts ? DType::bf16 : request.stored.operands;
    std::string note = std::string(format.only_experts ? "experts' " : "") + "weights in " + format.name +
                       " (" + (dtype.empty() ? "quantization_config" : "--dtype") + "): memory by that";
    note += std::string(", ") + (format.only_experts ? "their " : "") + "GEMMs in " +
            name_of(request.stored.operands);
    if (!has_rate) note += ", as " + device.name + " has no rate for " + name_of(format.operands);
    model.notes.push_back(note);
}

}  // namespace

void take_formats(const std::string& dtype, const Machine& machine, StepRequest& request, Model& model) {
    take_operands(dtype, machine, request, model);
    request.stored.fp8_caches =
        request.caches == "fp8" || (request.caches == "auto" && model.stored.fp8_caches);
    if (request.stored.fp8_caches && request.phase == Phase::decode)
        model.notes.emplace_back("keys and values are read in 8 bits");
}

bool rotates_apart(const StepShape& shape, const Machine& machine) {
    if (shape.phase != Phase::decode) return true;
    const AttentionCall call{.kind = AttentionKind::decode,
                             .kv_dtype = shape.stored.fp8_caches ? DType::fp8 : output_type(shape.dtype)};
    const KernelCalibration& fits = machine.calibration.kernels;
    const std::string fit = attention_fit(fits, call);
    return !fits.decode.contains(fit) || fit.ends_with(kernel_alone);
}

bool is_layer_request(const Json& workload) {
    return workload.is_object() && workload.contains("model");
}

Json layer_workload(const Json& workload, const std::string& place, int gpus, const ConfigFolder& folder) {
    ConfigObject config(workload, place);
    const Model model = named_model(config.text("model"), folder);
    const std::int64_t tokens = config.integer("tokens", 1, most_tokens);
    const StepRequest request = read_request(config);
    config.finish();
    const StepShape step = step_of(request, model, spread_of(request, gpus), tokens);
    require_possible(model, step, place);
    const std::vector<LayerKind> kinds = layer_kinds(model);
    const LayerKind& kind = *std::ranges::max_element(kinds, {}, &LayerKind::count);
    const Workload layer{model.name + ", " + std::to_string(tokens) + " tokens", "",
                         layer_operators(model, step, kind), 0};
    return {{"name", layer.name}, {"operators", to_json(layer).at("operators")}};
}

}  // namespace overlap
