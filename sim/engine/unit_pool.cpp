#include "sim/engine/unit_pool.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "sim/core/mixed.hpp"

namespace overlap {
namespace {

/// Number of compute units for `waiting` thread blocks of a kernel that had to wait.
int crowded_units(const Blocks& blocks, int waiting) {
    return (waiting + blocks.together - 1) / blocks.together;
}

}  // namespace

UnitPools::UnitPools(const TaskGraph& graph, CostView costs, const ResourceTable& resources)
    : costs_(costs), by_data_(graph.runs_by_data()) {
    constexpr std::uint32_t none = UINT32_MAX;
    struct Line {
        std::uint32_t pool = none;
        bool as_enqueued = false;
    };
    std::vector<Line> lines(costs.classes().size());  // by class
    std::vector<std::uint32_t> pool_by_resource(resources.pools(), none);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Cost& cost = costs.classes()[i];
        if (!cost.claim) continue;
        const Claim& claim = *cost.claim;
        assert(claim.least >= 1 && claim.least <= claim.most);
        [[maybe_unused]] const auto* tail = claimed<Tail>(cost);
        assert(tail == nullptr || (tail->from > 0 && tail->from < 1 && tail->units >= 1));
        assert(claim.least <= resources[claim.resource].units);
        std::uint32_t& pool = pool_by_resource[resources.pool(claim.resource)];
        if (pool == none) {
            pool = static_cast<std::uint32_t>(pools_.size());
            Pool& added = pools_.emplace_back();
            added.units = added.free = resources[claim.resource].units;
            added.order = resources[claim.resource].order;
        }
        pools_[pool].one_each = pools_[pool].one_each && claim.most == 1 && claim.parts.index() == 0 &&
                                claim.yields_after == Seconds();
        lines[i] = {pool, claim.as_enqueued};
    }
    if (pools_.empty()) return;
    places_.resize(graph.size());
    // Of several nodes, tasks in one place of the order of alike GPUs have one draw, so that nodes stay alike.
    std::vector<std::uint64_t> of_gpu(static_cast<std::size_t>(graph.gpus()));
    for (TaskId id = 0; id < graph.size(); ++id) {
        const auto [pool, as_enqueued] = lines[costs.class_of(id)];
        if (pool == none) continue;
        std::uint64_t draw = id;
        if (resources.draws_by_node() && pools_[pool].order == QueueOrder::unspecified) {
            const int gpu = graph[id].gpu;
            draw = of_gpu[static_cast<std::size_t>(gpu)]++ *
                       static_cast<std::uint64_t>(resources.gpus_per_node()) +
                   static_cast<std::uint64_t>(gpu % resources.gpus_per_node());
        }
        places_[id] = {.priority = graph[id].priority,
                       .stream = static_cast<std::uint32_t>(graph.stream_number(id)),
                       .pool = pool,
                       .as_enqueued = as_enqueued,
                       .draw = draw};
        if (as_enqueued) pools_[pool].enqueued.push_back(static_cast<std::uint32_t>(id));
    }
}

void UnitPools::begin(std::uint64_t seed, Progress progress, Clock now) {
    seed_ = mixed(seed);
    progress_ = std::move(progress);
    now_ = std::move(now);
}

UnitPools::Pool& UnitPools::pool_of(TaskId task) {
    const std::uint32_t number = places_[task].pool;
    if (!std::exchange(pools_[number].touched, true)) touched_.push_back(number);
    return pools_[number];
}

const UnitPools::Pool& UnitPools::pool_of(TaskId task) const {
    return pools_[places_[task].pool];
}

void UnitPools::request(TaskId task) {
    requests_.push_back(task);
}

template <class AnyPool>
auto UnitPools::holder_of(AnyPool& pool, TaskId task) {
    const auto holder = std::find_if(pool.holders.begin(), pool.holders.end(),
                                     [&](const Holder& h) { return h.task == task; });
    assert(holder != pool.holders.end());
    return holder;
}

