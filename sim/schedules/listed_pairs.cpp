#include "sim/schedules/listed_pairs.hpp"

#include <cmath>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

bool is_fed_by_gemm(CollectiveKind kind) {
    return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
}

std::string bytes_text(Bytes bytes) {
    return std::to_string(std::llround(bytes.si()));
}

/// Why a GEMM and a collective that depend on each other are no pair; empty if they are one.
std::string obstacle(const Pair& pair, const CollectiveWork& work, bool needs_more, int ranks) {
    if (pair.gemm.batch > 1) return "the GEMM is a batch";
    if (work.exchange.tokens > 0) return "DeepEP's kernel does it";
    if (pair.order == Order::collective_first && is_fed_by_gemm(pair.collective))
        return "the GEMM needs its result";
    if (needs_more && pair.order == Order::gemm_first) return "the collective needs more than the GEMM";
    if (needs_more) return "the GEMM needs more, so that the result may be its B";
    const Bytes operand = pair.operand(ranks);
    if (work.operand != operand)
        return bytes_text(work.operand) + " bytes, but the GEMM's operand has " + bytes_text(operand);
    return "";
}

}  // namespace

RankGroup group_at(std::span<const Operator> operators, std::size_t first) {
    for (const Operator& op : operators.subspan(first, 2))
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work)) return collective->group;
    return {};
}

std::optional<Pair> pair_at(std::span<const Operator> operators, std::size_t first, int ranks,
                            std::string* why_not) {
    if (operators.size() < 2 || first > operators.size() - 2) return std::nullopt;
    const Operator &before = operators[first], &after = operators[first + 1];
    if (!contains(after.needs, first)) return std::nullopt;
    const bool gemm_first = std::holds_alternative<GemmShape>(before.work);
    const auto* gemm = std::get_if<GemmShape>(&(gemm_first ? before : after).work);
    const auto* collective = std::get_if<CollectiveWork>(&(gemm_first ? after : before).work);
    if (gemm == nullptr || collective == nullptr) return std::nullopt;
    if (before.ranks != after.ranks) return std::nullopt;
    const Pair pair{collective->kind, *gemm, gemm_first ? Order::gemm_first : Order::collective_first,
                    ShardDim::m};
    const std::string reason =
        !before.stream.empty() || !after.stream.empty()
            ? "it names a stream"
            : obstacle(pair, *collective, after.needs.size() > 1, collective->group.members(ranks));
    if (reason.empty()) return pair;
    if (why_not != nullptr) *why_not = reason;
    return std::nullopt;
}

}  // namespace overlap
