#pragma once

#include <catch2/catch.hpp>
#include <map>

#include "sim/transformer/layer.hpp"
#include "sim/transformer/possible.hpp"
#include "sim/transformer/step_request.hpp"
#include "tests/test_support.hpp"

// Shipped models, steps of 8 GPUs, and what their operators are.
namespace overlap::test {

inline const Families& shipped_families() {
    static const Families families = families_of(shipped);
    return families;
}

inline Model model_of(const Json& config, const std::string& file = "m.json",
                      Unread unread = Unread::refused) {
    return read_model(ConfigObject(config, file), "m", shipped_families(), unread);
}

inline Model shipped_model(const std::string& name) {
    const Json json = read_json_file(shipped.find("models", name));
    return read_model(ConfigObject(json, name), name, shipped_families());
}

/// The first kind of layer that has experts, or none, and a window, if any kind does.
inline LayerKind kind_of(const Model& model, bool of_experts, bool windowed = true) {
    const std::vector<LayerKind> kinds = layer_kinds(model);
    for (const bool window : {windowed, !windowed})
        for (const LayerKind& kind : kinds)
            if (kind.shape.of_experts() == of_experts && (kind.shape.attention.window > 0) == window)
                return kind;
    FAIL("no such layer");
    return kinds.front();
}

inline StepShape step_of(Phase phase, std::int64_t tokens, std::int64_t sequence, Parallelism spread) {
    return {phase, tokens, sequence, DType::bf16, spread};
}

inline std::vector<Operator> layer_operators(const Model& model, const StepShape& step, bool of_experts) {
    return overlap::layer_operators(model, step, kind_of(model, of_experts));
}

inline constexpr Parallelism alone{}, tensor{8, 8, 1, 1, false}, sequence{8, 8, 1, 1, true},
    experts{8, 1, 8, 8, false}, data{8, 1, 1, 8, false};

inline const Operator& called(const std::vector<Operator>& operators, const std::string& name) {
    for (const Operator& op : operators)
        if (op.name == name) return op;
    FAIL("no operator " << name);
    return operators.front();
}

struct Gemm {
    std::string name;
    std::int64_t m, n, k;
    std::int64_t batch = 1;
    friend bool operator==(const Gemm&, const Gemm&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const Gemm& gemm) {
    return out << gemm.name << " " << gemm.m << "x" << gemm.n << "x" << gemm.k << " " << gemm.batch;
}

inline std::vector<Gemm> gemms_of(const std::vector<Operator>& operators) {
    std::vector<Gemm> gemms;
    for (const Operator& op : operators)
        if (const auto* shape = std::get_if<GemmShape>(&op.work))
            gemms.push_back({op.name, shape->m, shape->n, shape->k, shape->batch});
    return gemms;
}

/// "all_gather 1024" by operator.
inline std::map<std::string, std::string> collectives_of(const std::vector<Operator>& operators) {
    std::map<std::string, std::string> found;
    for (const Operator& op : operators)
        if (const auto* work = std::get_if<CollectiveWork>(&op.work))
            found[op.name] = name_of(work->kind) + " " + std::to_string(std::llround(work->operand.si()));
    return found;
}

inline std::string bytes(const std::string& kind, std::int64_t count) {
    return kind + " " + std::to_string(count);
}

}  // namespace overlap::test
