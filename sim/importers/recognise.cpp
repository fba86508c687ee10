#include "sim/importers/recognise.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

using Ran = const RecordedSpan*;

/// Our name of a number format of PyTorch: "BFloat16" of collectives, "c10::BFloat16" of operators; "" if unknown.
std::string dtype_of(std::string name) {
    static const std::map<std::string, std::string> names{
        {"bfloat16", "bf16"}, {"half", "fp16"}, {"float16", "fp16"}, {"float", "fp32"}, {"float32", "fp32"},
        {"float8_e4m3fn", "fp8"}, {"float8_e5m2", "fp8"}, {"char", "int8"}, {"signed char", "int8"}, {"byte", "int8"}};
    if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(0, colon + 1);
    const std::string* found = value_at(names, lower_case(name));
    return found == nullptr ? "" : *found;
}

DType type_called(const std::string& name) {
    return static_cast<DType>(place_of(dtype_names, name));
}

/// "allgather_base" and "_allgather_base_" are an all_gather; "" for what we have no collective for.
std::string collective_called(const std::string& name, const std::string& kernel) {
    std::string plain;
    for (const char c : lower_case(name + " " + kernel))
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) plain += c;
    for (const auto& [part, kind] : {std::pair("allgather", "all_gather"), {"reducescatter", "reduce_scatter"},
                                     {"allreduce", "all_reduce"}, {"alltoall", "all_to_all"}})
        if (plain.find(part) != std::string::npos) return kind;
    return "";
}

/// The GEMM that an operator computes, from the shapes of its inputs.
std::optional<GemmShape> shape_of(const RecordedOperator* op) {
    if (op == nullptr) return std::nullopt;
    const std::string name = op->name.substr(op->name.rfind(':') + 1);
    const std::size_t first = name == "addmm" || name == "baddbmm" ? 1 : 0;
    if (op->dims.size() < first + 2) return std::nullopt;
    const auto &a = op->dims[first], &b = op->dims[first + 1];
    if (a.size() < 2 || b.size() < 2) return std::nullopt;
    const bool linear = name == "linear", batched = name == "bmm" || name == "baddbmm";
    GemmShape shape;
    shape.batch = batched ? a[0] : 1;
    shape.k = a.back();
    shape.m = 1;
    for (auto size = batched ? a.begin() + 1 : a.begin(); size != a.end() - 1; ++size)
        if (__builtin_mul_overflow(shape.m, *size, &shape.m)) return std::nullopt;
    shape.n = linear ? b[b.size() - 2] : b.back();
    const std::string type = op->types.size() > first ? dtype_of(op->types[first]) : "";
    constexpr std::int64_t most = 1'000'000'000;
    const auto fits = [](std::int64_t size) { return size >= 1 && size <= most; };
    if (!fits(shape.m) || !fits(shape.n) || !fits(shape.k) || !fits(shape.batch)) return std::nullopt;
    if (shape.k != (linear ? b.back() : b[b.size() - 2])) return std::nullopt;
    if (!type.empty()) shape.dtype = type_called(type);
    return shape;
}

Json gemm_json(const GemmShape& shape) {
    return {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"dtype", name_of(shape.dtype)}};
}

double us_of(Ran span) {
    return static_cast<double>(span->end_ns - span->start_ns) * 1e-3;
}

/// What one GPU ran, by start.
class Recogniser {
public:
    Recogniser(const std::vector<RecordedSpan>& iteration, const std::optional<GemmShape>& gemm, const ShapeGuess& guess)
        : given_(gemm), guess_(guess) {
        std::set<std::int64_t> gpus;
        for (const RecordedSpan& span : iteration) gpus.insert(span.gpu);
        ranks_ = static_cast<std::int64_t>(gpus.size());
        for (const RecordedSpan& span : iteration)
            if (span.gpu == *gpus.begin()) spans_.push_back(&span);
        std::ranges::stable_sort(spans_, {}, &RecordedSpan::start_ns);
        for (const Ran span : spans_) {
            of_[span->kind].push_back(span);
            if (span->kind == TaskKind::memory_bound && !span->waits) others_us_ += us_of(span);
            total_us_ += us_of(span);
        }
    }