void UnitPools::release(TaskId task) {
    Pool& pool = pool_of(task);
    if (pool.one_each) {
        ++pool.free;
        return;
    }
    const auto holder = holder_of(pool, task);
    move_units(pool, *holder, -holder->given);
    pool.holders.erase(holder);
}

void UnitPools::count(Holder& holder) {
    if (claimed<Blocks>(costs_[holder.task]) == nullptr) return;
    const Seconds now = now_();
    places_[holder.task].had += holder.given * (now - holder.since).si();
    holder.since = now;
}

void UnitPools::move_units(Pool& pool, Holder& holder, int units) {
    count(holder);
    holder.given += units;
    pool.free -= units;
}

void UnitPools::keep(TaskId task, int units) {
    Pool& pool = pool_of(task);
    Holder& holder = *holder_of(pool, task);
    holder.most = units;
    move_units(pool, holder, std::min(units - holder.given, 0));
}

const UnitPools::Holder& UnitPools::holder_of(TaskId task) const {
    return *holder_of(pool_of(task), task);
}

double UnitPools::next_step(TaskId task) const {
    const Holder& holder = holder_of(task);
    const auto* tiles = claimed<Tiles>(costs_[task]);
    return tiles != nullptr ? holder.waves.next() / tiles->waves : holder.blocks.next();
}

bool UnitPools::ends_next_step(TaskId task) const {
    const Holder& holder = holder_of(task);
    return claimed<Tiles>(costs_[task]) != nullptr ? holder.waves.ends_next() : holder.blocks.ends_next();
}

bool UnitPools::go_on(TaskId task) {
    Pool& pool = pool_of(task);
    Holder& holder = *holder_of(pool, task);
    const bool tiles = claimed<Tiles>(costs_[task]) != nullptr;
    move_units(pool, holder, -(tiles ? holder.waves.go_on() : holder.blocks.go_on()));
    return tiles ? !holder.waves.waits() : !holder.blocks.waits();
}

double UnitPools::stretch(TaskId task) const {
    const Cost& cost = costs_[task];
    const Blocks& blocks = std::get<Blocks>(cost.claim->parts);
    const Pool& pool = pool_of(task);
    const double pace = holder_of(task).blocks.pace() * (pool.tiles ? blocks.beside_tiles : 1.0) *
                        (pool.sum ? blocks.beside_streaming : 1.0);
    return std::max(1.0, blocks.unit / pace / cost.body);
}

void UnitPools::settle(std::vector<TaskId>& served, std::vector<TaskId>& resumed) {
    if (!std::is_sorted(requests_.begin(), requests_.end())) std::sort(requests_.begin(), requests_.end());
    for (const TaskId task : requests_) {
        Pool& pool = pool_of(task);
        std::uint64_t rank = pool.arrivals++;
        const Place& place = places_[task];
        if (pool.order == QueueOrder::unspecified && !(by_data_ && place.as_enqueued))
            rank = mixed(seed_ ^ mixed(place.draw));
        if (pool.order == QueueOrder::round_robin) rank = place.stream;
        pool.waiting.push_back({static_cast<std::uint32_t>(task), place.stream, place.priority,
                                place.as_enqueued, rank, pool.settled});
    }
    requests_.clear();
    for (const std::uint32_t number : touched_) {
        pools_[number].touched = false;
        settle(pools_[number], served, resumed);
        ++pools_[number].settled;
    }
    touched_.clear();
}

void UnitPools::settle(Pool& pool, std::vector<TaskId>& served, std::vector<TaskId>& resumed) {
    while (!pool.waiting.empty()) {
        if (pool.one_each && pool.free == 0) return;
        const std::size_t next = next_waiter(pool);
        if (!is_in_turn(pool, pool.waiting[next])) break;
        const Waiter waiter = pool.waiting[next];
        if (pool.one_each) {
            --pool.free;
        } else {
            grow_holders(pool, waiter.priority, resumed);
            if (lacks_pairs(pool, waiter.priority)) return update_pace(pool, resumed);
            const int within_reach = pool.free + reclaimable(pool, waiter.priority);
            if (within_reach < costs_[waiter.task].claim->least) return update_pace(pool, resumed);
            give(pool, waiter, within_reach);
        }
        leave_line(pool, waiter);
        pool.waiting.erase(pool.waiting.begin() + static_cast<std::ptrdiff_t>(next));
        served.push_back(waiter.task);
    }
    if (pool.one_each) return;
    grow_holders(pool, INT32_MIN, resumed);
    update_pace(pool, resumed);
}

