#include "sim/importers/spread_list.hpp"

#include <algorithm>

#include "sim/core/errors.hpp"
#include "sim/core/ranges.hpp"
#include "sim/importers/tensor_degree.hpp"

namespace overlap {
namespace {

/// What an operator is to a tensor-parallel group.
enum class Role {
    other,    ///< neither a GEMM nor attention
    opens,    ///< GEMM of whole tokens, cut by columns
    closes,   ///< GEMM of a part of the columns: its results are parts of a sum
    weights,  ///< GEMM of a weight's gradient
    uncut,    ///< another GEMM
    heads,    ///< attention, or a batched GEMM
    optimiser
};

/// Gradients that PyTorch's DistributedDataParallel sums at once (bucket_cap_mb).
constexpr double bucket_bytes = 25 << 20;

class Spreader {
public:
    Spreader(RecordedList& list, const Spread& how) : list_(list), how_(how) {
        find_sizes();
        find_roles();
    }

    Json operators() && {
        for (std::size_t i = 0; i < roles_.size(); ++i) add(i);
        if (how_.dp > 1 && gradients_ == 0)
            list_.notes.push_back(
                "the trace has no GEMMs of gradients with shapes: nothing is summed over --dp");
        return std::move(result_);
    }

private:
    const RecordedSpan& span(std::size_t i) const { return *list_.spans[i]; }
    std::optional<GemmShape> gemm(std::size_t i) const {
        return span(i).kind == TaskKind::gemm ? gemm_of(span(i)) : std::nullopt;
    }

    /// The number of tokens is the most frequent M of GEMMs, the model's width the most frequent K and N of these.
    void find_sizes() {
        std::map<std::int64_t, double> rows, sides;
        const auto most = [](const std::map<std::int64_t, double>& counts) {
            return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
        };
        std::vector<GemmShape> shapes;
        for (std::size_t i = 0; i < list_.spans.size(); ++i)
            if (const auto shape = gemm(i); shape && shape->batch == 1) shapes.push_back(*shape);
        for (const GemmShape& shape : shapes) rows[shape.m] += 1;
        if (rows.empty()) {
            if (how_.tp > 1)
                throw UserError("command line: --tp is " + std::to_string(how_.tp) +
                                ", but the trace has no shapes of GEMMs: "
                                "record with record_shapes=True");
            return;
        }
        tokens_ = most(rows);
        for (const GemmShape& shape : shapes) {
            if (shape.m != tokens_) continue;
            sides[shape.k] += 1;
            if (shape.n != shape.k) sides[shape.n] += 1;
        }
        width_ = most(sides);
    }

    void find_roles() {
        for (std::size_t i = 0; i < list_.spans.size(); ++i) roles_.push_back(role_of(i));
        closes_last_.resize(roles_.size());
        bool closed = false;
        for (std::size_t i = roles_.size(); i-- > 0;) {
            if (roles_[i] == Role::opens) closed = false;
            if (roles_[i] != Role::closes) continue;
            closes_last_[i] = !closed;
            closed = true;
        }
    }

    Role role_of(std::size_t i) {
        const auto shape = gemm(i);
        if (span(i).attention || (shape && shape->batch > 1)) {
            attended_ = true;
            return Role::heads;
        }
        if (!shape) {
            if (is_of_optimiser(span(i))) return Role::optimiser;
            return span(i).kind == TaskKind::gemm ? Role::uncut : Role::other;
        }
        if (shape->m != tokens_) return shape->k == tokens_ ? Role::weights : Role::uncut;
        if (shape->k != width_ && shape->n != width_) return Role::uncut;
        // Square weights behind attention, and none before it, have parts of the heads.
        if (shape->k == width_ && (shape->n != width_ || !attended_)) {
            attended_ = false;
            return Role::opens;
        }
        return Role::closes;
    }

    void add(std::size_t i) {
        Json op = list_.operators[i];
        const Role role = roles_[i];
        if (role == Role::opens && !is_cut_) {
            is_cut_ = how_.tp > 1;
            if (is_cut_ && how_.sequence_parallel) need(op, add_of_tokens("all_gather", op.at("needs")));
        }
        if (how_.tp > 1) cut(op, i);
        if (role == Role::optimiser) {
            for (const std::string& sum : std::exchange(sums_, {})) need(op, sum);
        }
        for (const std::string& name : std::exchange(next_needs_, {})) need(op, name);
        const std::string name = op.at("name");
        result_.push_back(std::move(op));
        if (role == Role::closes && closes_last_[i] && is_cut_) {
            next_needs_.push_back(
                add_of_tokens(how_.sequence_parallel ? "reduce_scatter" : "all_reduce", Json::array({name})));
            is_cut_ = false;
        }
        if (role == Role::weights && how_.dp > 1) add_gradients(i, name);
    }

