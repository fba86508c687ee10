#pragma once

#include <map>

#include "sim/transformer/pair_candidates.hpp"

namespace overlap {

/// From the start of an operator's first task on the first GPU that executes it to the end of its last one there.
struct Lasted {
    Seconds start{1e300}, end;

    void add(const Lasted& other) {
        start = std::min(start, other.start);
        end = std::max(end, other.end);
    }
    Seconds time() const { return std::max(end - start, Seconds()); }
};

/// A run of a list.
struct ListRun {
    Seconds makespan, exposed;
    std::vector<Lasted> operators;
};

/// Throws UserError.
ListRun run_list(const Scenario& scenario);

/// A choice for every pair of a list, and how long the list takes with these choices.
struct ListWay {
    std::vector<std::size_t> choices;  ///< by pair, of PairCandidates; 0 where a pair has no candidate
    bool concurrent = false;           ///< operators outside of pairs wait for their data only
    Seconds makespan;
};

/// Searches schedules for the pairs of a list with which the whole list is fastest.
class ListSearch {
public:
    /// `serial`: the list with nothing cut, `label`: its candidate's. `pairs`: with the choices that are best for
    /// them alone.
    ListSearch(Scenario serial, std::string label, std::vector<PairCandidates> pairs);

    /// Every operator whole. Each pair is run by its own fastest `serial`, with an agent of its own, where that makes
    /// the list faster.
    const ListWay& whole() const { return whole_; }
    bool own_serial() const { return own_serial_; }
    /// One candidate for every pair that it serves, the other pairs whole: the fastest such way, of one candidate of
    /// each choice (one_of_each_choice), that which is fastest alone for the first pair that has it.
    const ListWay& uniform() const { return uniform_; }
    const std::string& uniform_label() const { return uniform_label_; }

    /// Starts from the fastest of whole(), uniform() and every pair's best choice alone. Then each pair in turn takes
    /// the one of its first few choices with which the list is fastest, until no change of a single pair gains.
    const ListWay& best() const { return best_; }
    /// Makes whole() the best, where it is at the clocks of either way.
    void take_whole();
    /// The pairs, with the choices of best().
    const std::vector<PairCandidates>& pairs() const { return pairs_; }
    /// The fastest list with another choice for a pair, and that choice; none if there is no other.
    struct Other {
        std::size_t candidate;
        Seconds makespan;
    };
    const std::vector<std::optional<Other>>& others() const { return others_; }
    /// The list by such a way.
    Scenario scenario(const ListWay& way) const;

private:
    using Choices = std::vector<std::size_t>;
    Scenario scenario_of(const Choices& choices, bool concurrent) const;
    Choices choices() const;
    /// Ways with these choices, which are simulated side by side. A list that cannot run takes for ever: choices that
    /// run alone may deadlock beside one another.
    std::vector<ListWay> ways(const std::vector<Choices>& all, bool concurrent);
    ListWay way(const Choices& choices, bool concurrent) { return ways({choices}, concurrent).front(); }
    void choose_whole(PairCandidates& pair) const;
    /// Every operator whole, but for the pairs that have a candidate of that label.
    Choices whole_but(const std::string& label) const;
    /// What the pairs take alone by these choices, one after another.
    Seconds alone(const Choices& choices) const;
    /// Whether a list of many GPUs cannot be faster than whole(): one after another, its pairs alone are not.
    bool is_behind_whole(const Choices& choices) const;
    void find_whole();
    void find_uniform();
    void descend();
    /// Whether pair `index` has changed.
    bool improve(std::size_t index);
    /// Cutting a pair gains nothing where others hide it, as a pipeline's bubbles do.
    void leave_whole_if_hidden(std::size_t index);

    Scenario serial_;
    std::string label_, uniform_label_;
    std::vector<PairCandidates> pairs_;
    bool own_serial_ = false;
    ListWay whole_, uniform_, best_;
    std::vector<std::optional<Other>> others_;
    std::map<std::pair<bool, Choices>, Seconds> known_;  ///< makespans of ways that were simulated
};

}  // namespace overlap
