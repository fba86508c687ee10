#include "sim/importers/tensor_degree.hpp"

#include <algorithm>

#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

class Degree {
public:
    Degree(const RecordedList& list, const TensorPairs& pairs, std::int64_t ranks, std::int64_t to)
        : list_(list), pairs_(pairs), ranks_(ranks), to_(to) {
        find_sizes();
    }

    std::vector<ChangedOperator> operators() && {
        std::vector<ChangedOperator> changed;
        for (std::size_t i = 0; i < list_.spans.size(); ++i) changed.push_back(change(i));
        return changed;
    }

private:
    const RecordedSpan& span(std::size_t i) const { return *list_.spans[i]; }
    const Json& op(std::size_t i) const { return list_.operators[i]; }
    std::optional<GemmShape> gemm(std::size_t i) const {
        return op(i).at("type") == "gemm" ? gemm_of(span(i)) : std::nullopt;
    }
    double part() const { return static_cast<double>(pairs_.degree) / static_cast<double>(to_); }

    /// All pairs move vectors of the model's width of all tokens.
    void find_sizes() {
        for (std::size_t i = 0; i < list_.spans.size(); ++i) {
            const std::string name = op(i).at("name");
            const bool opens = pairs_.opens.contains(name);
            if (!opens && !pairs_.closes.contains(name)) continue;
            const auto shape = gemm(i);
            if (!shape) break;
            const std::int64_t width = opens ? shape->k : shape->n;
            if (tokens_ == 0) tokens_ = shape->m, width_ = width;
            if (tokens_ != shape->m || width_ != width)
                throw UserError("the pairs move operands of several shapes");
        }
        if (tokens_ == 0) throw UserError("GEMMs of pairs have no shapes (record_shapes=True)");
    }

    ChangedOperator change(std::size_t i) {
        if (op(i).at("type") == "collective") return collective(i);
        if (span(i).attention) return {{}, part()};
        if (const auto shape = gemm(i))
            return shape->batch > 1 ? ChangedOperator{{}, part()} : multiplied(i, *shape);
        if (span(i).kind != TaskKind::memory_bound || span(i).waits || span(i).with_host) return {};
        if (is_of_optimiser(span(i))) return {{}, part()};
        const bool of_part = is_cut_ ? !reads_whole_tokens(span(i), tokens_, width_) : pairs_.shares_tokens;
        return {{}, of_part ? part() : 1};
    }

    ChangedOperator multiplied(std::size_t i, const GemmShape& shape) {
        const std::string name = op(i).at("name");
        const bool of_tokens = shape.m == tokens_ && shape.groups == 1;
        if (pairs_.closes.contains(name) || (is_cut_ && of_tokens && shape.n == width_)) {
            is_cut_ = false;
            return cut(i, "k");
        }
        if (pairs_.opens.contains(name) || (of_tokens && shape.k == width_)) {
            is_cut_ = true;
            return cut(i, "n");
        }
        // The gradient of a weight
        if (shape.k == tokens_ && (shape.m == width_ || shape.n == width_))
            return cut(i, shape.m == width_ ? "n" : "m");
        return {};
    }
    ChangedOperator cut(std::size_t i, const char* side) const {
        Json changed = op(i);
        const std::int64_t whole = changed.at(side).get<std::int64_t>() * pairs_.degree;
        if (whole % to_ != 0)
            throw UserError(std::to_string(to_) + " does not divide the " + side + " of " +
                            changed.at("name").get<std::string>() + ", in all " + std::to_string(whole));
        changed[side] = whole / to_;
        return {std::move(changed), part()};
    }

    /// One of a group of tensor parallelism has as many bytes as before, one of gradients those of a part.
    ChangedOperator collective(std::size_t i) {
        const Json group = op(i).value("group", Json::object());
        const std::int64_t size = group.value("size", ranks_),
                           stride = group.value("stride", std::int64_t{1});
        Json changed = op(i);
        const auto join = [&](std::int64_t members, std::int64_t apart) -> ChangedOperator {
            if (members == 1) return {{}, 0};
            changed.erase("group");
            if (members < gpus()) changed["group"] = {{"size", members}, {"stride", apart}};
            return {changed, 1};
        };
        if (size == pairs_.degree && stride == 1) {
            // Results whose columns are gathered, such as those of the last GEMM of a model, are whole.
            if (op(i).at("collective") == "all_gather" && !pairs_.shares_tokens) is_cut_ = false;
            return join(to_, 1);
        }
        if (size != ranks_ / pairs_.degree || stride != pairs_.degree) return {};
        changed["bytes"] = changed.at("bytes").get<double>() * part();
        return join(ranks_ / to_, to_);
    }
    /// GPUs of the job with the other degree.
    std::int64_t gpus() const { return ranks_ == pairs_.degree ? to_ : ranks_; }

    const RecordedList& list_;
    const TensorPairs& pairs_;
    std::int64_t ranks_, to_, tokens_ = 0, width_ = 0;
    bool is_cut_ = false;  ///< whether GPUs of a group have parts of columns or heads
};

}  // namespace

bool is_of_optimiser(const RecordedSpan& span) {
    static const std::vector<std::string> optimisers{"adam", "multi_tensor", "sgd", "lamb", "optimizer"};
    const std::string name = lower_case(span.name);
    return std::ranges::any_of(optimisers,
                               [&](const std::string& one) { return name.find(one) != std::string::npos; });
}

bool reads_whole_tokens(const RecordedSpan& span, std::int64_t tokens, std::int64_t width) {
    if (span.launch.by == nullptr) return false;
    return std::ranges::any_of(span.launch.by->dims, [&](const std::vector<std::int64_t>& dims) {
        double elements = 1;
        for (const std::int64_t size : dims) elements *= static_cast<double>(size);
        return !dims.empty() && dims.back() == width &&
               elements == static_cast<double>(tokens) * static_cast<double>(width);
    });
}

std::vector<ChangedOperator> with_degree(const RecordedList& list, const TensorPairs& pairs,
                                         std::int64_t ranks, std::int64_t to) {
    if (ranks != pairs.degree && ranks % to != 0)
        throw UserError(std::to_string(to) + " does not divide the " + std::to_string(ranks) + " GPUs");
    return Degree(list, pairs, ranks, to).operators();
}

}  // namespace overlap
