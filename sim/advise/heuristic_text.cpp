#include <array>

#include "sim/advise/heuristic.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

const std::array<std::string, 6> rule_names{"uncut", "fixed", "estimated", "balanced", "by_waves", "by_size"};

/// C++ arguments of an action: plan, rule, x.
std::string code_of(const Action& action) {
    const std::string plan =
        action.plan == overlap_advice::plan_count ? "plan_count" : std::to_string(action.plan);
    return plan + ", " + rule_names[static_cast<std::size_t>(action.rule)] + ", " + shortest(action.x);
}

/// The tree from a node on, as C++ or for readers.
std::string tree_text(const Heuristic& heuristic, bool code, std::size_t index = 0, std::size_t depth = 1) {
    const TreeNode& node = heuristic.tree[index];
    const std::string indent(4 * depth, ' ');
    if (node.leaf()) {
        const Action& action = heuristic.actions[node.action];
        if (!code) return indent + action.text() + "\n";
        return indent + "return advice_of(" + code_of(action) + ", least);  // " + action.text() + "\n";
    }
    const std::string name = overlap_advice::name_of(node.feature), threshold = shortest(node.threshold);
    return indent +
           (code ? "if (f[" + name + "] < " + threshold + ") {\n" : name + " < " + threshold + ":\n") +
           tree_text(heuristic, code, node.below, depth + 1) + indent + (code ? "}\n" : "else:\n") +
           tree_text(heuristic, code, node.above, code ? depth : depth + 1);
}

std::string function(const std::string& name, const std::string& comment, const Heuristic& heuristic) {
    const std::string kernels = heuristic.own_kernels ? "true" : "false";
    return comment + "inline Advice " + name +
           "(const Machine& machine, const Operator& op) {\n"
           "    const Estimates least(machine, op, " +
           kernels +
           ");\n"
           "    const Features f = features(least);\n" +
           tree_text(heuristic, true) + "}\n";
}

}  // namespace

std::string to_text(const Heuristic& heuristic) {
    return std::string(heuristic.own_kernels ? "with kernels of one's own (flag_gated)" : "library kernels") +
           ", " + std::to_string(leaves_of(heuristic.tree)) + " leaves\n" + tree_text(heuristic, false);
}

std::string to_header(const Heuristic& library, const Heuristic& own_kernels) {
    return "// Made by `sim advise --fit models/heuristic/fit.csv`; do not edit. Needs only the standard\n"
           "// library (C++11) and the files beside it.\n"
           "#ifndef OVERLAP_ADVICE_HPP\n"
           "#define OVERLAP_ADVICE_HPP\n\n"
           "#include \"overlap_features.hpp\"\n\n"
           "// clang-format off\n"
           "namespace overlap_advice {\n\n" +
           function("advise_library", "/// The schedule to run with library GEMMs and copies.\n", library) +
           "\n" +
           function(
               "advise_any",
               "/// The schedule to run if the GEMM may be a kernel that polls or sets flags (flag_gated).\n",
               own_kernels) +
           "\n}  // namespace overlap_advice\n// clang-format on\n\n#endif\n";
}

}  // namespace overlap