// Thread blocks change their rate when the first GEMM or sum begins beside them and when the last one ends.
void UnitPools::update_pace(Pool& pool, std::vector<TaskId>& resumed) {
    bool tiles = false, sum = false;
    for (const Holder& holder : pool.holders) {
        const auto* blocks = claimed<Blocks>(costs_[holder.task]);
        tiles = tiles || claimed<Tiles>(costs_[holder.task]) != nullptr;
        sum = sum || (blocks != nullptr && blocks->streaming);
    }
    if (pool.tiles == tiles && pool.sum == sum) return;
    pool.tiles = tiles;
    pool.sum = sum;
    for (const Holder& holder : pool.holders)
        if (claimed<Blocks>(costs_[holder.task]) != nullptr) resumed.push_back(holder.task);
}

bool UnitPools::lacks_pairs(const Pool& pool, int priority) const {
    return std::any_of(pool.holders.begin(), pool.holders.end(), [&](const Holder& holder) {
        const auto* tiles = claimed<Tiles>(costs_[holder.task]);
        return tiles != nullptr && tiles->cluster > 1 && holder.priority >= priority &&
               holder.waves.wanted() > 0;
    });
}

int UnitPools::single_units(const Pool& pool) {
    int single = 0;
    for (const Holder& holder : pool.holders) single += holder.single;
    return std::clamp(single, 0, pool.free);
}

int UnitPools::lost_to_clusters(const Pool& pool, const Tiles* tiles) {
    return tiles == nullptr || tiles->cluster == 1 ? 0 : single_units(pool);
}

// Thread blocks that find free units take one of each free pair, then the other ones.
int UnitPools::singled_by(const Pool& pool, const Blocks& blocks, int given) {
    const int single = single_units(pool);
    const int two_by_two = single == 0 ? std::min(blocks.paired, given) : 0;
    const int pairs = (pool.free - single - two_by_two) / 2, others = given - two_by_two;
    return others <= pairs ? others : 2 * pairs - others;
}

void UnitPools::give(Pool& pool, const Waiter& waiter, int within_reach) {
    const Claim& claim = *costs_[waiter.task].claim;
    const auto* blocks = std::get_if<Blocks>(&claim.parts);
    const bool had_to_wait = waiter.since != pool.settled;
    const auto* tiles = std::get_if<Tiles>(&claim.parts);
    const int wanted = blocks != nullptr && had_to_wait ? crowded_units(*blocks, blocks->count) : claim.most;
    const int given = std::min(wanted, std::max(within_reach - lost_to_clusters(pool, tiles), 1));
    reclaim(pool, waiter.priority, std::max(given - pool.free, 0));
    const int single =
        blocks != nullptr && !had_to_wait && !blocks->streaming ? singled_by(pool, *blocks, given) : 0;
    pool.free -= given;
    Holder& holder = pool.holders.emplace_back(Holder{waiter.task, waiter.priority, given, claim.most});
    if (tiles != nullptr) {
        holder.waves = TileWaves(tiles->count, tiles->waves, claim.most, given);
        pool.cache_left = tiles->cache_left;
    }
    if (blocks != nullptr) {
        holder.blocks = ThreadBlocks(blocks->count, blocks->to_the_end);
        holder.since = now_();
        holder.single = single;
        place_blocks(pool, holder, given, had_to_wait);
    }
}

