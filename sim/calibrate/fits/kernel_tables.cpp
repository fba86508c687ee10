#include "sim/calibrate/fits/kernel_tables.hpp"

#include <algorithm>

#include "models/kernel_calibration.hpp"

namespace overlap {
namespace {

/// Lowest time of a row by the roofline, and 25 us for what a fused layer starts.
double bound(const KernelRow& row, const GemmParameters& gemm) {
    const auto& shape = std::get<MoeShape>(row.work);
    const double weights = (shape.gated ? 3 : 2) * shape.hidden * shape.inter;
    return 25e-6 + row.rows.active * weights * weight_bytes(shape.format) / gemm.memory.hbm.si() +
           2 * row.rows.rows * weights / gemm.peak_rate.si();
}

void leave_out(KernelRows& rows, const Calibration& gemms) {
    constexpr double most_apart = 2.5;
    for (auto& [format, members] : rows.kept) {
        const auto of = gemms.gemm.find(format.starts_with("bf16")  ? DType::bf16
                                        : format.starts_with("fp4") ? DType::fp4
                                                                    : DType::fp8);
        if (of == gemms.gemm.end()) continue;
        std::map<std::string, std::pair<double, double>> range;
        const auto slowness = [&](const KernelRow& row) { return row.time.si() / bound(row, of->second); };
        for (const KernelRow& row : members) {
            const double value = slowness(row);
            auto [found, first] = range.try_emplace(row.shape, value, value);
            found->second = {std::min(found->second.first, value), std::max(found->second.second, value)};
        }
        std::vector<KernelRow> kept;
        for (KernelRow& row : members) {
            const auto& [low, high] = range.at(row.shape);
            (high > most_apart * low ? rows.left_out[format] : kept).push_back(std::move(row));
        }
        members = std::move(kept);
    }
}

/// Hidden size, top k and experts. Rows between nodes are of one such shape, so that numbers of tokens are families.
std::array<std::int64_t, 4> exchange_family(const KernelRow& row) {
    const auto& [exchange, group] = std::get<ExchangeCall>(row.work);
    if (group.nodes > 1) return {group.nodes, exchange.tokens};
    return {1, exchange.hidden, exchange.choices, exchange.experts};
}

/// Combines as rows of their own. There are few families, so that of the sorted ones every third is of fold 0.
void add_combines(KernelRows& rows) {
    KernelRows all;
    for (auto& [format, members] : rows.kept) {
        std::map<std::array<std::int64_t, 4>, int> families;
        for (const KernelRow& row : members) families[exchange_family(row)];
        int place = 0;
        for (auto& [family, number] : families) number = place++;
        for (KernelRow row : members) {
            const int number = families.at(exchange_family(row));
            row.family = std::to_string(number);
            row.fold = number % 3;
            all.kept[row.format].push_back(row);
            ExpertExchange& exchange = std::get<ExchangeCall>(row.work).exchange;
            exchange.phase = ExchangePhase::combine;
            exchange.dtype = DType::bf16;
            row.time = row.backward;
            row.format = exchange_kernel(exchange);
            all.kept[row.format].push_back(std::move(row));
        }
    }
    rows = std::move(all);
}

/// Backward passes of attention as rows of their own.
void add_backward(std::vector<KernelRow>& rows) {
    const std::size_t forward = rows.size();
    for (std::size_t i = 0; i < forward; ++i) {
        if (rows[i].backward == Seconds()) continue;
        KernelRow row = rows[i];
        std::get<AttentionCall>(row.work).kind = AttentionKind::backward;
        row.time = row.backward;
        rows.push_back(std::move(row));
    }
}

/// Kernels alone get formats, and so fits, of their own: grouped GEMMs by their library, attention by pass, of which
/// each row is priced as a forward pass.
void set_alone_apart(KernelRows& rows, const KernelSource& source) {
    std::map<std::string, std::vector<KernelRow>> named;
    for (auto& [format, members] : rows.kept)
        for (KernelRow row : members) {
            const bool attends = std::holds_alternative<AttentionCall>(row.work);
            row.format = format + (attends ? kernel_alone : "_" + source.library);
            named[row.format].push_back(row);
            if (row.backward == Seconds()) continue;
            row.format = format + backward_alone;
            row.time = row.backward;
            named[row.format].push_back(std::move(row));
        }
    rows.kept = std::move(named);
}

}  // namespace

KernelRows read_kernel_rows(const std::filesystem::path& folder, const KernelSource& source,
                            const Calibration& gemms) {
    const CsvTable table = read_csv_table(folder / source.file);
    const std::optional<KernelTableKind> kind = kernel_table_of(table);
    if (!kind || kernel_group_of(*kind) != kernel_group_of(source.kind))
        throw UserError((folder / source.file).string() + ":1: has the columns of another kind of table");
    KernelRows rows;
    KernelRowReader reader;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        KernelRow read = reader.read(table, row, *kind);
        if (read.time == Seconds()) throw UserError(table.where(row) + ": has no time");
        if (const auto* gemm = std::get_if<GemmShape>(&read.work))
            read.launch = gemms.gemm_for(gemm->dtype).launch;
        rows.kept[read.format].push_back(std::move(read));
    }
    if (*kind == KernelTableKind::exchange)
        add_combines(rows);
    else if (source.alone)
        set_alone_apart(rows, source);
    else
        for (auto& [format, members] : rows.kept) add_backward(members);
    if (*kind == KernelTableKind::moe) leave_out(rows, gemms);
    return rows;
}

}  // namespace overlap
