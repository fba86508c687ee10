#include "sim/chakra/chakra_workload.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

#include "sim/chakra/chakra_trace.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr std::size_t none = ~std::size_t{0};
constexpr std::size_t most_needs = 20'000'000;  // of all operators: 160 MB

/// A node of a rank.
struct At {
    std::size_t rank = 0, node = 0;
};

[[noreturn]] void fail(const ChakraTrace& trace, const At& at, const std::string& what) {
    const ChakraRank& rank = trace.ranks[at.rank];
    throw UserError(rank.file + ": node " + std::to_string(rank.nodes[at.node].id) + " " +
                    in_quotes(rank.nodes[at.node].name) + " " + what);
}

/// The send that each rank's receive gets its message from. The k-th receive from a rank with a tag gets the
/// k-th message of that rank with that tag.
std::vector<std::vector<At>> senders(const ChakraTrace& trace) {
    using Route = std::tuple<std::size_t, std::size_t, std::uint64_t>;  // from, to, tag
    std::map<Route, std::queue<At>> sent;
    const auto for_each = [&](ChakraKind kind, auto&& visit) {
        for (std::size_t r = 0; r < trace.ranks.size(); ++r)
            for (std::size_t n = 0; n < trace.ranks[r].nodes.size(); ++n)
                if (trace.ranks[r].nodes[n].kind == kind) visit(At{r, n}, trace.ranks[r].nodes[n]);
    };
    std::vector<std::vector<At>> result(trace.ranks.size());
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) result[r].resize(trace.ranks[r].nodes.size());
    for_each(ChakraKind::send, [&](const At& at, const ChakraNode& node) {
        sent[{at.rank, static_cast<std::size_t>(node.peer), node.tag}].push(at);
    });
    for_each(ChakraKind::receive, [&](const At& at, const ChakraNode& node) {
        auto& messages = sent[{static_cast<std::size_t>(node.peer), at.rank, node.tag}];
        if (messages.empty())
            fail(trace, at,
                 "receives what rank " + std::to_string(node.peer) + " does not send (tag " +
                     std::to_string(node.tag) + ")");
        const At from = messages.front();
        messages.pop();
        const std::uint64_t bytes = trace.ranks[from.rank].nodes[from.node].bytes;
        if (bytes != node.bytes)
            fail(trace, at,
                 "receives " + std::to_string(node.bytes) + " bytes, but rank " + std::to_string(node.peer) +
                     " sends " + std::to_string(bytes));
        result[at.rank][at.node] = from;
    });
    for (const auto& [route, messages] : sent)
        if (!messages.empty()) fail(trace, messages.front(), "sends a message that no rank receives");
    return result;
}

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
    constexpr std::size_t most = 16;
    const auto shown = std::span(ranks).first(std::min(most, ranks.size()));
    return "rank" + std::string(ranks.size() == 1 ? " " : "s ") +
           joined(mapped(shown, [](std::int64_t rank) { return std::to_string(rank); })) +
           (ranks.size() > most ? ", …" : "");
}

/// The ranks of each process group: those of the file of groups, else those that have collectives of it.
class ProcessGroups {
public:
    explicit ProcessGroups(const ChakraTrace& trace) : trace_(trace), ranks_(trace.groups) {
        for (std::size_t r = 0; r < trace.ranks.size(); ++r)
            for (const ChakraNode& node : trace.ranks[r].nodes)
                if (node.kind == ChakraKind::collective && !node.group.empty() && trace.groups.empty())
                    if (auto& of = ranks_[node.group];
                        of.empty() || of.back() != static_cast<std::int64_t>(r))
                        of.push_back(static_cast<std::int64_t>(r));
        for (std::size_t r = 0; r < trace.ranks.size(); ++r)
            ranks_[""].push_back(static_cast<std::int64_t>(r));
    }

