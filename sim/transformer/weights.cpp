#include "sim/transformer/weights.hpp"

namespace overlap {
namespace {

// Adam in mixed precision (arXiv 1910.02054, section 3.1): a weight in fp32 and the states are read and written, a gradient
// of 2 bytes read, a weight of 2 bytes written. On a shard of the weights gradients are fp32, and the next gather makes the
// 2-byte copy that computes.
constexpr Bytes gradient_size(2), master_size(4);

// Sharded weights, as PyTorch's fully_shard runs them (pytorch/pytorch 010ae4a torch/distributed/fsdp/_fully_shard/
// _fsdp_collectives.py):
// - foreach_all_gather casts the fp32 shards to the type of computation by one kernel, copies them into the buffer of the
//   all-gather by another; foreach_all_gather_copy_out copies the gathered weights out of it (split_with_sizes_copy) on
//   the stream that computes, before they are used.
// - foreach_reduce copies gradients into the buffer of the reduce-scatter (chunk_cat) on the stream that computes; the sum
//   is cast to fp32 behind it. They are reduced in the type in which they were computed (reduce_dtype's default).
class Weights {
public:
    Weights(const StepShape& step, const std::vector<HeldWeights>& held, OperatorList& list)
        : held_(held),
          list_(list),
          trains_(step.phase == Phase::training),
          type_(output_type(step.dtype)),
          states_(optimiser_states(step)) {}

    /// Gathers shards after `needs`; returns the gathers.
    std::vector<std::size_t> gather(const std::string& when, const std::vector<std::size_t>& needs) {
        std::vector<std::size_t> gathers;
        for (const HeldWeights& weights : shared()) {
            const std::string name = weights.prefix + when + "parameters_";
            const double shard = weights.count / weights.copies;
            std::vector<std::size_t> ready = needs;
            if (trains_ && size() < master_size)
                ready = {list_.add(name + "cast", StreamingWork{shard * master_size, shard * size()}, ready)};
            ready = {list_.add(name + "copy_in", StreamingWork{shard * size(), shard * size()}, ready)};
            gathers.push_back(list_.add(name + "gather", whole(CollectiveKind::all_gather, weights), ready));
        }
        return gathers;
    }

    /// Gathers the shares that each GPU's optimiser has updated in place.
    void gather_updated() {
        for (const HeldWeights& weights : shared())
            list_.add(weights.prefix + "parameters_gather", whole(CollectiveKind::all_gather, weights), {});
    }

    /// Copies out what was gathered, after the last operator.
    void copy_out(const std::string& when, const std::vector<std::size_t>& gathers) {
        std::size_t number = 0;
        for (const HeldWeights& weights : shared()) {
            std::vector<std::size_t> needs{gathers[number++]};
            if (needs.front() != list_.last()) needs.push_back(list_.last());
            list_.add(weights.prefix + when + "parameters_copy_out", passes(weights.count), needs);
        }
    }

    /// Copies gradients, which the last operator completes, into the buffer of a reduce-scatter.
    void copy_gradients_in() {
        for (const HeldWeights& weights : shared())
            list_.add(weights.prefix + "gradients_copy_in", passes(weights.count));
    }

    /// Sums gradients over the GPUs of a group, after `needs`.
    std::vector<std::size_t> reduce(CollectiveKind kind, const std::vector<std::size_t>& needs) {
        std::vector<std::size_t> sums;
        for (const HeldWeights& weights : shared()) {
            CollectiveWork sum = whole(kind, weights);
            if (kind == CollectiveKind::all_reduce) sum.operand = weights.count * gradient_size;
            sums.push_back(list_.add(weights.prefix + "gradient_reduce", sum, needs));
        }
        return sums;
    }

    /// `splits`: each GPU updates its share.
    void add_adam(bool splits) {
        double count = 0;
        for (const HeldWeights& weights : held_) count += weights.count / (splits ? weights.copies : 1);
        list_.add("adam",
                  StreamingWork{count * (states_ + gradient_size), count * (states_ + gradient_size)});
    }

