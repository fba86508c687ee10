#include "models/kernel_calibration.hpp"

#include "models/fitted_keys.hpp"

namespace overlap {
namespace {

template <class P>
std::map<std::string, P> read_kernel_group(ConfigObject& config, const std::string& name) {
    std::map<std::string, P> fits;
    if (!config.has(name)) return fits;
    ConfigObject group = config.object(name);
    for (const std::string& format : group.keys()) {
        ConfigObject one = group.object(format);
        fits.emplace(format, read_all_keys<P>(one, fitted_keys<P>()));
    }
    group.finish();
    return fits;
}

template <class P>
Json kernel_schema_of(const std::string& what) {
    return map_schema(what, {{"pattern", "^[a-z0-9_]+$"}},
                      keys_schema("Parameters for one number format.", fitted_keys<P>()), 1);
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
        return fits.decode.contains(format + kernel_alone) ? format + kernel_alone : format;
    }
    const std::string format = prefill_format(call.dtype, call.kv_dtype);
    const std::string alone = format + (call.kind == AttentionKind::backward ? backward_alone : kernel_alone);
    return fits.prefill.contains(alone) ? alone : format;
}

std::vector<MoeParameters> grouped_fits(const KernelCalibration& fits, DType operands) {
    std::vector<MoeParameters> result;
    const std::string format = kernel_format(operands);
    for (const std::string& name : {format, format + "_min_latency"})
        if (const MoeParameters* fit = find_fit(fits.moe, name)) result.push_back(*fit);
    return result;
}

KernelCalibration read_kernel_calibration(const ConfigFile& file) {
    ConfigObject config = file.view();
    return {read_kernel_group<PrefillParameters>(config, kernel_groups[0]),
            read_kernel_group<DecodeParameters>(config, kernel_groups[1]),
            read_kernel_group<MoeParameters>(config, kernel_groups[2]),
            read_kernel_group<ExchangeParameters>(config, kernel_groups[3])};
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
        "Grouped GEMMs and fused MoE kernels by number format of the operands.");
}

}  // namespace overlap
