#include "sim/calibrate/measurements/kernel_rows.hpp"

#include <algorithm>

#include "models/kernel_calibration.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// Names of the public tables for number formats.
const std::map<std::string, DType>& table_dtypes() {
    static const std::map<std::string, DType> names{
        {"bfloat16", DType::bf16}, {"bf16", DType::bf16},     {"float16", DType::fp16}, {"fp16", DType::fp16},
        {"fp8", DType::fp8},       {"fp8_block", DType::fp8}, {"nvfp4", DType::fp4},    {"fp4", DType::fp4}};
    return names;
}

class TableCells {
public:
    TableCells(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

    [[noreturn]] void fail(const std::string& column, const std::string& expected) const {
        throw UserError(table_.where(row_) + ": " + column + " is " + in_quotes(table_.cell(row_, column)) +
                        ", expected " + expected);
    }
    bool has(const std::string& column) const { return table_.has(column); }
    const std::string& text(const std::string& column) const { return table_.cell(row_, column); }

    std::int64_t integer(const std::string& column, std::int64_t most) const {
        const std::int64_t value = table_.integer(row_, column);
        if (value > most) fail(column, "at most " + std::to_string(most));
        return value;
    }

    DType dtype(const std::string& column) const {
        const auto found = table_dtypes().find(text(column));
        if (found != table_dtypes().end()) return found->second;
        std::vector<std::string> names;
        for (const auto& [name, type] : table_dtypes()) names.push_back(name);
        throw UserError(table_.where(row_) + ": " + column + " is " + in_quotes(text(column)) +
                        suggestion(text(column), names));
    }

    double number(const std::string& column) const { return table_.number(row_, column); }

    bool truth(const std::string& column) const {
        if (text(column) != "True" && text(column) != "False") fail(column, "True or False");
        return text(column) == "True";
    }

    /// Exponent of a power law; 0: balanced.
    double imbalance() const {
        const std::string& cell = text("distribution");
        if (cell == "balanced") return 0;
        constexpr std::string_view prefix = "power_law_";
        if (cell.starts_with(prefix))
            if (const auto value = parsed<double>(std::string_view(cell).substr(prefix.size())))
                if (*value > 0 && *value <= 10) return *value;
        fail("distribution", "balanced, or power_law_ and an exponent up to 10, such as power_law_1.2");
    }

private:
    const CsvTable& table_;
    std::size_t row_;
};

void set_family(KernelRow& row, std::initializer_list<std::int64_t> family) {
    for (const std::int64_t number : family)
        row.family += (row.family.empty() ? "" : "x") + std::to_string(number);
    row.fold = kernel_fold(std::vector<std::int64_t>(family));
}

KernelRow attention_row(const TableCells& row, bool decode) {
    constexpr std::int64_t most = 1'000'000, dims = 4096;
    AttentionCall call;
    call.kind = decode ? AttentionKind::decode : AttentionKind::prefill;
    call.sequences = static_cast<std::int32_t>(row.integer("batch", most));
    call.tokens = static_cast<std::int32_t>(row.integer(decode ? "context" : "tokens", 1'000'000'000));
    call.heads = static_cast<std::int16_t>(row.integer("heads", dims));
    call.kv_heads = static_cast<std::int16_t>(row.integer("kv_heads", dims));
    const bool apart = row.has("head_dim_qk");  // the dimensions of keys and of values
    call.head_dim = static_cast<std::int16_t>(row.integer(apart ? "head_dim_qk" : "head_dim", dims));
    if (apart) {
        const auto values = static_cast<std::int16_t>(row.integer("head_dim_v", dims));
        if (values != call.head_dim) call.value_dim = values;
        if (!row.truth("causal")) call.mask = AttentionMask::none;
    }
    if (call.heads % call.kv_heads != 0) row.fail("kv_heads", "a divisor of heads");
    call.kv_dtype = row.dtype(row.has("kv_dtype") ? "kv_dtype" : "dtype");
    call.dtype = decode ? call.kv_dtype : row.dtype("dtype");
    KernelRow result{.work = call};
    result.format = decode ? kernel_format(call.kv_dtype) : prefill_format(call.dtype, call.kv_dtype);
    set_family(result, {call.heads, call.kv_heads, call.head_dim});
    return result;
}

KernelRow moe_row(const TableCells& row) {
    constexpr std::int64_t most = 1'000'000, most_tokens = 100'000'000;
    MoeShape shape;
    const std::int64_t tokens = row.integer("tokens", most_tokens), tp = row.integer("tp", most),
                       inter = row.integer("inter", most), hidden = row.integer("hidden", most);
    shape.load = {static_cast<double>(tokens), row.integer("topk", 65'536), row.integer("experts", 65'536),
                  row.integer("ep", 65'536), row.imbalance()};
    const ExpertLoad& load = shape.load;
    if (load.choices > load.experts) row.fail("topk", "at most experts");
    if (load.experts % load.ranks != 0) row.fail("ep", "a divisor of experts");
    if (inter % tp != 0) row.fail("tp", "a divisor of inter");
    shape.hidden = static_cast<double>(hidden);
    shape.inter = static_cast<double>(inter / tp);
    const std::string& kernel = row.text("kernel");
    const std::vector<std::string> kernels{"_cutlass", "_nongated", "_min_latency", "deepgemm"};
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
        row.fail("kernel", "one of _cutlass, _nongated, _min_latency, deepgemm");
    shape.gated = kernel != "_nongated";
    shape.format = row.text("dtype") == "fp8_block" ? "fp8_block" : kernel_format(row.dtype("dtype"));
    if (kernel == "_min_latency") shape.format += "_min_latency";
    KernelRow result{.work = shape};
    result.format = shape.format;
    set_family(result, {hidden, inter, load.choices, load.experts});
    result.shape = result.family + "/" + kernel + "/" + std::to_string(tokens) + "/" + std::to_string(tp) +
                   "/" + std::to_string(load.ranks);
    return result;
}

KernelRow grouped_row(const TableCells& row) {
    constexpr std::int64_t most_groups = 65'536, most = 100'000'000;
    GemmShape shape;
    shape.groups = static_cast<std::int32_t>(row.integer("groups", most_groups));
    shape.m = shape.groups * row.integer("M_per_group", most);
    shape.n = row.integer("N", most);
    shape.k = row.integer("K", most);
    shape.dtype = row.dtype("dtype");
    KernelRow result{.work = shape};
    result.format = kernel_format(shape.dtype);
    set_family(result, {shape.n, shape.k});
    return result;
}

/// A dispatch in fp8; the combine of the same tokens is in bf16.
KernelRow exchange_row(const TableCells& row) {
    ExchangeCall call;
    ExpertExchange& exchange = call.exchange;
    exchange = {.tokens = row.integer("tokens", 100'000'000),
                .hidden = static_cast<std::int32_t>(row.integer("hidden", 1'000'000)),
                .choices = static_cast<std::int32_t>(row.integer("top_k", 65'536)),
                .experts = static_cast<std::int32_t>(row.integer("experts", 65'536)),
                .dtype = DType::fp8};
    call.group.nodes = static_cast<int>(row.integer("nodes", 1024));
    call.group.gpus *= call.group.nodes;
    if (row.has("sms")) exchange.sms = static_cast<std::int16_t>(row.integer("sms", 1024));
    if (exchange.choices > exchange.experts) row.fail("top_k", "at most experts");
    if (exchange.experts % call.group.gpus != 0)
        row.fail("experts", "a multiple of " + std::to_string(call.group.gpus) + " GPUs");
    KernelRow result{.work = call};
    result.format = exchange_kernel(exchange);
    return result;
}

/// From `column`, a rate that counts the FLOPs of `products` products of each query with each key.
Seconds time_at_rate(const TableCells& row, const char* column, const AttentionCall& call, double products) {
    const double pairs = static_cast<double>(call.sequences) * call.heads * call.tokens * call.tokens *
                         (call.mask == AttentionMask::causal ? 0.5 : 1);
    return Flops(2 * products * pairs * call.mean_dim()) / teraflops(row.number(column));
}

void read_times(const TableCells& row, KernelRow& to) {
    constexpr double forward = 2, backward = 5;
    const auto* call = std::get_if<AttentionCall>(&to.work);
    if (row.has("dispatch_us")) {
        to.time = microseconds(row.number("dispatch_us"));
        to.backward = microseconds(row.number("combine_us"));
    } else if (row.has("us"))
        to.time = microseconds(row.number("us"));
    else if (row.has("fwd_us"))
        to.time = microseconds(row.number("fwd_us"));
    else if (call != nullptr && row.has("fwd_tflops"))
        to.time = time_at_rate(row, "fwd_tflops", *call, forward);
    if (call != nullptr && row.has("bwd_us"))
        to.backward = microseconds(row.number("bwd_us"));
    else if (call != nullptr && row.has("bwd_tflops"))
        to.backward = time_at_rate(row, "bwd_tflops", *call, backward);
}

}  // namespace

int kernel_fold(std::span<const std::int64_t> family) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const std::int64_t number : family)
        for (int byte = 0; byte < 8; ++byte) {
            hash ^= (static_cast<std::uint64_t>(number) >> (8 * byte)) & 0xff;
            hash *= 1099511628211ULL;
        }
    return static_cast<int>((hash >> 32) % kernel_folds);
}

std::optional<KernelTableKind> kernel_table_of(const CsvTable& table) {
    if (table.has("top_k")) {
        for (const char* column : {"nodes", "hidden", "experts", "tokens"}) table.require(column);
        return KernelTableKind::exchange;
    }
    const bool attention = table.has("heads") || table.has("kv_heads") || table.has("head_dim"),
               moe = table.has("experts") || table.has("topk"), grouped = table.has("M_per_group");
    if (!attention && !moe && !grouped) return std::nullopt;
    const KernelTableKind kind = grouped                ? KernelTableKind::grouped
                                 : moe                  ? KernelTableKind::moe
                                 : table.has("context") ? KernelTableKind::decode
                                                        : KernelTableKind::prefill;
    const std::vector<std::string> columns =
        kind == KernelTableKind::moe
            ? std::vector<std::string>{"kernel", "dtype",   "tokens", "hidden", "inter",
                                       "topk",   "experts", "tp",     "ep",     "distribution"}
        : kind == KernelTableKind::grouped
            ? std::vector<std::string>{"dtype", "groups", "M_per_group", "N", "K"}
        : table.has("head_dim_qk")
            ? std::vector<std::string>{"dtype",    "batch",       "tokens",     "heads",
                                       "kv_heads", "head_dim_qk", "head_dim_v", "causal"}
        : kind == KernelTableKind::decode
            ? std::vector<std::string>{"kv_dtype", "batch", "context", "heads", "kv_heads", "head_dim"}
            : std::vector<std::string>{"dtype", "kv_dtype", "batch",   "tokens",
                                       "heads", "kv_heads", "head_dim"};
    for (const std::string& column : columns) table.require(column);
    return kind;
}

void KernelRowReader::count_rows(KernelRow& row) {
    if (const auto* gemm = std::get_if<GemmShape>(&row.work)) row.rows = rows_of(*gemm);
    const auto* shape = std::get_if<MoeShape>(&row.work);
    if (shape == nullptr) return;
    const ExpertLoad& load = shape->load;
    const bool limited = shape->format.ends_with("_min_latency");
    const std::array<double, 6> key{load.tokens,
                                    static_cast<double>(load.choices),
                                    static_cast<double>(load.experts),
                                    static_cast<double>(load.ranks),
                                    load.imbalance,
                                    limited ? 1.0 : 0.0};
    const auto [found, first] = known_.try_emplace(key);
    if (first) found->second = counted(limited ? group_limited_rows(load) : expert_rows(load));
    row.rows = found->second;
}

KernelRow KernelRowReader::read(const CsvTable& table, std::size_t row, KernelTableKind kind) {
    const TableCells cells(table, row);
    KernelRow result = kind == KernelTableKind::moe        ? moe_row(cells)
                       : kind == KernelTableKind::exchange ? exchange_row(cells)
                       : kind == KernelTableKind::grouped
                           ? grouped_row(cells)
                           : attention_row(cells, kind == KernelTableKind::decode);
    count_rows(result);
    read_times(cells, result);
    return result;
}

}  // namespace overlap