    void add_shard_adam(const std::vector<std::size_t>& sums) {
        double count = 0;
        std::vector<std::size_t> needs = sums;
        std::size_t number = 0;
        for (const HeldWeights& weights : held_) count += weights.count / weights.copies;
        for (const HeldWeights& weights : shared()) {
            const double shard = weights.count / weights.copies;
            std::size_t& sum = needs[number++];
            if (size() < master_size)
                sum = list_.add(weights.prefix + "gradients_cast",
                                StreamingWork{shard * size(), shard * master_size}, {sum, list_.last()});
        }
        if (needs.empty()) needs = {list_.last()};
        list_.add("adam", StreamingWork{count * (states_ + master_size), count * states_}, needs);
    }

private:
    /// The weights that several GPUs hold.
    std::vector<HeldWeights> shared() const {
        std::vector<HeldWeights> result;
        for (const HeldWeights& weights : held_)
            if (weights.copies > 1 && weights.count > 0) result.push_back(weights);
        return result;
    }
    Bytes size() const { return element_size(type_); }
    StreamingWork passes(double count) const { return {count * size(), count * size()}; }
    CollectiveWork whole(CollectiveKind kind, const HeldWeights& weights) const {
        return {kind, weights.count * size(), type_, weights.group};
    }

    const std::vector<HeldWeights>& held_;
    OperatorList& list_;
    bool trains_;
    DType type_;    ///< of gathered weights and reduced gradients
    Bytes states_;  ///< of a weight
};

void add_all(const std::vector<Operator>& operators, OperatorList& list, const std::string& again = "") {
    const std::size_t offset = list.operators().size();
    for (const Operator& op : operators) {
        std::vector<std::size_t> needs = op.needs;
        for (std::size_t& need : needs) need += offset;
        list.add(op.name + again, op.work, needs);
    }
}

/// Places of operators of a list, from the first one to before the second.
using Places = std::pair<std::size_t, std::size_t>;

/// Two parts of a list that need nothing of each other in turns, each as far as its next all-to-all, so that this is
/// beside the other part's computation. What is between the parts comes before them.
std::vector<Operator> in_turns(std::vector<Operator> operators, Places one, Places other) {
    std::vector<std::size_t> order;
    const auto add = [&](Places range) {
        for (std::size_t op = range.first; op < range.second; ++op) order.push_back(op);
    };
    const auto add_turn = [&](Places& left) {
        const std::size_t from = left.first;
        while (left.first < left.second) {
            const auto* sent = std::get_if<CollectiveWork>(&operators[left.first++].work);
            if (sent != nullptr && sent->kind == CollectiveKind::all_to_all) break;
        }
        add({from, left.first});
    };
    add({0, one.first});
    add({one.second, other.first});
    const std::size_t behind = other.second;
    while (one.first < one.second || other.first < other.second) {
        add_turn(one);
        add_turn(other);
    }
    add({behind, operators.size()});
    std::vector<std::size_t> places(operators.size());
    std::vector<Operator> all;
    for (const std::size_t op : order) {
        places[op] = all.size();
        all.push_back(std::move(operators[op]));
        for (std::size_t& need : all.back().needs) need = places[need];
    }
    return all;
}

/// What a list does for a whole batch, or for one half after the other.
class HalfBatches {
public:
    HalfBatches(bool two, OperatorList& list) : count_(two ? 2 : 1), list_(list) {}

