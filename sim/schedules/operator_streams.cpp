#include "sim/schedules/operator_streams.hpp"

#include <algorithm>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

bool transfers(const Operator& op) {
    return std::holds_alternative<CollectiveWork>(op.work) || std::holds_alternative<SendWork>(op.work);
}
bool is_on_named_streams(const Operator& op) {
    return !transfers(op) || !op.stream.empty();
}
bool transfer_names_stream(const Operator& op) {
    return transfers(op) && !op.stream.empty();
}

}  // namespace

OperatorStreams::OperatorStreams(const std::vector<Operator>& operators)
    : holds_transfers_(std::ranges::any_of(operators, transfer_names_stream)) {
    int sides = 0;
    for (const Operator& op : operators)
        if (!op.stream.empty() && numbers_.try_emplace(op.stream, side_stream(sides)).second) ++sides;
}

std::map<int, std::string> OperatorStreams::names() const {
    std::map<int, std::string> names;
    for (const auto& [name, number] : numbers_)
        if (number < host_stream) names[number] = name;
    return names;
}

void OperatorStreams::wait(const Operator& op, RankTasks& tasks) const {
    if (!holds_transfers_ || !is_on_named_streams(op)) return;
    const auto found = on_ranks_.find(number(op));
    if (found == on_ranks_.end()) return;
    for (std::size_t r = 0; r < tasks.size(); ++r) {
        const OnRank& before = found->second[r];
        for (const TaskId id : transfers(op) && !before.since.empty() ? before.since : before.transfer)
            if (!contains(tasks[r], id)) tasks[r].push_back(id);
    }
}

void OperatorStreams::add(const Operator& op, const RankTasks& ends) {
    if (!holds_transfers_ || !is_on_named_streams(op)) return;
    std::vector<OnRank>& on_ranks = on_ranks_.try_emplace(number(op), ends.size()).first->second;
    for (std::size_t r = 0; r < ends.size(); ++r) {
        if (transfers(op) && !ends[r].empty())
            on_ranks[r] = {ends[r], {}};
        else
            append(on_ranks[r].since, ends[r]);
    }
}

}  // namespace overlap