    Recognised recognise() {
        if (ranks_ < 2) return {.why_not = "only one GPU is in the trace, expected the files of all ranks"};
        const std::size_t gemms = of_[TaskKind::gemm].size(), collectives = of_[TaskKind::collective].size(),
                          copies = of_[TaskKind::copy].size();
        // A pair may have small kernels beside it, such as the memsets of split-K GEMMs.
        const bool alone = others_us_ <= 0.02 * total_us_;
        if (copies > 0 && collectives == 0 && alone && gemms == static_cast<std::size_t>(ranks_)) return async_tp();
        if (copies > 0) return {.why_not = "copies between GPUs are of no schedule known here (async_tp: a GEMM for each rank)"};
        if (gemms == 1 && collectives == 1 && alone) return library_pair();
        if (gemms + collectives == 0) return {.why_not = "no GEMM and no collective"};
        return list();
    }

private:
    /// Shape of a pair's GEMM over the rows of all ranks; `rows`: that of one recorded GEMM times this.
    std::optional<GemmShape> pair_shape(Ran gemm, std::int64_t rows, const ShapeHint& hint) {
        std::optional<GemmShape> shape = shape_of(gemm->by.get());
        if (shape) {
            shape->m *= rows;
            notes_.push_back("GEMM " + shape_name(*shape) + " " + name_of(shape->dtype) + " by the shapes of " + gemm->by->name);
        } else if (given_) {
            shape = given_;
            notes_.push_back("GEMM " + shape_name(*shape) + " as given by --gemm: the trace has no shapes (record_shapes=True)");
        } else if (guess_ && hint.operand > 0) {
            shape = guess_(hint);
            if (shape)
                notes_.push_back("GEMM " + shape_name(*shape) + " " + name_of(shape->dtype) + " guessed: " + std::to_string(hint.operand) + " elements that move are " +
                                 (hint.of_a ? "M x K, N" : "M x N, K") + " by the GEMM's time, and how they divide is not known: better record_shapes=True, or --gemm MxNxK");
        }
        return shape;
    }

    static constexpr const char* no_shape = "the GEMM's shape is not in the trace: record with record_shapes=True, or give --gemm MxNxK";

    Recognised library_pair() {
        const Ran gemm = of_[TaskKind::gemm].front(), sends = of_[TaskKind::collective].front();
        const std::string kind = collective_called(sends->collective ? sends->collective->name : "", sends->name);
        if (kind.empty()) return {.why_not = "the collective is none of all_gather, reduce_scatter, all_reduce, all_to_all"};
        if (sends->collective && sends->collective->ranks != ranks_ && sends->collective->ranks > 0)
            return {.why_not = "the collective is of " + std::to_string(sends->collective->ranks) + " ranks, but the trace has " + std::to_string(ranks_)};
        const bool first = sends->start_ns < gemm->start_ns;
        ShapeHint hint{.of_a = first && kind == "all_gather", .time = microseconds(us_of(gemm))};
        if (sends->collective) {
            hint.operand = kind == "all_gather" ? sends->collective->out_elements : sends->collective->in_elements;
            if (const std::string type = dtype_of(sends->collective->dtype); !type.empty()) hint.dtype = type_called(type);
        }
        const std::optional<GemmShape> shape = pair_shape(gemm, 1, hint);
        if (!shape) return {.why_not = no_shape};
        const Ran before = first ? sends : gemm, after = first ? gemm : sends;
        const bool beside = after->start_ns < before->end_ns - (before->end_ns - before->start_ns) / 10;
        const std::string order = beside ? "independent" : first ? "collective_first" : "gemm_first";
        Recognised result;
        result.what = beside ? kind + " by a library's kernel beside a GEMM"
                             : first ? kind + " by a library's kernel, then a GEMM" : "a GEMM, then " + kind + " by a library's kernel";
        result.config = {{"schedule", beside ? "concurrent" : "serial"},
                         {"params", {{"algorithm", "library"}}},
                         {"workload", {{"collective", kind}, {"order", order}, {"gemm", gemm_json(*shape)}}}};
        check_size(sends, kind, *shape, order != "gemm_first");
        result.notes = notes_;
        return result;
    }

    /// The operand that the pair would send against the one that was sent.
    void check_size(Ran sends, const std::string& kind, const GemmShape& shape, bool sends_a) {
        if (!sends->collective) return;
        const std::int64_t seen = kind == "all_gather" ? sends->collective->out_elements : sends->collective->in_elements;
        const double expected = static_cast<double>(shape.m) * static_cast<double>(sends_a && kind == "all_gather" ? shape.k : shape.n);
        if (seen > 0 && std::abs(static_cast<double>(seen) / expected - 1) > 0.01)
            notes_.push_back("doubtful: the collective has " + std::to_string(seen) + " elements, the GEMM's operand " +
                             std::to_string(std::llround(expected)));
    }

    Recognised async_tp() {
        const auto &gemms = of_[TaskKind::gemm], &copies = of_[TaskKind::copy];
        // Only an operator of PyTorch tells async_tp from other schedules with the same kernels and copies.
        if (gemms.front()->by == nullptr)
            return {
                .why_not =
                    "a GEMM for each rank and copies between GPUs are of async_tp, shard_direct, shard_p2p or "
                    "another schedule of shards, and the trace names no operators that would tell: give --scenario"};
        const auto first_gemm_end = gemms.front()->end_ns;
        const bool gathers = copies.front()->start_ns < first_gemm_end;
        // Each rank's part of the operand moves by one copy.
        ShapeHint hint{.of_a = gathers, .parts = ranks_, .time = microseconds(us_of(gemms.back()))};
        hint.operand = std::llround(copies.front()->bytes * static_cast<double>(ranks_) / element_size(hint.dtype).si());
        const std::optional<GemmShape> shape = pair_shape(gemms.front(), shape_of(gemms.front()->by.get()) ? ranks_ : 1, hint);
        if (!shape) return {.why_not = no_shape};
        Recognised result;
        result.what = std::string("async_tp (PyTorch's symmetric memory), ") + (gathers ? "all_gather, then a GEMM" : "a GEMM, then reduce_scatter");
        Json params = Json::object();
        if (gathers && of_[TaskKind::local_copy].size() < 2) params["scatter"] = false;
        result.config = {{"schedule", "async_tp"},
                         {"params", params},
                         {"workload", {{"collective", gathers ? "all_gather" : "reduce_scatter"},
                                       {"order", gathers ? "collective_first" : "gemm_first"},
                                       {"gemm", gemm_json(*shape)}}}};
        result.notes = notes_;
        return result;
    }