    /// Adds operators for each.
    template <class Add>
    void for_each(Add&& add) {
        lasts_.clear();
        for (std::size_t batch = 0; batch < count_; ++batch) {
            const std::size_t first = list_.operators().size();
            add(batch);
            lasts_.push_back(list_.last());
            ranges_.push_back({first, list_.operators().size()});
        }
    }
    /// The last of each that were added last.
    const std::vector<std::size_t>& lasts() const { return lasts_; }
    /// The list, with halves in turns, whose names tell them apart; or with `separate` first and last operators of a
    /// whole batch in turns.
    std::vector<Operator> take(bool separate) && {
        for (std::size_t i = 0; count_ > 1 && i < ranges_.size(); ++i)
            list_.add_prefix(i % count_ == 0 ? "a_" : "b_", ranges_[i].first, ranges_[i].second);
        std::vector<Operator> all = std::move(list_).take();
        for (std::size_t i = 0; count_ > 1 && i < ranges_.size(); i += 2)
            all = in_turns(std::move(all), ranges_[i], ranges_[i + 1]);
        return count_ == 1 && separate ? in_turns(std::move(all), ranges_.front(), ranges_.back()) : all;
    }

private:
    std::size_t count_;
    OperatorList& list_;
    std::vector<std::size_t> lasts_;
    std::vector<Places> ranges_;
};

}  // namespace

std::vector<Operator> with_weights(const StepShape& step, std::vector<Operator> forward,
                                   const std::vector<HeldWeights>& weights, WeightsOf whose) {
    OperatorList list(step);
    Weights held(step, weights, list);
    const bool sharded = step.spread.sharded, of_neighbour = whose == WeightsOf::neighbour;
    const bool trains = step.phase == Phase::training, splits = step.spread.zero != Zero::none;
    std::vector<std::size_t> gathers;
    if (sharded) gathers = held.gather("", {});
    if (trains && splits && !step.training.accumulates) held.gather_updated();
    if (sharded && !of_neighbour) held.copy_out("", gathers);
    HalfBatches batches(step.two_batches, list);
    const std::size_t first = list.operators().size();
    batches.for_each([&](std::size_t) { add_all(forward, list); });
    if (first > 0 && !of_neighbour) list.require(first, first - 1);
    const std::size_t end = list.operators().size(), each = forward.size();
    const std::vector<std::size_t> lasts = batches.lasts();
    if (sharded && of_neighbour) held.copy_out("", gathers);
    if (!trains) return std::move(batches).take(false);

    std::vector<std::size_t> sums;
    if (sharded && of_neighbour) {
        sums = held.reduce(CollectiveKind::reduce_scatter, lasts);
        gathers = held.gather("backward_", lasts);
    } else if (!sharded && (!step.training.accumulates || step.spread.zero == Zero::gradients)) {
        held.reduce(splits ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, lasts);
    }
    std::vector<std::size_t> after = lasts;
    if (step.training.recompute == Recompute::full && of_neighbour) {
        batches.for_each([&](std::size_t) {
            const std::size_t again = list.operators().size();
            add_all(forward, list, "_again");
            for (const std::size_t last : lasts) list.require(again, last);
        });
        after = batches.lasts();
    }
    batches.for_each([&](std::size_t batch) {
        const std::size_t begin = list.operators().size(), from = first + batch * each;
        list = with_backward(step, std::move(list), from, from + each, after[batch]);
        for (const std::size_t last : lasts)
            if (last != lasts[batch]) list.require(begin, last);
    });
    const std::size_t behind = list.operators().size();
    if (sharded) held.copy_gradients_in();
    if (sharded && of_neighbour) held.copy_out("backward_", gathers);
    if (sharded && !of_neighbour) sums = held.reduce(CollectiveKind::reduce_scatter, {list.last()});
    if (step.training.two_micro_batches) list.separate(first, end);
    if (!step.training.accumulates && sharded) held.add_shard_adam(sums);
    if (!step.training.accumulates && !sharded) held.add_adam(splits);
    for (const std::size_t last : batches.lasts())
        if (behind < list.operators().size() && last + 1 < behind) list.require(behind, last);
    return std::move(batches).take(step.training.two_micro_batches);
}

}  // namespace overlap
