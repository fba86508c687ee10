#include "sim/search/genome.hpp"

#include <algorithm>
#include <set>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/candidates.hpp"
#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

constexpr std::size_t most_steps = 64;

/// Rows of the smallest shard, or columns of all.
std::int64_t length_of(const SearchSpace& space, bool columns) {
    const GemmShape& gemm = space.pair.gemm;
    return columns ? (space.gathers() ? gemm.k : gemm.n) : gemm.m / space.ranks;
}

/// Steps of length `unit` that cuts may have: the tiles' rows where a shard has many, else less.
std::int64_t unit_of(const SearchSpace& space, bool columns) {
    constexpr std::int64_t least_parts = 16, most_parts = 64, alignment = 8;
    const std::int64_t length = length_of(space, columns);
    std::int64_t unit = columns ? 256 : space.tile;
    while (length / unit < least_parts && unit > alignment) unit /= 2;
    while (length / unit > most_parts) unit *= 2;
    return std::max<std::int64_t>(unit, 1);
}

/// The draws of a search. Distributions of the library differ between systems.
std::size_t below(std::mt19937_64& random, std::size_t count) {
    return random() % count;
}
template <class Values>
const auto& one_of(std::mt19937_64& random, const Values& values) {
    return values[below(random, std::size(values))];
}

bool is_one_rectangle(const SearchStep& a, const SearchStep& b) {
    const bool same_part = a.from == b.from && a.to == b.to,
               same_shards = a.first == b.first && a.last == b.last;
    return (same_part && (a.last + 1 == b.first || b.last + 1 == a.first)) ||
           (same_shards && (a.to == b.from || b.to == a.from));
}

/// Where the other half of a rectangle is: a pair of steps that form one, the first of which is `at`.
std::optional<std::size_t> partner(const Genome& genome, std::size_t at, std::mt19937_64& random) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < genome.steps.size(); ++i)
        if (i != at && is_one_rectangle(genome.steps[at], genome.steps[i])) found.push_back(i);
    if (found.empty()) return std::nullopt;
    return one_of(random, found);
}

std::string number_text(std::int64_t number) {
    return std::to_string(number);
}

/// Whether each part of each shard is in one step.
bool covers_all(const Genome& genome, const SearchSpace& space) {
    const auto parts = static_cast<std::size_t>(space.parts(genome));
    std::vector<bool> covered(parts * static_cast<std::size_t>(space.ranks));
    std::size_t count = 0;
    for (const SearchStep& step : genome.steps)
        for (int d = step.first; d <= step.last; ++d)
            for (auto part = static_cast<std::size_t>(step.from); part < static_cast<std::size_t>(step.to);
                 ++part) {
                auto at = covered[static_cast<std::size_t>(d) * parts + part];
                if (at) return false;
                at = true;
                ++count;
            }
    return count == covered.size();
}

class Mutation {
public:
    Mutation(Genome& genome, const SearchSpace& space, std::mt19937_64& random)
        : genome_(genome), space_(space), random_(random), at_(below(random, genome.steps.size())) {}

    std::optional<std::string> apply(SearchDimension dimension) {
        switch (dimension) {
            case SearchDimension::sizes:
                return below(random_, 2) == 0 ? split_parts() : move_edge();
            case SearchDimension::merging:
                return below(random_, 2) == 0 ? merge() : split_shards();
            case SearchDimension::order:
                return reorder();
            case SearchDimension::agent:
                return set_agent();
            case SearchDimension::direction:
                return set_direction();
            case SearchDimension::streams:
                return set_lane();
            case SearchDimension::units:
                return set_units();
            case SearchDimension::second_gemm_stream:
                return set_side();
        }
        return std::nullopt;
    }

private:
    using Text = std::optional<std::string>;
    SearchStep& step() { return genome_.steps[at_]; }
    std::string name(const SearchStep& one) const { return text_of(genome_, one, space_); }

    /// Calls `change` for the step, or for all steps from it on that copy.
    template <class Change>
    std::string for_some(Change&& change, const std::string& what) {
        const std::size_t which = below(random_, 3);
        const std::string where = which == 0 ? name(step()) : which == 1 ? "all steps" : "the last steps";
        for (std::size_t i = which == 1 ? 0 : at_; i < (which == 0 ? at_ + 1 : genome_.steps.size()); ++i)
            if (genome_.steps[i].last > 0) change(genome_.steps[i]);
        return where + ": " + what;
    }

