#include "sim/importers/recognise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/recorded_list.hpp"
#include "sim/importers/told_apart.hpp"

namespace overlap {
namespace {

using Ran = const RecordedSpan*;

double us_of(Ran span) {
    return static_cast<double>(span->end_ns - span->start_ns) * 1e-3;
}

/// What one GPU ran, by start.
class Recogniser {
public:
    Recogniser(const std::vector<RecordedSpan>& iteration, const RecogniseOptions& options)
        : iteration_(iteration), given_(options.gemm), guess_(options.guess), has_price_(options.has_price) {
        std::set<std::int64_t> gpus;
        for (const RecordedSpan& span : iteration) gpus.insert(span.gpu);
        ranks_ = std::max<std::int64_t>(options.ranks, static_cast<std::int64_t>(gpus.size()));
        for (const RecordedSpan& span : iteration)
            if (span.gpu == *gpus.begin()) spans_.push_back(&span);
        std::ranges::stable_sort(spans_, {}, &RecordedSpan::start_ns);
        for (const Ran span : spans_) {
            of_[span->kind].push_back(span);
            if (span->with_host) continue;
            if (span->kind == TaskKind::memory_bound && !span->waits) others_us_ += us_of(span);
            total_us_ += us_of(span);
        }
    }

    Recognised recognise() {
        const std::size_t gemms = of_[TaskKind::gemm].size(), collectives = of_[TaskKind::collective].size(),
                          copies = of_[TaskKind::copy].size();
        // A pair may have small kernels beside it, such as the memsets of split-K GEMMs.
        const bool alone = others_us_ <= 0.02 * total_us_ && ranks_ > 1;
        if (copies > 0 && collectives == 0 && alone && is_of_shards(gemms, copies))
            return async_tp(static_cast<std::int64_t>(gemms));
        if (gemms == 1 && collectives == 1 && copies == 0 && alone) return library_pair();
        return list();
    }

private:
    /// A GEMM for each rank of a group, and so many copies less one.
    bool is_of_shards(std::size_t gemms, std::size_t copies) const {
        const auto ranks = static_cast<std::size_t>(ranks_);
        return gemms == ranks || (gemms > 1 && copies == gemms - 1 && ranks % gemms == 0);
    }

    /// Shape of a pair's GEMM over the rows of all ranks; `rows`: that of one recorded GEMM times this.
    std::optional<GemmShape> pair_shape(Ran gemm, std::int64_t rows, const ShapeHint& hint) {
        std::optional<GemmShape> shape = gemm_of(*gemm);
        if (shape) {
            shape->m *= rows;
            notes_.push_back("GEMM " + shape_name(*shape) + " " + name_of(shape->dtype) +
                             " by the shapes of " + gemm->launch.by->name);
        } else if (given_) {
            shape = given_;
            notes_.push_back("GEMM " + shape_name(*shape) +
                             " as given by --gemm: the trace has no shapes (record_shapes=True)");
        } else if (guess_ && hint.operand > 0) {
            shape = guess_(hint);
            if (shape)
                notes_.push_back(
                    "GEMM " + shape_name(*shape) + " " + name_of(shape->dtype) +
                    " guessed: " + std::to_string(hint.operand) + " elements that move are " +
                    (hint.of_a ? "M x K, N" : "M x N, K") +
                    " by the GEMM's time, and how they divide is not known: better record_shapes=True, or --gemm "
                    "MxNxK");
        }
        return shape;
    }

    static constexpr const char* no_shape =
        "the GEMM's shape is not in the trace: record with record_shapes=True, or give --gemm MxNxK";

    Recognised library_pair() {
        const Ran gemm = of_[TaskKind::gemm].front(), sends = of_[TaskKind::collective].front();
        const std::string kind = collective_of(*sends);
        if (kind.empty())
            return {
                .why_not =
                    "the collective of kernel " + sends->name +
                    " is not known (all_gather, reduce_scatter, all_reduce or all_to_all): give --collective NAME"};
        const std::int64_t ranks =
            sends->collective && sends->collective->ranks > 1 ? sends->collective->ranks : ranks_;
        if (ranks > ranks_ || ranks_ % ranks != 0)
            return {.why_not = "the collective is of " + std::to_string(ranks) +
                               " ranks, but the trace has " + std::to_string(ranks_)};
        const bool first = sends->start_ns < gemm->start_ns;
        ShapeHint hint{.of_a = first && kind == "all_gather", .time = microseconds(us_of(gemm))};
        if (sends->collective) {
            hint.operand =
                kind == "all_gather" ? sends->collective->out_elements : sends->collective->in_elements;
            if (const std::string type = dtype_of(*sends->collective); !type.empty())
                hint.dtype = static_cast<DType>(place_of(dtype_names, type));
        }
        const std::optional<GemmShape> shape = pair_shape(gemm, 1, hint);
        if (!shape) return {.why_not = no_shape};
        const Ran before = first ? sends : gemm, after = first ? gemm : sends;
        const bool beside = after->start_ns < before->end_ns - (before->end_ns - before->start_ns) / 10;
        const std::string order = beside ? "independent" : first ? "collective_first" : "gemm_first";
        Recognised result;
        result.what = beside  ? kind + " by a library's kernel beside a GEMM"
                      : first ? kind + " by a library's kernel, then a GEMM"
                              : "a GEMM, then " + kind + " by a library's kernel";
        result.config = {{"schedule", beside ? "concurrent" : "serial"},
                         {"params", {{"algorithm", "library"}}},
                         {"workload", {{"collective", kind}, {"order", order}, {"gemm", gemm_json(*shape)}}}};
        check_size(sends, kind, *shape, order != "gemm_first");
        result.notes = notes_;
        result.gpus = ranks;
        return result;
    }