    /// Throws UserError unless the nodes `members` are one collective of exactly the ranks of its group.
    void check(const std::vector<At>& members) const {
        const ChakraNode& first = node_at(members.front());
        const std::string name =
            first.group.empty() ? "all ranks" : "process group " + in_quotes(first.group);
        const auto refuse = [&](const At& at, const std::string& what) {
            fail(trace_, at, "is a collective of " + name + what);
        };
        const std::vector<std::int64_t>* of_group = value_at(ranks_, first.group);
        if (of_group == nullptr)
            return refuse(members.front(), ", which " + trace_.groups_file + " does not have (it has " +
                                               joined(keys_of(trace_.groups)) + ")");
        for (const At& at : members) {
            if (!contains(*of_group, static_cast<std::int64_t>(at.rank)))
                refuse(at, ", which has " + ranks_text(*of_group) + " (" + trace_.groups_file + ")");
            if (node_at(at).work != first.work)
                refuse(at, " and differs in type or size from that of rank " +
                               std::to_string(members.front().rank) + " with it");
        }
        const auto ranks = mapped(members, [](const At& at) { return static_cast<std::int64_t>(at.rank); });
        if (ranks != *of_group)
            refuse(members.front(),
                   " on " + ranks_text(ranks) + " only, expected one on " + ranks_text(*of_group));
        if (ranks.size() == 1 && trace_.groups.empty() && trace_.ranks.size() > 1)
            refuse(members.front(),
                   ", of which no other rank has a collective (where that is meant: a file of groups, "
                   "NAME.json or comm_group.json, beside the traces)");
    }

private:
    const ChakraNode& node_at(const At& at) const { return trace_.ranks[at.rank].nodes[at.node]; }

    const ChakraTrace& trace_;
    std::map<std::string, std::vector<std::int64_t>> ranks_;  ///< ascending
};

/// Which operator each node is part of. Operators have numbers from 0.
struct Groups {
    std::vector<std::vector<std::size_t>> of;  ///< by rank and node; none for receives and what takes no time
    std::vector<std::vector<At>> members;      ///< by operator: its node on each of its ranks
};

/// Whether the nodes at one place do the same on every rank, so that they are one operator.
bool alike(const ChakraNode& a, const ChakraNode& b) {
    return a.kind == b.kind && a.ours == b.ours && a.place == b.place && a.work == b.work &&
           a.bytes == b.bytes && a.group == b.group && a.after == b.after;
}

/// Groups by place, if the nodes of every place are alike and each receive is of the same place's send.
std::optional<Groups> groups_by_place(const ChakraTrace& trace, const std::vector<std::vector<At>>& sender) {
    const auto& first = trace.ranks.front().nodes;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        const auto& nodes = trace.ranks[r].nodes;
        if (nodes.size() != first.size()) return std::nullopt;
        for (std::size_t n = 0; n < nodes.size(); ++n)
            if (!alike(nodes[n], first[n]) || sender[r][n].node != sender[0][n].node) return std::nullopt;
    }
    for (const ChakraNode& node : first) {
        if (node.kind != ChakraKind::collective || node.group.empty() || trace.groups.empty()) continue;
        const auto* group = value_at(trace.groups, node.group);
        if (group == nullptr || group->size() != trace.ranks.size()) return std::nullopt;
    }
    Groups groups{std::vector(trace.ranks.size(), std::vector(first.size(), none)), {}};
    for (std::size_t n = 0; n < first.size(); ++n) {
        if (first[n].kind == ChakraKind::skip || first[n].kind == ChakraKind::receive) continue;
        for (std::size_t r = 0; r < trace.ranks.size(); ++r) groups.of[r][n] = groups.members.size();
        auto& members = groups.members.emplace_back();
        for (std::size_t r = 0; r < trace.ranks.size(); ++r) members.push_back({r, n});
    }
    return groups;
}

/// Each node an operator of its own, but for those that we wrote as one; the k-th collective of a process group is one
/// on all ranks.
Groups groups_by_rank(const ChakraTrace& trace) {
    Groups groups;
    std::map<std::pair<std::string, std::size_t>, std::size_t> collectives;
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> ours;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        const auto& nodes = trace.ranks[r].nodes;
        auto& of = groups.of.emplace_back(nodes.size(), none);
        std::map<std::string, std::size_t> count;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            if (nodes[n].kind == ChakraKind::skip || nodes[n].kind == ChakraKind::receive) continue;
            of[n] = groups.members.size();
            if (nodes[n].kind == ChakraKind::collective && !nodes[n].ours)
                of[n] = collectives.emplace(std::pair(nodes[n].group, count[nodes[n].group]++), of[n])
                            .first->second;
            else if (nodes[n].ours)
                of[n] = ours.emplace(std::pair(nodes[n].name, nodes[n].place), of[n]).first->second;
            if (of[n] == groups.members.size()) groups.members.emplace_back();
            groups.members[of[n]].push_back({r, n});
        }
    }
    const ProcessGroups process_groups(trace);
    for (const auto& members : groups.members)
        if (trace.ranks[members.front().rank].nodes[members.front().node].kind == ChakraKind::collective)
            process_groups.check(members);
    return groups;
}