void UnitPools::leave_line(Pool& pool, const Waiter& waiter) {
    if (waiter.as_enqueued) ++pool.next_enqueued;
    places_[waiter.task].switched = waiter.since != pool.settled && pool.last_stream != waiter.stream;
    pool.last_stream = waiter.stream;
}

void UnitPools::place_blocks(const Pool& pool, Holder& holder, int units, bool had_to_wait) {
    const Blocks& blocks = *claimed<Blocks>(costs_[holder.task]);
    const int placed = std::min(holder.blocks.waiting(), blocks.together * units);
    const bool short_of_cache = had_to_wait && pool.cache_left > Bytes() && blocks.in_flight > Bytes();
    const double pace = short_of_cache ? std::min(pool.cache_left / blocks.in_flight, 1.0) : 1.0;
    holder.blocks.place(units, placed, progress_(holder.task), pace);
}

bool UnitPools::is_in_turn(const Pool& pool, const Waiter& waiter) const {
    return by_data_ || !waiter.as_enqueued || pool.enqueued[pool.next_enqueued] == waiter.task;
}

std::size_t UnitPools::next_waiter(const Pool& pool) const {
    if (pool.waiting.size() == 1) return 0;
    const auto place_in_line = [&](const Waiter& waiter) {
        const bool turns_away = pool.order == QueueOrder::unspecified && !(by_data_ && waiter.as_enqueued) &&
                                waiter.stream != pool.last_stream;
        const std::uint64_t turn =
            pool.order == QueueOrder::round_robin ? waiter.rank - pool.last_stream - 1 : waiter.rank;
        return std::tuple(!is_in_turn(pool, waiter), -waiter.priority, turns_away, turn, waiter.task);
    };
    std::size_t first = 0;
    auto of_first = place_in_line(pool.waiting[0]);
    for (std::size_t i = 1; i < pool.waiting.size(); ++i) {
        const auto place = place_in_line(pool.waiting[i]);
        if (!(place < of_first)) continue;
        first = i;
        of_first = place;
    }
    return first;
}

// Tasks of at least this priority that hold units take the free units that they can use: their thread blocks
// were queued before those of waiting tasks.
void UnitPools::grow_holders(Pool& pool, int at_least, std::vector<TaskId>& resumed) {
    for (Holder& holder : pool.holders) {
        if (pool.free == 0) return;
        if (holder.priority < at_least) continue;
        const auto* tiles = claimed<Tiles>(costs_[holder.task]);
        const auto* blocks = claimed<Blocks>(costs_[holder.task]);
        const int wanted = tiles != nullptr    ? holder.waves.wanted()
                           : blocks != nullptr ? crowded_units(*blocks, holder.blocks.waiting())
                                               : holder.most - holder.given;
        const int more = std::min(wanted, pool.free - lost_to_clusters(pool, tiles));
        if (more <= 0) continue;
        move_units(pool, holder, more);
        if (blocks != nullptr || (tiles != nullptr && holder.waves.waits())) resumed.push_back(holder.task);
        if (tiles != nullptr) holder.waves.join(more, progress_(holder.task) * tiles->waves);
        if (blocks != nullptr) place_blocks(pool, holder, more, true);
    }
}

Seconds UnitPools::late_ranks(TaskId task) const {
    Seconds longest;
    for (const Holder& holder : pool_of(task).holders)
        if (holder.priority < places_[task].priority)
            longest = std::max(longest, costs_[holder.task].claim->yields_after);
    return longest;
}

// Each task that holds units keeps at least one.
int UnitPools::reclaimable(const Pool& pool, int priority) const {
    int units = 0;
    for (const Holder& holder : pool.holders)
        if (holder.priority < priority && costs_[holder.task].claim->yields) units += holder.given - 1;
    return units;
}

void UnitPools::reclaim(Pool& pool, int priority, int units) {
    for (Holder& holder : pool.holders) {
        if (holder.priority >= priority || !costs_[holder.task].claim->yields) continue;
        const int taken = std::min(units, holder.given - 1);
        move_units(pool, holder, -taken);
        units -= taken;
    }
}

}  // namespace overlap