    Text split_parts() {
        const std::int64_t length = step().to - step().from;
        if (length < 2) return std::nullopt;
        const std::int64_t cut =
            step().from + 1 + static_cast<std::int64_t>(below(random_, static_cast<std::size_t>(length - 1)));
        return cut_at(cut);
    }
    /// Every step that has the same part is cut there, or the one.
    Text cut_at(std::int64_t cut) {
        const SearchStep whole = step();
        const bool all = below(random_, 2) == 0;
        std::vector<SearchStep> before, steps;
        for (std::size_t i = 0; i < genome_.steps.size(); ++i) {
            SearchStep one = genome_.steps[i];
            if (i != at_ && !(all && one.from == whole.from && one.to == whole.to && one.first > 0)) {
                steps.push_back(one);
                continue;
            }
            SearchStep second = one;
            one.to = second.from = cut;
            steps.push_back(one);
            before.push_back(second);
        }
        const bool at_once = below(random_, 2) == 0;
        if (at_once && before.size() == 1)
            steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at_) + 1, before.front());
        else
            append(steps, before);
        genome_.steps = std::move(steps);
        return name(whole) + ": cut at " + number_text(cut * genome_.unit);
    }

    /// The common edge of two steps, and of all pairs with that edge.
    Text move_edge() {
        const std::int64_t old = step().to;
        std::int64_t low = 0, high = space_.parts(genome_);
        if (old == high) return std::nullopt;
        const SearchStep like = step();
        const bool all = below(random_, 2) == 0;
        const auto touches = [&](const SearchStep& one) {
            return all || (one.first == like.first && one.last == like.last);
        };
        for (const SearchStep& one : genome_.steps) {
            if (!touches(one)) continue;
            if (one.to == old) low = std::max(low, one.from);
            if (one.from == old) high = std::min(high, one.to);
        }
        if (high - low < 3) return std::nullopt;
        const std::int64_t to =
            low + 1 + static_cast<std::int64_t>(below(random_, static_cast<std::size_t>(high - low - 1)));
        for (SearchStep& one : genome_.steps) {
            if (!touches(one)) continue;
            if (one.to == old) one.to = to;
            if (one.from == old) one.from = to;
        }
        return "edge at " + number_text(old * genome_.unit) + " moved to " + number_text(to * genome_.unit);
    }

    Text merge() {
        const auto other = partner(genome_, at_, random_);
        if (!other) return std::nullopt;
        const SearchStep second = genome_.steps[*other];
        const std::string text = name(step()) + " and " + name(second) + " in one GEMM";
        step().first = std::min(step().first, second.first);
        step().last = std::max(step().last, second.last);
        step().from = std::min(step().from, second.from);
        step().to = std::max(step().to, second.to);
        genome_.steps.erase(genome_.steps.begin() + static_cast<std::ptrdiff_t>(*other));
        return text;
    }

    Text split_shards() {
        if (step().shards() < 2) return std::nullopt;
        const int cut = step().first + 1 +
                        static_cast<int>(below(random_, static_cast<std::size_t>(step().shards() - 1)));
        const std::string text =
            name(step()) + ": ranks from +" + std::to_string(cut) + " on in a GEMM of their own";
        SearchStep second = step();
        step().last = cut - 1;
        second.first = cut;
        genome_.steps.insert(genome_.steps.begin() + static_cast<std::ptrdiff_t>(at_) + 1, second);
        return text;
    }

    Text reorder() {
        const std::size_t count = genome_.steps.size();
        if (count < 2) return std::nullopt;
        const std::size_t to = below(random_, count);
        if (to == at_) return std::nullopt;
        const SearchStep moved = step();
        genome_.steps.erase(genome_.steps.begin() + static_cast<std::ptrdiff_t>(at_));
        genome_.steps.insert(genome_.steps.begin() + static_cast<std::ptrdiff_t>(to), moved);
        return name(moved) + (to < at_ ? " earlier" : " later");
    }

    Text set_agent() {
        const Agent agent = one_of(random_, space_.agents);
        if (agent == Agent::dma)
            return for_some([](SearchStep& one) { one.agent = Agent::dma, one.cus = 0, one.urgent = false; },
                            "by dma");
        constexpr std::array shares{0.25, 0.5, 1.0, 1.0, 2.0, 4.0};
        const int most = std::max(1, space_.compute_units / std::max(1, space_.ranks - 1));
        const int cus = std::clamp(static_cast<int>(one_of(random_, shares) * space_.cus), 1, most);
        const bool urgent = below(random_, 3) == 0;
        return for_some(
            [&](SearchStep& one) { one.agent = Agent::cu, one.cus = cus, one.urgent = urgent; },
            "by kernels of " + std::to_string(cus) + " compute units" + (urgent ? ", served first" : ""));
    }
    Text set_direction() {
        const auto direction = static_cast<Direction>(below(random_, 2));
        return for_some([&](SearchStep& one) { one.direction = direction; },
                        direction_names[static_cast<std::size_t>(direction)]);
    }
    Text set_lane() {
        const int lanes = 1 + static_cast<int>(below(random_, static_cast<std::size_t>(space_.ranks)));
        if (below(random_, 3) == 0) {
            int next = 0;
            for (SearchStep& one : genome_.steps)
                if (one.last > 0) one.lane = next++ % lanes;
            return "steps on " + std::to_string(lanes) + " transfer streams in turn";
        }
        const int lane = below(random_, 2) == 0 ? -1 : lanes - 1;
        return for_some([&](SearchStep& one) { one.lane = lane; },
                        lane < 0 ? "a stream for each peer" : "on transfer stream " + std::to_string(lane));
    }
    Text set_units() {
        constexpr std::array shares{1.0, 0.97, 0.94, 0.88, 0.75};
        const double share = one_of(random_, shares);
        const int units = share == 1 ? 0 : static_cast<int>(share * space_.compute_units);
        return for_some([&](SearchStep& one) { one.units = units; },
                        "GEMM on " + (units == 0 ? "all" : std::to_string(units)) + " compute units");
    }
    Text set_side() {
        if (below(random_, 3) == 0) {
            for (std::size_t i = 0; i < genome_.steps.size(); ++i) genome_.steps[i].side = i % 2 == 1;
            return "GEMMs on two streams in turn";
        }
        step().side = !step().side;
        return name(step()) + (step().side ? ": GEMM on a second stream" : ": GEMM on the first stream");
    }

    Genome& genome_;
    const SearchSpace& space_;
    std::mt19937_64& random_;
    std::size_t at_;
};

}  // namespace

