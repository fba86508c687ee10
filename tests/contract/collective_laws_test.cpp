// Laws of every registered collective algorithm, for every kind it handles, on every
// shipped topology of 2 to 64 GPUs.
#include <catch2/catch.hpp>
#include <set>

#include "sim/collectives/collective_algorithm.hpp"
#include "sim/schedules/operator_list.hpp"
#include "tests/contract/laws.hpp"

namespace overlap::test::collective_laws_test {
namespace {

/// An algorithm with its DMA commands.
struct Way {
    const CollectiveAlgorithm* entry;
    TransferOptions options;

    std::string name() const {
        return entry->name + " " + dma_commands_names[static_cast<std::size_t>(options.commands)] + " " +
               direction_names[static_cast<std::size_t>(options.direction)];
    }
};

struct Built {
    std::string algorithm;
    TaskGraph graph;
    RankTasks ready, done;
};

constexpr double operand = 1e6;

Built build(const Way& way, CollectiveKind kind, const Topology& topology) {
    Built built;
    built.algorithm = way.entry->name;
    Transfers transfers(built.graph, topology, way.options);
    for (int rank = 0; rank < topology.gpus(); ++rank)
        built.ready.push_back({built.graph.add(Task{GemmShape{1, 1, 1}, rank, compute_stream})});
    built.done = way.entry->build({kind, Bytes(operand)}, built.ready, transfers);
    return built;
}

/// The ranks whose operands a task has seen: those before it in the graph.
std::vector<std::set<int>> sources(const TaskGraph& graph) {
    std::vector<std::set<int>> seen(graph.size());
    for (TaskId id = 0; id < graph.size(); ++id) {
        if (graph[id].kind() == TaskKind::gemm) seen[id] = {graph[id].gpu};
        for (const TaskId before : predecessors(graph, id))
            seen[id].insert(seen[before].begin(), seen[before].end());
    }
    return seen;
}

bool has_library_kernel(const TaskGraph& graph) {
    bool found = false;
    for (TaskId id = 0; id < graph.size(); ++id) found = found || graph[id].kind() == TaskKind::collective;
    return found;
}

/// Every algorithm with plain copies that are pulled; in one node also the direct one with all DMA commands
/// that can do the collective, and both ways where engines may read from other GPUs.
std::vector<Way> ways(CollectiveKind kind, const Topology& topology) {
    std::vector<Way> result;
    for (const CollectiveAlgorithm& entry : collective_algorithms()) {
        if (!entry.handles(kind)) continue;
        result.push_back({&entry, {}});
        if (entry.name != "direct" || topology.nodes() > 1) continue;
        for (const DmaCommands commands : {DmaCommands::one_stream, DmaCommands::broadcast, DmaCommands::swap,
                                           DmaCommands::back_to_back}) {
            if (!can_command(commands, kind)) continue;
            TransferOptions options;
            options.commands = commands;
            options.direction = Direction::push;
            result.push_back({&entry, options});
            options.direction = Direction::pull;
            if (commands == DmaCommands::back_to_back || commands == DmaCommands::one_stream)
                result.push_back({&entry, options});
        }
    }
    return result;
}

/// `law(kind, topology, built)` for every way × kind × topology; returns how often.
template <class Law>
int for_every_collective(Law&& law) {
    int cases = 0;
    for (const std::string& name : shipped.names("topologies")) {
        const Topology topology = shipped.topology(name);
        if (topology.gpus() < 2 || topology.gpus() > 64) continue;
        for (std::size_t k = 0; k < collective_names.size(); ++k) {
            const auto kind = static_cast<CollectiveKind>(k);
            for (const Way& way : ways(kind, topology)) {
                INFO(way.name() << " | " << name_of(kind) << " | " << name);
                law(kind, topology, build(way, kind, topology));
                ++cases;
            }
        }
    }
    return cases;
}

}  // namespace

TEST_CASE("every rank receives and sends the bytes of the closed form") {
    const int cases = for_every_collective([](CollectiveKind kind, const Topology& topology,
                                              const Built& built) {
        const auto ranks = static_cast<std::size_t>(topology.gpus());
        std::vector<double> in(ranks), out(ranks);
        for (TaskId id = 0; id < built.graph.size(); ++id) {
            for_each_transfer(built.graph[id], topology.gpus(), [&](int src, int dst, double bytes) {
                REQUIRE(src != dst);
                in.at(static_cast<std::size_t>(dst)) += bytes;
                out.at(static_cast<std::size_t>(src)) += bytes;
            });
        }
        const auto p = static_cast<double>(ranks);
        double expected = (kind == CollectiveKind::all_reduce ? 2 : 1) * (p - 1) / p * operand;
        // Forwarded pieces count twice: N·(L−1) pieces inside the node, (N−1)·L between nodes.
        if (built.algorithm == "hierarchical" && kind == CollectiveKind::all_to_all && topology.nodes() > 1)
            expected = (2 * p - topology.nodes() - topology.gpus_per_node()) / p * operand;
        constexpr double flag = 4;  // to each peer, before and after
        if (built.algorithm == "zero_cta") expected += 2 * flag * (p - 1);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            CHECK(in[rank] == Approx(expected));
            CHECK(out[rank] == Approx(expected));
        }
    });
    CHECK(cases >= 15 * 15);  // topologies · (4 kinds but for ring, which has 3)
}

