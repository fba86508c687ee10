#include "sim/advise/actions.hpp"

#include <map>
#include <utility>

#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

using overlap_advice::ChunkRule;

struct RuleValue {
    ChunkRule rule;
    double x;
};

std::vector<RuleValue> rules() {
    using enum ChunkRule;
    return {{estimated, 0},    {fixed, 1},       {fixed, 2},      {fixed, 4},    {fixed, 8},    {fixed, 16},
            {balanced, 0.125}, {balanced, 0.25}, {balanced, 0.5}, {balanced, 1}, {balanced, 2}, {balanced, 4},
            {balanced, 8},     {by_waves, 0.5},  {by_waves, 1},   {by_waves, 2}, {by_waves, 4}, {by_size, 0.5},
            {by_size, 1},      {by_size, 2},     {by_size, 4},    {by_size, 8},  {by_size, 16}};
}

}  // namespace

std::string Action::text() const {
    if (plan == overlap_advice::plan_count) return "least estimate";
    const overlap_advice::NamedPlan& named = overlap_advice::plans()[plan];
    // What stands before and after the number of a rule
    static const std::map<ChunkRule, std::pair<std::string, std::string>> around{
        {ChunkRule::fixed, {", ", " chunks"}},
        {ChunkRule::balanced, {", chunks ~ sqrt(shorter / ", " latencies)"}},
        {ChunkRule::by_waves, {", steps of ", " waves or more"}},
        {ChunkRule::by_size, {", transfers of ", " latencies or more"}}};
    std::string chunks = rule == ChunkRule::estimated ? ", chunks by estimate" : "";
    if (const auto texts = around.find(rule); texts != around.end())
        chunks = texts->second.first + plain(x) + texts->second.second;
    return std::string(named.schedule) + (*named.gemm != 0 ? std::string(" gemm=") + named.gemm : "") +
           " by " + (named.plan.by_kernels ? "cu" : "dma") + chunks;
}

std::vector<Action> all_actions(bool own_kernels) {
    std::vector<Action> result{{overlap_advice::plan_count, ChunkRule::estimated, 0}};
    for (std::size_t i = 0; i < overlap_advice::plan_count; ++i) {
        const overlap_advice::Plan& plan = overlap_advice::plans()[i].plan;
        if (plan.style == overlap_advice::flag_gated && !own_kernels) continue;
        if (!overlap_advice::cuts_shards(plan)) {
            result.push_back({i, ChunkRule::uncut, 0});
            continue;
        }
        for (const auto& [rule, x] : rules())
            if (rule != ChunkRule::fixed || x >= overlap_advice::least_chunks(plan))
                result.push_back({i, rule, x});
    }
    return result;
}

Candidate candidate_of(const overlap_advice::Advice& advice) {
    return {advice.schedule, advice.chunks, advice.agent, advice.transfer, advice.gemm};
}

}  // namespace overlap