bool SearchSpace::is_free(SearchDimension dimension) const {
    return contains(free, dimension);
}

std::int64_t SearchSpace::parts(const Genome& genome) const {
    return std::max<std::int64_t>(length_of(*this, genome.columns) / genome.unit, 1);
}

bool has_genomes(const Pair& pair) {
    const bool gathers =
        pair.collective == CollectiveKind::all_gather && pair.order == Order::collective_first;
    const bool reduces = (pair.collective == CollectiveKind::reduce_scatter ||
                          pair.collective == CollectiveKind::all_reduce) &&
                         pair.order == Order::gemm_first;
    return (gathers || reduces) && pair.shard_dim == ShardDim::m;
}

std::vector<Genome> start_genomes(const SearchSpace& space) {
    std::vector<Genome> all;
    const auto add = [&](bool columns, int chunks, bool fused, bool own_too, const SearchStep& like) {
        Genome genome{columns, unit_of(space, columns), {}};
        const std::int64_t parts = space.parts(genome);
        if (parts < chunks) return;
        const auto add_step = [&](int first, int last, int chunk, int of) {
            SearchStep step = like;
            step.first = first;
            step.last = last;
            step.from = part_start(parts, of, chunk);
            step.to = step.from + part_length(parts, of, chunk);
            genome.steps.push_back(step);
        };
        if (!own_too && space.gathers()) add_step(0, 0, 0, 1);
        for (int chunk = 0; chunk < chunks; ++chunk) {
            if (fused) add_step(own_too ? 0 : 1, space.ranks - 1, chunk, chunks);
            for (int d = own_too ? 0 : 1; d < space.ranks && !fused; ++d) add_step(d, d, chunk, chunks);
        }
        if (!own_too && !space.gathers()) add_step(0, 0, 0, 1);
        if (is_valid(genome, space) && !contains(all, genome)) all.push_back(std::move(genome));
    };
    for (const Agent agent : space.agents)
        for (const Direction direction : {Direction::pull, Direction::push})
            for (const int lane : {-1, 0})
                for (const bool columns : {false, true})
                    for (const int chunks : chunk_counts)
                        for (const bool fused : {false, true})
                            for (const bool own_too : {false, true}) {
                                SearchStep like{.agent = agent, .direction = direction, .lane = lane};
                                if (agent == Agent::cu) like.cus = space.cus;
                                add(columns, chunks, fused, own_too, like);
                            }
    return all;
}

