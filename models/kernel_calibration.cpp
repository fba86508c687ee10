#include "models/kernel_calibration.hpp"

#include <set>

#include "models/fitted_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

template <class P>
std::vector<InputKey<P>> kernel_keys() {
    std::vector<InputKey<P>> keys = fitted_keys<P>();
    const auto is_read = [](ConfigObject& from, const std::string& key, P&) { from.text(key); };
    keys.push_back(InputKey<P>("library",
                               name_schema("Whose kernels were timed, by its name in attention_library, "
                                           "grouped_library and gemm_library."),
                               is_read)
                       .optional());
    return keys;
}

template <class P>
std::map<std::string, P> read_kernel_group(ConfigObject& config, const std::string& name) {
    std::map<std::string, P> fits;
    if (!config.has(name)) return fits;
    ConfigObject group = config.object(name);
    for (const std::string& format : group.keys()) {
        ConfigObject one = group.object(format);
        fits.emplace(format, read_all_keys<P>(one, kernel_keys<P>()));
    }
    group.finish();
    return fits;
}

template <class P>
Json kernel_schema_of(const std::string& what) {
    return map_schema(what, {{"pattern", "^[a-z0-9_]+$"}},
                      keys_schema("Parameters for one number format.", kernel_keys<P>()), 1);
}

/// The fit of the kernel alone, unless another library than its own is chosen.
template <class P>
std::string kernel_or_operator(const KernelCalibration& fits, const std::map<std::string, P>& group,
                               const std::string& name, const std::string& alone, const std::string& format) {
    const bool other =
        !fits.attention_library.empty() && fits.attention_library != fits.library_of(name + "/" + alone);
    return group.contains(alone) && (!other || !group.contains(format)) ? alone : format;
}

}  // namespace

std::string kernel_format(DType dtype) {
    return dtype == DType::fp16 ? name_of(DType::bf16) : name_of(dtype);
}

std::string prefill_format(DType products, DType cache) {
    const std::string first = kernel_format(products), second = kernel_format(cache);
    return first == second ? first : first + "_" + second;
}

std::string exchange_kernel(const ExpertExchange& exchange) {
    return std::string("deepep_") + (exchange.is_low_latency() ? "low_latency_" : "") +
           exchange_phase_names[static_cast<std::size_t>(exchange.phase)];
}

std::string attention_fit(const KernelCalibration& fits, const AttentionCall& call) {
    if (call.kind == AttentionKind::decode) {
        const std::string format = kernel_format(call.kv_dtype);
        return kernel_or_operator(fits, fits.decode, kernel_groups[1], format + kernel_alone, format);
    }
    const std::string format = prefill_format(call.dtype, call.kv_dtype);
    const std::string alone = format + (call.kind == AttentionKind::backward ? backward_alone : kernel_alone);
    return kernel_or_operator(fits, fits.prefill, kernel_groups[0], alone, format);
}

std::string grouped_fit(const KernelCalibration& fits, DType operands) {
    const std::string format = kernel_format(operands), chosen = format + "_" + fits.grouped_library;
    return fits.moe.contains(chosen) ? chosen : format;
}

std::vector<MoeParameters> grouped_fits(const KernelCalibration& fits, DType operands) {
    std::vector<MoeParameters> result;
    const std::string format = grouped_fit(fits, operands);
    for (const std::string& name : {format, format + "_min_latency"})
        if (const MoeParameters* fit = find_fit(fits.moe, name)) result.push_back(*fit);
    return result;
}

std::vector<std::string> libraries_in(const ConfigFile& file, const std::string& group) {
    std::set<std::string> names;
    const Json fits = file.json.value(group, Json::object());
    for (const auto& [format, fit] : fits.items())
        if (fit.is_object() && fit.contains("library")) names.insert(fit["library"].get<std::string>());
    return {names.begin(), names.end()};
}

std::string chosen_library(ConfigObject& config, const std::string& key,
                           const std::vector<std::string>& names) {
    if (!config.has(key)) return "";
    std::string name = config.text(key);
    if (contains(names, name)) return name;
    const std::string near = nearest_name(name, names);
    config.fail(key, "is " + in_quotes(name) + " (" +
                         (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") +
                         (names.empty() ? "none is allowed here" : "allowed: " + joined(names)) + ")");
}

KernelCalibration read_kernel_calibration(const ConfigFile& file) {
    ConfigObject config = file.view();
    KernelCalibration fits;
    fits.prefill = read_kernel_group<PrefillParameters>(config, kernel_groups[0]);
    fits.decode = read_kernel_group<DecodeParameters>(config, kernel_groups[1]);
    fits.moe = read_kernel_group<MoeParameters>(config, kernel_groups[2]);
    fits.exchange = read_kernel_group<ExchangeParameters>(config, kernel_groups[3]);
    for (const std::string& group : kernel_groups) {
        const Json all = file.json.value(group, Json::object());
        for (const auto& [format, fit] : all.items())
            if (fit.contains("library")) fits.libraries[group + "/" + format] = fit["library"];
    }
    std::vector<std::string> attention = libraries_in(file, kernel_groups[0]);
    for (const std::string& name : libraries_in(file, kernel_groups[1]))
        if (!contains(attention, name)) attention.push_back(name);
    fits.attention_library = chosen_library(config, "attention_library", attention);
    const std::vector<std::string> grouped = libraries_in(file, kernel_groups[2]);
    fits.grouped_library = chosen_library(config, "grouped_library", grouped);
    const std::string gemms = file.json.value("gemm_library", "");
    if (fits.grouped_library.empty() && contains(grouped, gemms)) fits.grouped_library = gemms;
    return fits;
}

Json kernel_group_schema(const std::string& group) {
    if (group == kernel_groups[0])
        return kernel_schema_of<PrefillParameters>(
            "Prefill attention by number format of products and cache (bf16_fp8: products in bf16, cache in fp8; bf16_kernel and "
            "bf16_kernel_backward: of the kernel alone).");
    if (group == kernel_groups[1])
        return kernel_schema_of<DecodeParameters>(
            "Decode attention by number format of the cache (bf16_kernel: of the kernel alone).");
    if (group == kernel_groups[3])
        return kernel_schema_of<ExchangeParameters>("All-to-alls of expert parallelism by DeepEP's kernels.");
    return kernel_schema_of<MoeParameters>(
        "Grouped GEMMs and fused MoE kernels by number format of the operands (bf16_torch: grouped GEMMs alone, of torch).");
}

}  // namespace overlap