    static void need(Json& op, const std::string& name) {
        if (!contains(op.at("needs"), Json(name))) op["needs"].push_back(name);
    }

    /// A collective of the tokens' vectors in a tensor-parallel group.
    std::string add_of_tokens(const std::string& kind, Json needs) {
        const double bytes =
            static_cast<double>(tokens_) * static_cast<double>(width_) * element_size(DType::bf16).si();
        return add_collective("tp_" + kind, kind, bytes, "bf16", how_.tp, 1, std::move(needs));
    }
    std::string add_collective(const std::string& named, const std::string& kind, double bytes,
                               const std::string& dtype, std::int64_t size, std::int64_t stride, Json needs) {
        Json op{{"name", named + "_" + std::to_string(counts_[named]++)},
                {"type", "collective"},
                {"collective", kind},
                {"bytes", bytes},
                {"dtype", dtype},
                {"needs", std::move(needs)}};
        if (size < how_.ranks()) op["group"] = {{"size", size}, {"stride", stride}};
        if (named.starts_with("dp")) op["stream"] = "gradients";
        std::string name = op.at("name");
        result_.push_back(std::move(op));
        list_.has_collectives = true;
        return name;
    }

    /// Sums gradients over the data-parallel groups when a bucket is full, and behind the last ones.
    void add_gradients(std::size_t i, const std::string& name) {
        const GemmShape shape = *gemm(i);
        bytes_ += static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                  element_size(shape.dtype).si() / static_cast<double>(how_.tp);
        ++gradients_;
        const bool is_last = std::find(roles_.begin() + static_cast<std::ptrdiff_t>(i) + 1, roles_.end(),
                                       Role::weights) == roles_.end();
        if (bytes_ < bucket_bytes && !is_last) return;
        sums_.push_back(add_collective("dp_all_reduce", "all_reduce", std::exchange(bytes_, 0.0),
                                       name_of(shape.dtype), how_.dp, how_.tp, Json::array({name})));
    }

    void cut(Json& op, std::size_t i) {
        const Role role = roles_[i];
        const double part = 1 / static_cast<double>(how_.tp);
        if (const auto whole = gemm(i)) {
            GemmShape cut = *whole;
            if (role == Role::opens) divide(cut.n, op, "columns");
            if (role == Role::closes) divide(cut.k, op, "rows of weights");
            if (role == Role::weights) divide(cut.m == width_ ? cut.n : cut.m, op, "columns of weights");
            if (role == Role::heads) divide(cut.batch, op, "matrices");
            if (cut == *whole) return;
            for (const auto& [key, size] : {std::pair("m", cut.m), {"n", cut.n}, {"k", cut.k}})
                op[key] = size;
            if (whole->batch > 1) op["batch"] = cut.batch;
            scale(op, how_.share ? how_.share(cut, *whole) : part);
        } else if (role == Role::heads || role == Role::optimiser ||
                   (is_cut_ && !reads_whole_tokens(span(i), tokens_, width_)) ||
                   (!is_cut_ && how_.sequence_parallel)) {
            scale(op, part);
        }
    }
    void divide(std::int64_t& side, const Json& op, const char* what) const {
        if (side % how_.tp != 0)
            throw UserError("command line: --tp is " + std::to_string(how_.tp) +
                            ", which does not divide the " + std::to_string(side) + " " + what + " of " +
                            op.at("name").get<std::string>());
        side /= how_.tp;
    }
    static void scale(Json& op, double factor) {
        for (const char* key : {"recorded_us", "read_bytes", "write_bytes"})
            if (op.contains(key)) op[key] = op.at(key).get<double>() * factor;
    }

    RecordedList& list_;
    const Spread& how_;
    std::int64_t tokens_ = 0, width_ = 0;
    std::vector<Role> roles_;
    std::vector<bool> closes_last_;  ///< by operator: whether it is the last that closes its block
    bool attended_ = false;          ///< whether attention ran since the last GEMM that opens
    bool is_cut_ = false;            ///< whether GPUs of a group have parts of columns or heads
    std::vector<std::string> next_needs_, sums_;
    double bytes_ = 0;  ///< of gradients that wait for their bucket
    std::size_t gradients_ = 0;
    std::map<std::string, std::size_t> counts_;
    Json result_ = Json::array();
};

}  // namespace

void spread(RecordedList& list, const Spread& how) {
    if (how.ranks() == 1) return;
    list.operators = Spreader(list, how).operators();
}

}  // namespace overlap