std::optional<GenomeChange> mutate(Genome& genome, const SearchSpace& space, std::mt19937_64& random) {
    if (space.free.empty()) return std::nullopt;
    const SearchDimension dimension = one_of(random, space.free);
    if (auto text = Mutation(genome, space, random).apply(dimension))
        return GenomeChange{dimension, *std::move(text)};
    return std::nullopt;
}

bool is_valid(const Genome& genome, const SearchSpace& space) {
    if (genome.steps.size() > most_steps || !covers_all(genome, space)) return false;
    if (!genome.columns) return true;
    const int last = space.ranks - 1;
    const auto is_all = [&](const SearchStep& one) { return one.first == 0 && one.last == last; };
    const bool in_place = is_all(genome.steps.front());
    std::vector<bool> written(static_cast<std::size_t>(space.ranks));
    for (const SearchStep& step : genome.steps) {
        if (is_all(step) != in_place || step.side || (step.first == 0 && step.last > 0 && !in_place))
            return false;
        for (int d = step.first; d <= step.last && space.gathers(); ++d)
            if (written[static_cast<std::size_t>(d)] != written[static_cast<std::size_t>(step.first)])
                return false;
        std::fill(written.begin() + step.first, written.begin() + step.last + 1, true);
    }
    return true;
}

GemmShape gemm_of(const Genome& genome, const SearchStep& step, const SearchSpace& space, int rank) {
    const Pieces whole(space.pair, space.ranks, 1, CommShape::one_d);
    const std::int64_t parts = space.parts(genome);
    const auto length = [&](std::int64_t all) {
        const auto end = [&](std::int64_t part) {
            return part == parts ? all : std::min(part * genome.unit, all);
        };
        return end(step.to) - end(step.from);
    };
    GemmShape shape = space.pair.gemm;
    shape.m = 0;
    for (int d = step.first; d <= step.last; ++d) {
        const std::int64_t rows = whole.extent((rank + d) % space.ranks, -1).rows;
        shape.m += genome.columns ? rows : length(rows);
    }
    if (genome.columns) (space.gathers() ? shape.k : shape.n) = length(space.gathers() ? shape.k : shape.n);
    return shape;
}

std::string text_of(const Genome& genome, const SearchStep& step, const SearchSpace& space) {
    const std::int64_t parts = space.parts(genome);
    std::string text = step.last == 0 ? "own shard"
                       : step.first == step.last
                           ? "rank +" + std::to_string(step.first)
                           : (step.first == 0 ? "own and ranks +1" : "ranks +" + std::to_string(step.first)) +
                                 " to +" + std::to_string(step.last);
    if (step.to - step.from == parts) return text;
    return text + ", " + (genome.columns ? "columns " : "rows ") + number_text(step.from * genome.unit) +
           " to " + (step.to == parts ? "the end" : number_text(step.to * genome.unit - 1));
}

std::string how_of(const SearchStep& step) {
    std::vector<std::string> parts;
    if (step.last > 0) {
        parts.push_back(agent_names[static_cast<std::size_t>(step.agent)] + " " +
                        direction_names[static_cast<std::size_t>(step.direction)]);
        if (step.cus > 0)
            parts.push_back(std::to_string(step.cus) + " compute units" + (step.urgent ? " first" : ""));
        if (step.lane >= 0) parts.push_back("transfer stream " + std::to_string(step.lane));
    }
    if (step.side) parts.emplace_back("GEMM on the second stream");
    if (step.units > 0) parts.push_back("GEMM on " + std::to_string(step.units) + " compute units");
    return joined(parts, ", ");
}

}  // namespace overlap
