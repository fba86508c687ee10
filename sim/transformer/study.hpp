#pragma once

#include <functional>

#include "sim/advise/advise.hpp"
#include "sim/run/resolver.hpp"
#include "sim/transformer/layer.hpp"
#include "sim/transformer/pipeline_times.hpp"

namespace overlap {

/// One operator of a list, or a pair: how long it takes on GPU 0, from its first task's start to its last one's end.
/// Operators may run at the same time.
struct OperatorStudy {
    std::string name;  ///< of a pair "gather > qkv"
    bool is_pair = false;
    Seconds whole, cut;             ///< without overlap, and with
    std::optional<Candidate> best;  ///< of a pair
    std::optional<Candidate>
        own_serial;          ///< of a pair that is whole by a `serial` of its own (ListStudy::own_serial)
    double gain = 0;         ///< of a pair alone: time by the fastest `serial` over that of the best, minus 1
    std::string decided_by;  ///< the loss in which the best and the next choice differ most; may be empty
    Seconds difference;      ///< of these losses
    std::optional<Candidate> next;  ///< of a pair: the other choice with which the list is fastest
    double margin = 0;              ///< by which the list takes longer with `next`, ≥ 0
    bool own_kernel() const { return best && best->own_kernel(); }
    /// The best candidate's label, with a mark if it needs a kernel of one's own; empty without one.
    std::string label() const {
        return best ? best->label() + (best->own_kernel() ? " (own kernel)" : "") : "";
    }
};

/// Times without overlap and with it, of all and of communication that is exposed.
struct StudyTimes {
    Seconds whole, cut, exposed_whole, exposed_cut;
};

/// A layer, or what is around the layers. Times are those of one list.
struct ListStudy : StudyTimes {
    std::string name;
    std::int64_t count = 1;  ///< of such lists in the model
    Workload workload;
    std::vector<OperatorStudy> operators;
    std::string serial;       ///< the `serial` that `whole` is: "serial/-/dma/pull", ...
    bool own_serial = false;  ///< in `whole` each pair runs by the `serial` that is fastest for it alone
    bool concurrent = false;  ///< with overlap, operators outside of pairs wait for their data only
    /// Of an iteration: what it takes longer without overlap in this list, the rest of which bubbles hide
    std::optional<Seconds> gained_of_iteration;
    std::string uniform_label;    ///< the one candidate for all pairs with which the list is fastest
    Seconds uniform;              ///< the list's time with it
    std::optional<Scenario> run;  ///< the list with overlap; never none in a result
    std::optional<SteadyState> steady_whole, steady_cut;  ///< of lists that follow one another
};

/// An iteration in micro-batches: what its times are made of, without overlap and with it.
struct PipelineStudy {
    PipelineTimes whole, cut;
    Seconds send;                           ///< of one micro-batch to the next stage
    StageTimes slowest_whole, slowest_cut;  ///< virtual stage
};

/// One step: all layers, one behind the other, and what is around them.
struct StepStudy : StudyTimes {
    StepShape shape;  ///< 0 tokens: of an operator list that is no model's
    std::vector<ListStudy> lists;
    std::optional<PipelineStudy> pipeline;     ///< none: one pass of all tokens through all layers
    std::optional<double> mfu_whole, mfu_cut;  ///< model_flops over time, GPUs and peak; none without a peak
    /// With own kernels allowed: the time with overlap by library kernels only.
    std::optional<Seconds> cut_by_library;
    std::optional<StudyTimes> one_batch;                   ///< of StepShape::two_batches: the step without it
    std::vector<std::pair<std::int16_t, Seconds>> by_sms;  ///< of StepShape::best_sms: with overlap, by SMs
    double tokens_per_second(Seconds time) const { return gained_tokens(shape) / time.si(); }
};

/// For which clock GEMMs are priced.
enum class StepClock {
    /// A list runs once on cool GPUs.
    alone,
    /// A step does: the clock falls with the duration of all its GEMMs (Machine::sustained).
    step,
    /// Lists of a kind follow one another until it has settled at the power limit (sim/run/steady.hpp).
    settled
};

struct StudyOptions {
    RunConfig run;  ///< machine, seeds and host of all runs
    AllowedCandidates allowed = {};
    bool all_candidates = false;
    StepClock clock = StepClock::alone;
    std::function<void()> done = nullptr;  ///< called after each of the parts_of a study
};

/// The lists of a pass, of which only names, counts and operators are given: layers of each kind, and the head.
std::vector<ListStudy> lists_of(const Model& model, const StepShape& step);
/// Such lists simulated, as study() does.
std::vector<ListStudy> simulated(std::vector<ListStudy> lists, const StudyOptions& options,
                                 Resolver& resolver);

/// Lists and pairs of a step.
std::size_t parts_of(const Model& model, const StepShape& step);

/// study() of step_study.hpp of an operator list, such as a training iteration of another kind of model. Its step has no
/// tokens and no MFU. Throws UserError, also for a pair instead of a list.
StepStudy study(const Workload& list, const StudyOptions& options, Resolver& resolver);

}  // namespace overlap