/// 0, 1, … in an order in which each comes behind those of `after`; of those that may come next, first the one with the
/// least `place`. Lacks those that wait for each other.
std::vector<std::size_t> in_order(const std::vector<std::vector<std::size_t>>& after,
                                  const std::vector<std::uint64_t>& place) {
    std::vector<std::size_t> waits = mapped(after, [](const auto&all) { return all.size(); }), order;
    std::vector<std::vector<std::size_t>> next(after.size());
    using Ready = std::pair<std::uint64_t, std::size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (waits[i] == 0) ready.emplace(place[i], i);
        for (const std::size_t before : after[i]) next[before].push_back(i);
    }
    while (!ready.empty()) {
        const std::size_t first = ready.top().second;
        ready.pop();
        order.push_back(first);
        for (const std::size_t other : next[first])
            if (--waits[other] == 0) ready.emplace(place[other], other);
    }
    return order;
}

/// The operators that each operator needs.
std::vector<std::vector<std::size_t>> needs_of(const ChakraTrace& trace,
                                               const std::vector<std::vector<At>>& sender,
                                               const Groups& groups) {
    std::vector<std::vector<std::size_t>> needs(groups.members.size());
    std::size_t total = 0;
    const auto unite = [&](std::vector<std::size_t>& all) {
        std::ranges::sort(all);
        all.erase(std::unique(all.begin(), all.end()), all.end());
        if ((total += all.size()) > most_needs)
            throw UserError(trace.ranks.front().file + ": has too many dependencies, more than " +
                            std::to_string(most_needs));
    };
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        const auto& nodes = trace.ranks[r].nodes;
        std::vector<std::size_t> order =
            in_order(mapped(nodes, &ChakraNode::after), mapped(nodes, &ChakraNode::place));
        std::vector<std::vector<std::size_t>> given(nodes.size());
        for (const std::size_t n : order) {
            std::vector<std::size_t> before;
            for (const std::size_t node : nodes[n].after) append(before, given[node]);
            unite(before);
            const std::size_t own = groups.of[r][n];
            if (own != none) {
                append(needs[own], before);
                given[n] = {own};
            } else {
                given[n] = std::move(before);
                if (nodes[n].kind == ChakraKind::receive)
                    given[n].push_back(groups.of[sender[r][n].rank][sender[r][n].node]);
            }
        }
        if (order.size() < nodes.size()) {
            std::ranges::sort(order);
            std::size_t stuck = 0;
            while (stuck < order.size() && order[stuck] == stuck) ++stuck;
            fail(trace, {r, stuck}, "waits for itself, through its dependencies");
        }
    }
    for (auto& list : needs) unite(list);
    return needs;
}

/// The operators in an order in which none needs a later one, as far as possible as in the files; none if there is no
/// such order.
std::optional<std::vector<std::size_t>> order_of(const ChakraTrace& trace, const Groups& groups,
                                                 const std::vector<std::vector<std::size_t>>& needs) {
    const auto place = [&](const std::vector<At>& members) {
        return trace.ranks[members.front().rank].nodes[members.front().node].place;
    };
    std::vector<std::size_t> order = in_order(needs, mapped(groups.members, place));
    if (order.size() < needs.size()) return std::nullopt;
    return order;
}

