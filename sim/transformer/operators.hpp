#pragma once

#include <string>
#include <vector>

#include "sim/transformer/step.hpp"
#include "sim/workload/workload.hpp"

namespace overlap {

/// Whether a training step makes operands of a narrower type of what other kernels write.
inline bool casts_operands(const StepShape& step) {
    return step.phase == Phase::training && element_size(step.dtype) < element_size(output_type(step.dtype));
}

/// Whether Recompute::mla_up_proj makes an operator's result again.
inline bool is_up_projection(const std::string& name) {
    return name == "queries" || name == "keys_values" || name == "rotary";
}

/// Builds a list of operators. Each needs the one before, unless its caller names others.
class OperatorList {
public:
    explicit OperatorList(const StepShape& step) : dtype_(step.dtype) {
        if (step.phase != Phase::training && !step.stored.only_experts)
            weight_bits_ = step.stored.bits_beside(dtype_);
    }

    /// From now on, a kernel casts what a GEMM reads, or before it an all-gather; the GEMM of a weight's gradient has
    /// both of its operands from others.
    void cast_operands(const StepShape& step) {
        if (casts_operands(step)) cast_on_ = step.spread.gpus / step.spread.stages;
        gemms_cast_ = step.training.gemms_cast;
        scales_by_itself_ = step.dtype == DType::fp4 || step.training.recipe == Fp8Recipe::tensorwise;
    }
    void keep_operands() { cast_on_ = 0; }

    std::size_t last() const { return operators_.size() - 1; }
    const std::vector<Operator>& operators() const { return operators_; }
    std::vector<Operator> take() && { return std::move(operators_); }

    std::size_t add(const std::string& name, decltype(Operator::work) work, std::vector<std::size_t> needs) {
        if (cast_on_ > 0) add_cast(name, work, needs);
        operators_.push_back({name, std::move(work), std::move(needs)});
        return last();
    }
    std::size_t add(const std::string& name, decltype(Operator::work) work) {
        std::vector<std::size_t> before;
        if (!operators_.empty()) before = {last()};
        return add(name, std::move(work), std::move(before));
    }
    void add_prefix(const std::string& prefix, std::size_t first, std::size_t end) {
        for (std::size_t op = first; op < end; ++op) operators_[op].name.insert(0, prefix);
    }
    /// Lets an operator wait for an earlier one, too.
    void require(std::size_t op, std::size_t earlier) { operators_[op].needs.push_back(earlier); }
    /// Lets those from `end` on wait for none of `first` to `end` − 1.
    void separate(std::size_t first, std::size_t end) {
        for (std::size_t op = end; op < operators_.size(); ++op)
            std::erase_if(operators_[op].needs,
                          [&](std::size_t need) { return need >= first && need < end; });
    }
    /// A GEMM on operands of the list's type, and weights as they are stored.
    GemmShape gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) const {
        for (const std::int64_t size : {m, n, k, batch})
            if (size > most_of_gemm)
                throw UserError("sizes are too large: a GEMM would have a dimension of " +
                                std::to_string(size) + ", expected at most 1e9");
        GemmShape shape{m, n, k, dtype_, false, batch};
        shape.weight_bits = weight_bits_;
        return shape;
    }
    /// A memory-bound kernel that reads `read` and writes `written` numbers of the type that GEMMs write.
    StreamingWork streams(std::int64_t read, std::int64_t written) const {
        const Bytes each = element_size(output_type(dtype_));
        return {static_cast<double>(read) * each, static_cast<double>(written) * each};
    }
    /// A collective of rows × columns numbers, which a GEMM reads or, if `made`, has written.
    CollectiveWork collective(CollectiveKind kind, std::int64_t rows, std::int64_t columns, bool made,
                              const RankGroup& group) const {
        const DType dtype = made ? output_type(dtype_) : dtype_;
        return {kind, matrix_size(rows, columns, dtype), dtype, group};
    }

private:
    /// Reads a number of the wide type, and writes it and its transpose in the narrow one, which the gradient of the
    /// weights reads (TransformerEngine's cast_transpose).
    void add_cast(const std::string& name, const decltype(Operator::work)& work,
                  std::vector<std::size_t>& needs);

    static constexpr std::int64_t most_of_gemm = 1'000'000'000;  // as of lists in files
    DType dtype_;
    double weight_bits_ = 0;         ///< GemmShape::weight_bits
    int cast_on_ = 0;                ///< GPUs of a stage; 0: no casts
    bool gemms_cast_ = false;        ///< Training::gemms_cast
    bool scales_by_itself_ = false;  ///< a kernel reads what is cast before, for its largest magnitude
    std::vector<Operator> operators_;
};

/// A share of a length, rounded up.
constexpr std::int64_t share(std::int64_t length, std::int64_t parts) {
    return (length + parts - 1) / parts;
}

/// Appends attention up to its output projection. `norm` makes the rows that it reads. Returns the operator that makes
/// them for this GPU's heads: a gather, or `norm`.
std::size_t add_attention(const Model& model, const AttentionShape& attention, const StepShape& step,
                          std::size_t norm, OperatorList& list);
/// Appends a scan, from its projection from the hidden size to the one back. `input` makes the rows.
void add_scan(const Model& model, const ScanShape& scan, const StepShape& step, std::size_t input,
              OperatorList& list);
/// What a GPU keeps of a scan for the sequences of a decode step.
Bytes kept_state(const ScanShape& scan, const StepShape& step);
/// An MLP of `width` columns. `input` makes the rows.
void add_mlp(const Model& model, Whole width, const StepShape& step, std::size_t input, OperatorList& list);
/// From the router to the sum of the experts' results. `input` makes the rows: those of this GPU, which are sent to the
/// experts' GPUs, or where these are not spread those of the tensor-parallel group.
void add_experts(const Model& model, const ExpertsShape& experts, const StepShape& step, std::size_t input,
                 OperatorList& list);

/// Where each GPU has a share of the rows, which `source` makes, gathers all rows before a GEMM. Returns the operator
/// that makes the rows.
std::size_t add_gather(const StepShape& step, const std::string& name, std::int64_t columns,
                       std::size_t source, OperatorList& list);
/// Sums the partial results of a GEMM whose K is divided among GPUs.
void add_reduce(const StepShape& step, const std::string& name, std::int64_t columns, OperatorList& list);

/// Appends the gradients of operators `first` to `end` − 1 in reverse order, after operator `after`.
OperatorList with_backward(const StepShape& step, OperatorList list, std::size_t first, std::size_t end,
                           std::size_t after);

}  // namespace overlap
