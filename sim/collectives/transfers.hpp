#pragma once

#include <vector>

#include "sim/collectives/built_ranks.hpp"
#include "sim/topology/islands.hpp"

namespace overlap {

/// The order in which a rank serves its peers.
enum class PeerOrder {
    rotation,   ///< r+1, r+2, … mod P: no two ranks serve the same peer at once
    ascending,  ///< 0, 1, … without r: all ranks serve the same peer
};
inline const std::array<std::string, 2> peer_order_names{"rotation", "ascending"};

/// Priority of a kernel stream relative to other streams of the same GPU.
enum class Priority { normal, high };  ///< numbers as in Task::priority
inline const std::array<std::string, 2> priority_names{"normal", "high"};

/// DMA commands for the pieces of a whole collective. one_stream: copies, those of a GPU on one stream. best: the
/// fastest of the others, chosen before a graph is built.
enum class DmaCommands { copy, one_stream, broadcast, swap, back_to_back, best };
inline const std::array<std::string, 6> dma_commands_names{"copy", "one_stream",   "broadcast",
                                                           "swap", "back_to_back", "auto"};

/// How the transfers of a schedule are carried out.
struct TransferOptions {
    Agent agent = Agent::dma;
    Direction direction = Direction::pull;
    int cus = 0;               ///< compute units a copy kernel holds; 0 with DMA
    bool default_cus = false;  ///< `cus` is the default for transfers to all peers of the topology
    int channels = 0;          ///< channels of a library collective's kernel; 0: as many as the library uses
    Priority priority = Priority::normal;
    PeerOrder order = PeerOrder::rotation;
    bool single_stream = false;                ///< one transfer stream a GPU instead of one for each peer
    DmaCommands commands = DmaCommands::copy;  ///< for collectives that are not cut
    bool prelaunch = false;                    ///< CopyWork::prelaunched
    bool stored = false, added = false;        ///< CopyWork::stored and added
    std::optional<Rotations> alike;  ///< of the whole topology: only representatives' tasks are built
    friend bool operator==(const TransferOptions&, const TransferOptions&) = default;
};

/// Contents of a transfer: names for reports, and its size.
struct Payload {
    Bytes bytes;
    Bytes run;  ///< length of a contiguous piece; = bytes when contiguous
    int shard = -1;
    int chunk = -1;
};

/// Renames the GPUs of `task`, and the streams that are named after peers, from ranks in `group` (Topology::groups)
/// to ranks in the whole topology.
Task in_whole(Task task, const Topology& group);

/// How tasks name GPUs where the topology is a group of another one: by rank in the group, or in the whole topology.
enum class RanksOf { group, whole };

/// Adds transfers to a task graph. The options decide which GPU executes them, and on which stream.
class Transfers {
public:
    Transfers(TaskGraph& graph, const Topology& topology, TransferOptions options,
              RanksOf ranks_of = RanksOf::group);

    TaskGraph& graph() { return graph_; }
    TaskId add(const Task& task, std::span<const TaskId> after) {
        if (ranks_of_ == RanksOf::group) return built_.add(graph_, task, after);
        return built_.add(graph_, in_whole(task, topology_), after);
    }
    const TransferOptions& options() const { return options_; }
    /// The ranks to go through.
    const BuiltRanks& built() const { return built_; }
    /// Whether DMA engines copy, and serve copies that are ready together in the order of the host's calls.
    bool served_in_turn() const { return served_in_turn_; }
    /// Whether each GPU's copies are enqueued in an order of its own: where engines serve them in that order, or each
    /// node has its own programs and launches wait for one another.
    bool enqueued_by_each() const;
    int ranks() const { return ranks_; }
    /// Whether these are all GPUs of the machine, not a group of them.
    bool are_all() const { return topology_.group().is_all(); }
    /// Nodes, or islands of one node (island_size).
    int nodes() const { return ranks_ / per_node_; }
    int ranks_per_node() const { return per_node_; }
    /// Ranks in ring order (Topology::ring).
    const std::vector<int>& ring() const { return ring_; }
    /// The peers of `rank` in the order of the options.
    std::vector<int> peers(int rank) const { return others(rank, 0, ranks_); }
    /// The other ranks of `rank`'s node, and the ranks with its number in the other nodes (its rail).
    std::vector<int> node_peers(int rank) const;
    std::vector<int> rail_peers(int rank) const;
    /// A copy of a pattern in which every rank sends to its peers, at once unless they share a stream
    /// (CopyWork::all_pairs).
    TaskId copy(int src, int dst, const Payload& payload, std::span<const TaskId> after = {});
    /// A copy while `src` sends to no other rank: a step of a ring, or a message.
    TaskId copy_alone(int src, int dst, const Payload& payload, std::span<const TaskId> after = {});
    DmaCommands commands() const { return options_.commands; }
    /// Which end executes copies.
    Direction direction() const { return options_.direction; }
    /// Reads at `src` once and writes to two other GPUs; `src` executes it.
    TaskId broadcast(int src, int first, int second, const Payload& payload,
                     std::span<const TaskId> after = {});
    /// `a` and `b` exchange a payload in place; `a` executes it.
    TaskId swap(int a, int b, const Payload& payload, std::span<const TaskId> after = {});
    /// Copy number `place` of `batch` copies that one engine of the executing GPU runs back to back.
    TaskId copy_back_to_back(int src, int dst, const Payload& payload, int place, int batch,
                             std::span<const TaskId> after = {});

private:
    Task transfer(int src, int dst, const Payload& payload) const;
    /// first … first + count − 1 without `self`, in the order of the options.
    std::vector<int> others(int self, int first, int count) const;

    TaskGraph& graph_;
    const Topology& topology_;
    int ranks_;
    int per_node_;
    const std::vector<int>& ring_;
    TransferOptions options_;
    RanksOf ranks_of_;
    BuiltRanks built_;
    bool served_in_turn_;
};

}  // namespace overlap