/// A list of operators, from groups of nodes.
Json operators_of(const ChakraTrace& trace, const Groups& groups,
                  const std::vector<std::vector<std::size_t>>& needs, const std::vector<std::size_t>& order) {
    Json operators = Json::array();
    std::vector<std::string> names(groups.members.size());
    std::set<std::string> taken;
    for (const std::size_t op : order) {
        const auto& members = groups.members[op];
        const ChakraNode& node = trace.ranks[members.front().rank].nodes[members.front().node];
        const bool all = members.size() == trace.ranks.size();
        std::string name = node.name.empty() ? "node_" + std::to_string(node.id) : node.name;
        if (!all && !node.ours) name += "@" + std::to_string(members.front().rank);
        names[op] = name;
        for (std::size_t count = 2; !taken.insert(names[op]).second; ++count)
            names[op] = name + "#" + std::to_string(count == 2 ? node.id : node.id + count);
        Json entry{{"name", names[op]}};
        entry.update(node.kind == ChakraKind::send ? Json{{"type", "send"}, {"bytes", node.bytes}}
                                                   : node.work);
        if (node.of_one_rank)
            entry["bytes"] = entry["bytes"].get<double>() * static_cast<double>(members.size());
        if (node.kind == ChakraKind::send) {
            for (const At& at : members) {
                entry["from"].push_back(at.rank);
                entry["to"].push_back(trace.ranks[at.rank].nodes[at.node].peer);
            }
        } else if (!all) {
            for (const At& at : members) entry["ranks"].push_back(at.rank);
        }
        entry["needs"] = Json::array();
        for (const std::size_t need : needs[op]) entry["needs"].push_back(names[need]);
        operators.push_back(std::move(entry));
    }
    return operators;
}

Json operators_of(const ChakraTrace& trace) {
    const auto sender = senders(trace);
    if (const auto groups = groups_by_place(trace, sender)) {
        const auto needs = needs_of(trace, sender, *groups);
        if (const auto order = order_of(trace, *groups, needs))
            return operators_of(trace, *groups, needs, *order);
    }
    const Groups groups = groups_by_rank(trace);
    const auto needs = needs_of(trace, sender, groups);
    const auto order = order_of(trace, groups, needs);
    if (!order)
        throw UserError(trace.ranks.front().file +
                        ": its ranks wait for each other in a circle: the trace never ends");
    return operators_of(trace, groups, needs, *order);
}

/// A name that a workload may have: small letters, digits, underscores.
std::string plain_name(const std::filesystem::path& file) {
    std::string name;
    for (const char c : file.stem().stem().string()) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '_' && !name.empty());
        name += letter ? c : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : '_';
    }
    while (!name.empty() && name.front() == '_') name.erase(0, 1);
    return name.empty() ? "chakra" : name;
}

std::vector<std::string> notes_of(const ChakraTrace& trace) {
    std::vector<std::string> notes;
    if (trace.cpu_operators > 0)
        notes.push_back(std::to_string(trace.cpu_operators) + " operators of CPUs (" +
                        std::to_string(std::llround(trace.cpu_us)) + " us) take no time here: see --host");
    if (trace.typeless) notes.emplace_back("number formats are not in the trace: bf16 is assumed");
    if (!trace.ignored.empty()) {
        std::string names;
        for (const auto& [name, count] : trace.ignored)
            if (names.size() < 200)
                names += (names.empty() ? "" : ", ") + one_line(name) + " of " + std::to_string(count);
        notes.push_back("ignored attributes of nodes: " + names);
    }
    return notes;
}

}  // namespace

bool is_chakra_trace(const std::string& name) {
    return name.ends_with(".et") || !chakra_files(name).empty();
}

std::string chakra_trace(const std::string& name, const std::string& beside) {
    return is_chakra_trace(name) ? name : is_chakra_trace(beside) ? beside : "";
}

ChakraWorkload read_chakra(const std::string& name) {
    const auto files = chakra_files(name);
    if (files.empty())
        throw UserError(one_line(name) + ": no trace of rank 0 here, expected NAME.0.et, NAME.1.et, …");
    const ChakraTrace trace = read_chakra_trace(files);
    Json operators = operators_of(trace);
    if (operators.empty()) throw UserError(files.front().string() + ": has no operator that takes time");
    const std::string ranks = std::to_string(files.size());
    Json workload{
        {"schema", 1},
        {"name", trace.name.empty() ? plain_name(files.front()) : trace.name},
        {"description",
         trace.description.empty() ? "Chakra execution trace of " + ranks + " ranks." : trace.description},
        {"source", "Chakra execution trace " + files.front().filename().string() + " of " + ranks + " ranks"},
        {"ranks", files.size()},
        {"order",
         trace.order.empty() ? list_order_names[static_cast<std::size_t>(ListOrder::data)] : trace.order},
        {"operators", std::move(operators)}};
    return {std::move(workload), notes_of(trace)};
}

}  // namespace overlap