TEST_CASE("what a rank ends with has seen every rank's operand") {
    const int cases = for_every_collective([](CollectiveKind, const Topology& topology, const Built& built) {
        const auto seen = sources(built.graph);
        REQUIRE(built.done.size() == static_cast<std::size_t>(topology.gpus()));
        for (std::size_t rank = 0; rank < built.done.size(); ++rank) {
            std::set<int> together{static_cast<int>(rank)};
            for (const TaskId task : built.done[rank]) together.insert(seen[task].begin(), seen[task].end());
            REQUIRE(together.size() == built.done.size());
        }
    });
    CHECK(cases >= 15 * 15);
}

TEST_CASE("every reduction adds as many parts as it waits for, and every rank reduces the same") {
    const int cases =
        for_every_collective([](CollectiveKind kind, const Topology& topology, const Built& built) {
            if (has_library_kernel(built.graph)) return;  // reduces on the way
            std::vector<double> added(static_cast<std::size_t>(topology.gpus()));
            for (TaskId id = 0; id < built.graph.size(); ++id) {
                const auto* sum = std::get_if<ReduceWork>(&built.graph[id].work);
                if (sum == nullptr) continue;
                REQUIRE(predecessors(built.graph, id).size() == static_cast<std::size_t>(sum->parts));
                added[static_cast<std::size_t>(built.graph[id].gpu)] += (sum->parts - 1) * sum->bytes.si();
            }
            // A sum of P pieces of operand/P is P−1 additions of a piece, in whatever grouping.
            const double p = topology.gpus();
            const bool reduces = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
            for (const double sum : added)
                CHECK(sum == Approx(reduces ? (p - 1) / p * operand : 0).margin(1e-9));
        });
    CHECK(cases >= 15 * 15);
}

TEST_CASE("hierarchical: exactly the bytes that must cross go through each NIC, in and out") {
    // Between nodes a gathered or reduced operand needs N−1 of its P = N·L pieces in and out of every NIC, an
    // all_reduce both; an all_to_all the (N−1)·L pieces for other nodes. Over rails nothing else crosses.
    const int cases =
        for_every_collective([](CollectiveKind kind, const Topology& topology, const Built& built) {
            if (built.algorithm != "hierarchical" || topology.nodes() == 1) return;
            const double n = topology.nodes(), l = topology.gpus_per_node();
            const double pieces = kind == CollectiveKind::all_to_all   ? (n - 1) * l
                                  : kind == CollectiveKind::all_reduce ? 2 * (n - 1)
                                                                       : n - 1;
            std::vector<double> load(topology.links().size());
            for (TaskId id = 0; id < built.graph.size(); ++id)
                for_each_transfer(built.graph[id], topology.gpus(), [&](int src, int dst, double bytes) {
                    const bool same_rail = src % topology.gpus_per_node() == dst % topology.gpus_per_node();
                    REQUIRE((same_rail || topology.node_of(src) == topology.node_of(dst)));
                    const Route route = topology.route(src, dst);
                    for (const std::size_t link : route.links) load[link] += bytes;
                });
            int nics = 0;
            for (const Link& link : topology.links()) {
                const bool out = link.name.starts_with("gpu") && link.name.find("->nic") != std::string::npos;
                const bool in = link.name.starts_with("nic") && link.name.find("->gpu") != std::string::npos;
                if (!out && !in) continue;
                CHECK(load[link.id] == Approx(pieces / (n * l) * operand));
                ++nics;
            }
            CHECK(nics == 2 * topology.gpus());
        });
    CHECK(cases >= 15 * 15);
}

TEST_CASE("every kind of collective has an algorithm") {
    for (std::size_t kind = 0; kind < collective_names.size(); ++kind) {
        int handling = 0;
        for (const CollectiveAlgorithm& entry : collective_algorithms())
            handling += entry.handles(static_cast<CollectiveKind>(kind)) ? 1 : 0;
        INFO(collective_names[kind]);
        CHECK(handling >= 1);
    }
}

}  // namespace overlap::test::collective_laws_test
