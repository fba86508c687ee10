#include <optional>
#include <span>
#include <utility>

#include "sim/transformer/operators.hpp"

namespace overlap {
namespace {

// FlashAttention-2 (arXiv 2307.08691), section 4.1: five products backward, two forward.
constexpr double attention_backward = 2.5;
class Backward {
public:
    Backward(const StepShape& step, OperatorList list, std::size_t after)
        : step_(step), forward_(list.operators()), list_(std::move(list)), chain_(after) {
        list_.cast_operands(step);
    }

    OperatorList build(std::size_t first, std::size_t end) && {
        range_ = std::span(forward_).subspan(first, end - first);
        for (std::size_t index = end; index-- > first;) {
            const Operator& op = forward_[index];
            if (const auto* gemm = std::get_if<GemmShape>(&op.work))
                of_gemm(index, *gemm);
            else if (const auto* collective = std::get_if<CollectiveWork>(&op.work))
                of_collective(op.name, *collective);
            else if (const auto* send = std::get_if<SendWork>(&op.work))
                of_ring(op.name, *send);
            else
                of_stream(op.name, std::get<StreamingWork>(op.work));
        }
        finish_weights();
        list_.keep_operands();
        return std::move(list_);
    }

private:
    /// The gradient of A comes first, and that of B after the collective that sends the gradient of A.
    void of_gemm(std::size_t index, const GemmShape& gemm) {
        finish_weights();
        const std::string& name = forward_[index].name;
        const std::size_t gradient = chain_;
        GemmShape of_a = gemm;  // groups stay
        std::swap(of_a.n, of_a.k);
        chain_ = list_.add(name + "_dgrad", of_a, {gradient});
        // Every GPU has columns of B, and so a part of the gradient of an A that all of them have.
        const bool repeated = step_.spread.tensor > 1 && !shards_sequence(step_) && reads_all_columns(name);
        if (repeated)
            chain_ = list_.add(name + "_dgrad_reduce",
                               list_.collective(CollectiveKind::all_reduce, gemm.m, gemm.k, true,
                                                step_.spread.tensor_group()),
                               {chain_});
        weights_ = Weights{name, gemm, gradient, {}};
        for (const std::size_t need : forward_[index].needs) {
            const auto* gather = std::get_if<CollectiveWork>(&forward_[need].work);
            if (gather != nullptr && gather->kind == CollectiveKind::all_gather) weights_->gather = *gather;
        }
        if (repeated) finish_weights();
    }

    static bool reads_all_columns(const std::string& name) {
        return name == "qkv" || name == "queries" || name == "keys_values" || name == "gate_up" ||
               name == "up" || name == "router" || name == "output" || name == "scan_in";
    }

    void of_collective(const std::string& name, const CollectiveWork& work) {
        if (work.kind == CollectiveKind::all_reduce) return;  // every GPU has the gradient
        CollectiveWork back = work;
        if (work.kind == CollectiveKind::all_gather) back.kind = CollectiveKind::reduce_scatter;
        if (work.kind == CollectiveKind::reduce_scatter) back.kind = CollectiveKind::all_gather;
        // The gradient of an operand that a GEMM reads is made by a GEMM, and the gradient of a result is read by
        // one.
        const bool made = work.dtype == step_.dtype && work.kind != CollectiveKind::reduce_scatter;
        back.dtype = made ? output_type(step_.dtype) : step_.dtype;
        back.operand = work.operand * (element_size(back.dtype) / element_size(work.dtype));
        chain_ = list_.add(name + "_grad", back, {chain_});
        finish_weights();
    }

    /// The backward kernel reads what the forward kernel read and the gradient of what it wrote. That of attention
    /// also reads the result.
    void of_stream(const std::string& name, const StreamingWork& work) {
        finish_weights();
        if (step_.training.recompute == Recompute::selective && work.attention.sequences > 0)
            chain_ = list_.add(name + "_again", work, {chain_});
        if (step_.training.recompute == Recompute::mla_up_proj && name == "attention")
            for (const Operator& op : range_)
                if (is_up_projection(op.name)) chain_ = list_.add(op.name + "_again", op.work, {chain_});
        StreamingWork back = work;
        back.read = work.read + (work.flops > Flops() ? 2.0 : 1.0) * work.written;
        back.written = work.read;
        back.flops = attention_backward * work.flops;
        if (back.attention.sequences > 0) back.attention.kind = AttentionKind::backward;
        std::vector<std::size_t> needs{chain_};
        if (ring_) needs.push_back(*ring_);
        before_ = std::exchange(chain_, list_.add(name + "_grad", back, needs));
        if (ring_ && name == "attention") {  // the gradients of the last keys and values that came
            chain_ = list_.add("ring_return", to_whom_, {chain_});
            ring_.reset();
        }
    }

    /// Keys and values go around again, beside the kernel whose keys came before, and with them their gradients so far,
    /// which the kernel before that has added to (NVIDIA/TransformerEngine, context_parallel.py: AttnFuncWithCPAndKVP2P).
    void of_ring(const std::string& name, const SendWork& send) {
        SendWork back = to_whom_ = send;
        back.bytes = (step_.training.recompute == Recompute::selective ? 3 : 2) * send.bytes;
        std::vector<std::size_t> needs{before_};
        if (ring_) needs.push_back(*ring_);
        ring_ = list_.add(name + "_grad", back, needs);
    }

    /// Inputs that were gathered are gathered again instead of being kept (arXiv 2205.05198, section 4.2.2).
    void finish_weights() {
        if (!weights_) return;
        std::vector<std::size_t> needs{weights_->gradient};
        if (weights_->gather) needs.push_back(list_.add(weights_->name + "_regather", *weights_->gather, {}));
        const GemmShape& gemm = weights_->gemm;
        list_.add(weights_->name + "_wgrad", weight_gradient(gemm), needs);
        // Every GPU has these weights, and the gradient of its own rows (Megatron-Core: finalize_model_grads).
        if (weights_->name == "qkv_latent" && shards_sequence(step_))
            list_.add("qkv_latent_wgrad_reduce", list_.collective(CollectiveKind::all_reduce, gemm.k, gemm.n,
                                                                  true, step_.spread.tensor_group()));
        weights_.reset();
    }

    /// Each expert's weights have a gradient of their own: a batch, over the mean rows of an expert.
    GemmShape weight_gradient(const GemmShape& gemm) const {
        return list_.gemm(gemm.k, gemm.n, share(gemm.m, gemm.groups), gemm.groups);
    }

    struct Weights {
        std::string name;
        GemmShape gemm;
        std::size_t gradient;
        std::optional<CollectiveWork> gather;
    };

    const StepShape& step_;
    std::vector<Operator> forward_;
    std::span<const Operator> range_;  ///< of `forward_`: whose gradients are made
    OperatorList list_;
    std::size_t chain_;  ///< the operator that makes the newest gradient
    std::optional<Weights> weights_;
    std::size_t before_ = 0;           ///< the operator that made the gradient before
    std::optional<std::size_t> ring_;  ///< what brought the newest keys and values of a ring
    SendWork to_whom_;                 ///< of the forward pass
};

}  // namespace

OperatorList with_backward(const StepShape& step, OperatorList list, std::size_t first, std::size_t end,
                           std::size_t after) {
    return Backward(step, std::move(list), after).build(first, end);
}

}  // namespace overlap