    /// The operand that the pair would send against the one that was sent.
    void check_size(Ran sends, const std::string& kind, const GemmShape& shape, bool sends_a) {
        if (!sends->collective) return;
        const std::int64_t seen =
            kind == "all_gather" ? sends->collective->out_elements : sends->collective->in_elements;
        const double expected = static_cast<double>(shape.m) *
                                static_cast<double>(sends_a && kind == "all_gather" ? shape.k : shape.n);
        if (seen > 0 && std::abs(static_cast<double>(seen) / expected - 1) > 0.01)
            notes_.push_back("doubtful: the collective has " + std::to_string(seen) +
                             " elements, the GEMM's operand " + std::to_string(std::llround(expected)));
    }

    static std::size_t most_at_once(const std::vector<Ran>& spans) {
        std::size_t most = 0;
        for (const Ran one : spans)
            most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(spans, [&](Ran other) {
                                return other->start_ns <= one->start_ns && one->start_ns < other->end_ns;
                            })));
        return most;
    }

    Recognised async_tp(std::int64_t ranks) {
        const auto &gemms = of_[TaskKind::gemm], &copies = of_[TaskKind::copy];
        // Only an operator of PyTorch tells async_tp from other schedules with the same kernels and copies.
        if (gemms.front()->launch.by == nullptr)
            return {
                .why_not =
                    "a GEMM for each rank and copies between GPUs are of async_tp, shard_direct, shard_p2p or "
                    "another schedule of shards, and the trace names no operators that would tell: give --scenario"};
        // It has one copy at a time on each of two streams; others push to all peers, or pull from them, at once.
        constexpr std::size_t streams = 2;
        if (most_at_once(copies) > streams)
            return {
                .why_not =
                    "copies between " + std::to_string(most_at_once(copies)) +
                    " pairs of GPUs at once are not of async_tp, but of shard_direct or another schedule of shards: "
                    "give --scenario"};
        const auto first_gemm_end = gemms.front()->end_ns;
        const bool gathers = copies.front()->start_ns < first_gemm_end;
        // Each rank's part of the operand moves by one copy.
        // The GEMMs of two streams overlap, so that the shortest took most nearly what it takes alone.
        const double shortest = us_of(*std::ranges::min_element(gemms, {}, us_of));
        ShapeHint hint{.of_a = gathers, .parts = ranks, .time = microseconds(shortest)};
        hint.operand =
            std::llround(copies.front()->bytes * static_cast<double>(ranks) / element_size(hint.dtype).si());
        const std::optional<GemmShape> shape =
            pair_shape(gemms.front(), gemm_of(*gemms.front()) ? ranks : 1, hint);
        if (!shape) return {.why_not = no_shape};
        Recognised result;
        result.what = std::string("async_tp (PyTorch's symmetric memory), ") +
                      (gathers ? "all_gather, then a GEMM" : "a GEMM, then reduce_scatter");
        Json params = Json::object();
        if (gathers && of_[TaskKind::local_copy].size() < 2) params["scatter"] = false;
        result.config = {{"schedule", "async_tp"},
                         {"params", params},
                         {"workload",
                          {{"collective", gathers ? "all_gather" : "reduce_scatter"},
                           {"order", gathers ? "collective_first" : "gemm_first"},
                           {"gemm", gemm_json(*shape)}}}};
        result.notes = notes_;
        result.gpus = ranks;
        return result;
    }

    /// Anything else: GEMMs with shapes and collectives with sizes are priced, all others take their recorded time.
    Recognised list() {
        const RecordedList made = list_of(iteration_, ranks_, Prices::of_the_machine, has_price_);
        Recognised result;
        result.what = "a list of " + std::to_string(made.operators.size()) + " operators on " +
                      std::to_string(made.streams) + (made.streams == 1 ? " stream" : " streams");
        result.config = {
            {"schedule", "concurrent"},
            {"params", made.has_collectives ? Json{{"algorithm", "library"}} : Json::object()},
            {"workload",
             {{"name", "recorded"}, {"ranks", ranks_}, {"order", "program"}, {"operators", made.operators}}}};
        result.gpus = ranks_;
        const ListShares& shares = made.shares;
        if (shares.without_price > 0)
            result.notes.push_back(
                std::to_string(shares.without_price) +
                " kernels without shapes are operators of their recorded time, " +
                std::to_string(std::llround(100 * (1 - shares.priced_us / std::max(1e-3, shares.all_us())))) +
                " % of all");
        return result;
    }

    const std::vector<RecordedSpan>& iteration_;
    std::optional<GemmShape> given_;
    ShapeGuess guess_;
    HasPrice has_price_;
    std::int64_t ranks_ = 0;
    std::vector<Ran> spans_;
    std::map<TaskKind, std::vector<Ran>> of_;
    std::vector<std::string> notes_;
    double others_us_ = 0, total_us_ = 0;
};

}  // namespace

Recognised recognise(const std::vector<RecordedSpan>& iteration, const RecogniseOptions& options) {
    return Recogniser(iteration, options).recognise();
}

}  // namespace overlap
