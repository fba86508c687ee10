#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/workload/workload.hpp"

// Schedules of a pair as rectangles (sim/search/search.md).
namespace overlap {

/// A GEMM of every rank, and the copies of its shards: before it where the collective comes first, behind it where the GEMM
/// does. Rank r's shard at distance d is that of rank r + d, round the end; 0 is the own one, which nobody copies.
struct SearchStep {
    int first = 0, last = 0;        ///< distances of its shards
    std::int64_t from = 0, to = 0;  ///< its part of each of them, in units of Genome::unit
    Agent agent = Agent::dma;
    Direction direction = Direction::pull;
    int cus = 0;          ///< of each copy kernel
    bool urgent = false;  ///< copy kernels are served before GEMMs
    int lane = -1;      ///< stream of all its copies, of as many as there are ranks; −1: one for each peer
    bool side = false;  ///< its GEMM is on the second stream
    int units = 0;      ///< compute units that its GEMM may use; 0: all

    int shards() const { return last - first + 1; }
    friend bool operator==(const SearchStep&, const SearchStep&) = default;
};

/// Steps in the order of their GEMMs and copies. As rectangles of distances and parts they cover all shards once.
struct Genome {
    bool columns = false;   ///< parts are columns of the communicated operand; else rows
    std::int64_t unit = 1;  ///< rows or columns
    std::vector<SearchStep> steps;
    friend bool operator==(const Genome&, const Genome&) = default;
};

/// What of a genome may change.
inline const std::array<std::string, 8> dimension_names{
    "sizes", "merging", "order", "agent", "direction", "streams", "units", "second_gemm_stream"};
enum class SearchDimension { sizes, merging, order, agent, direction, streams, units, second_gemm_stream };

/// The pair and the machine that genomes are for, and what they may have.
struct SearchSpace {
    Pair pair;
    int ranks = 1;
    int ranks_per_node = 1;
    std::int64_t tile = 1;           ///< rows of the GEMM's tiles
    int compute_units = 0, cus = 0;  ///< of the device; of a copy kernel by default
    bool in_turn = false;            ///< copies of one distance of all ranks are enqueued after one another
    std::vector<Agent> agents = {};
    std::vector<SearchDimension> free = {};  ///< dimensions that may change

    bool gathers() const { return pair.order == Order::collective_first; }
    bool is_free(SearchDimension dimension) const;
    /// The shards' extent along rows (columns), in units.
    std::int64_t parts(const Genome& genome) const;
};

/// Whether a search knows how to cut the pair.
bool has_genomes(const Pair& pair);

/// Genomes like listed schedules: pieces of rows or columns, 1 to 16 a shard, each with a GEMM or one GEMM a step, by
/// all agents and directions, on one stream or one for each peer.
std::vector<Genome> start_genomes(const SearchSpace& space);

/// A random change.
struct GenomeChange {
    SearchDimension dimension = SearchDimension::sizes;
    std::string text;
    friend bool operator==(const GenomeChange&, const GenomeChange&) = default;
};
/// Changes `genome`; none if this draw fits nothing. The result need not be valid.
std::optional<GenomeChange> mutate(Genome& genome, const SearchSpace& space, std::mt19937_64& random);

/// Whether GEMMs that accumulate do so one after another, in one place, and there are not too many steps.
bool is_valid(const Genome& genome, const SearchSpace& space);

/// The GEMM of a step on a rank.
GemmShape gemm_of(const Genome& genome, const SearchStep& step, const SearchSpace& space, int rank = 0);
/// Graph and, if `placed`, places of data. Contract: `genome` is valid.
Plan plan_of(const Genome& genome, const SearchSpace& space, bool placed);
/// Bytes of stages and partial results on the GPU with most.
Bytes staging_of(const Genome& genome, const SearchSpace& space);

/// A step's shards in words: "ranks +1 to +7, rows 0 to 1023".
std::string text_of(const Genome& genome, const SearchStep& step, const SearchSpace& space);
/// How it runs: "dma pull, transfer stream 0, GEMM on the second stream"; empty for an own shard like any other.
std::string how_of(const SearchStep& step);

}  // namespace overlap
