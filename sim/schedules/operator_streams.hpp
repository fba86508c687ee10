#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/collectives/built_ranks.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// The streams that the operators of a list name. In the task graph a transfer runs on streams of its own. Where its
/// operator names a stream, edges keep the order of the list: the transfer waits for the operators before it on that
/// stream, and the operators behind it wait for the transfer.
class OperatorStreams {
public:
    explicit OperatorStreams(const std::vector<Operator>& operators);

    /// The stream of an operator that computes.
    int number(const Operator& op) const {
        return op.stream.empty() ? compute_stream : numbers_.at(op.stream);
    }
    /// The names of streams for which stream_name has none.
    std::map<int, std::string> names() const;

    /// Adds, by rank, what `op` waits for because of the stream that it names.
    void wait(const Operator& op, RankTasks& tasks) const;
    /// `ends`: by rank, of `op`, the last one so far.
    void add(const Operator& op, const RankTasks& ends);

private:
    /// What a stream has on one rank: the ends of the last transfer that names it, and of operators behind that one.
    struct OnRank {
        std::vector<TaskId> transfer, since;
    };

    std::map<std::string, int> numbers_{{"compute", compute_stream}, {"local", local_stream}};
    std::map<int, std::vector<OnRank>> on_ranks_;  ///< by stream; empty unless a transfer names one
    bool holds_transfers_;
};

}  // namespace overlap