    Json operator_of(Ran span) {
        const std::string name = span->by ? span->by->name.substr(span->by->name.rfind(':') + 1) : task_kind_names[static_cast<std::size_t>(span->kind)];
        Json op{{"name", name + "_" + std::to_string(counts_[name]++)}};
        if (span->kind == TaskKind::gemm)
            if (const auto shape = shape_of(span->by.get())) {
                op["type"] = "gemm";
                op.update(gemm_json(*shape));
                if (shape->batch > 1) op["batch"] = shape->batch;
                return op;
            }
        if (span->kind == TaskKind::collective && span->collective && span->collective->ranks == ranks_) {
            const std::string kind = collective_called(span->collective->name, span->name), type = dtype_of(span->collective->dtype);
            const std::int64_t elements = kind == "all_gather" ? span->collective->out_elements : span->collective->in_elements;
            if (!kind.empty() && !type.empty() && elements > 0) {
                op["type"] = "collective";
                op["collective"] = kind;
                op["bytes"] = static_cast<double>(elements) * element_size(type_called(type)).si();
                op["dtype"] = type;
                return op;
            }
        }
        ++recorded_;
        recorded_us_ += us_of(span);
        op["type"] = "memory_bound";
        op["read_bytes"] = 0;
        op["write_bytes"] = 0;
        op["time_us"] = std::max(1e-3, us_of(span));
        return op;
    }

    Recognised list() {
        Json operators = Json::array();
        std::map<std::string, std::size_t> last;  // by stream
        std::vector<std::map<std::string, std::size_t>> known(spans_.size());  // of other streams, by operator
        for (std::size_t i = 0; i < spans_.size(); ++i) {
            Json op = operator_of(spans_[i]);
            op["needs"] = Json::array();
            const auto before = last.find(spans_[i]->track);
            if (before != last.end()) {
                op["needs"].push_back(operators[before->second].at("name"));
                known[i] = known[before->second];
            }
            for (const auto& [track, at] : last) {
                if (track == spans_[i]->track) continue;
                std::size_t ended = at;  // the last of that stream that ended before this one began
                while (ended != none && spans_[ended]->end_ns > spans_[i]->start_ns) ended = previous_[ended];
                if (ended == none || (known[i].contains(track) && known[i][track] >= ended)) continue;
                known[i][track] = ended;
                op["needs"].push_back(operators[ended].at("name"));
            }
            previous_.push_back(before == last.end() ? none : before->second);
            last[spans_[i]->track] = i;
            operators.push_back(std::move(op));
        }
        Recognised result;
        result.what = "a list of " + std::to_string(operators.size()) + " operators on " + std::to_string(last.size()) + " streams";
        result.config = {{"schedule", last.size() > 1 ? "concurrent" : "serial"},
                         {"params", {{"algorithm", "library"}}},
                         {"workload", {{"name", "recorded"}, {"ranks", ranks_}, {"operators", operators}}}};
        if (of_[TaskKind::collective].empty()) result.config["params"] = Json::object();
        if (recorded_ > 0)
            result.notes.push_back(std::to_string(recorded_) + " kernels without shapes are operators of their recorded time, " +
                                   std::to_string(std::llround(100 * recorded_us_ / std::max(1e-3, total_us_))) + " % of all");
        return result;
    }

    static constexpr std::size_t none = ~std::size_t{0};
    std::optional<GemmShape> given_;
    ShapeGuess guess_;
    std::int64_t ranks_ = 0;
    std::vector<Ran> spans_;
    std::map<TaskKind, std::vector<Ran>> of_;
    std::map<std::string, std::size_t> counts_;
    std::vector<std::size_t> previous_;  ///< by operator: the one before it on its stream
    std::vector<std::string> notes_;
    std::size_t recorded_ = 0;
    double recorded_us_ = 0, others_us_ = 0, total_us_ = 0;
};

}  // namespace

Recognised recognise(const std::vector<RecordedSpan>& iteration, const std::optional<GemmShape>& gemm,
                     const ShapeGuess& guess) {
    return Recogniser(iteration, gemm, guess).recognise();
}

}  // namespace overlap
