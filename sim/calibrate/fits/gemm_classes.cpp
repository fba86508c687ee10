#include "sim/calibrate/fits/gemm_classes.hpp"

#include <map>
#include <tuple>

namespace overlap {
namespace {

using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>;
using Shapes = std::map<Key, const JudgedGemm*>;

struct ErrorPair {
    double fitted, held_out;
};

ErrorClass to_class(std::string name, const std::vector<ErrorPair>& errors) {
    std::vector<double> fitted, held_out;
    for (const ErrorPair& error : errors) {
        fitted.push_back(error.fitted);
        held_out.push_back(error.held_out);
    }
    return {std::move(name), errors.size(), summarise(fitted), summarise(held_out)};
}

ErrorPair error_of(const JudgedGemm& gemm) {
    return {gemm.fitted / gemm.measured.time - 1, gemm.held_out / gemm.measured.time - 1};
}

/// A way to cut a GEMM into `count` parts, each with `numerator`/`denominator` of its rows, or of its K with
/// beta = 1. `own_shard_first`: one GEMM of M/P rows comes before these parts.
struct Cut {
    std::string part;  ///< name of a part
    std::string sum;   ///< name of all parts together
    bool of_depth;
    std::int64_t numerator, denominator, count;
    bool own_shard_first = false;
};

const std::vector<Cut>& cuts() {
    constexpr std::int64_t p = class_gpus;
    static const std::vector<Cut> all{
        {"M/2", "2 x M/2", false, 1, 2, 2},
        {"M/P", "P x M/P", false, 1, p, p},
        {"M/2P", "2P x M/2P", false, 1, 2 * p, 2 * p},
        {"M/P^2", "P^2 x M/P^2", false, 1, p * p, p * p},
        {"(P-1)M/P^2", "M/P + P x (P-1)M/P^2", false, p - 1, p * p, p, true},
        {"K-slab K/2", "2 x K/2, beta=1", true, 1, 2, 2},
        {"K-slab K/4", "4 x K/4, beta=1", true, 1, 4, 4},
    };
    return all;
}

/// The measured part of `whole`, if there is one.
const JudgedGemm* part_of(const Shapes& shapes, const Key& whole, const Cut& cut) {
    const auto& [m, n, k, accumulate] = whole;
    const std::int64_t cut_side = cut.of_depth ? k : m;
    if (accumulate || cut_side * cut.numerator % cut.denominator != 0) return nullptr;
    const std::int64_t side = cut_side * cut.numerator / cut.denominator;
    const auto found = shapes.find(cut.of_depth ? Key{m, n, side, true} : Key{side, n, k, false});
    return found == shapes.end() ? nullptr : found->second;
}

/// Relative error of the decomposition loss: predicted / measured − 1.
ErrorPair loss_error(const JudgedGemm& whole, const JudgedGemm& part, const Cut& cut, const JudgedGemm* own) {
    const auto loss = [&](auto time) {
        const double parts = static_cast<double>(cut.count) * time(part).si();
        return (parts + (own ? time(*own).si() : 0)) / time(whole).si();
    };
    const double measured = loss([](const JudgedGemm& gemm) { return gemm.measured.time; });
    return {loss([](const JudgedGemm& gemm) { return gemm.fitted; }) / measured - 1,
            loss([](const JudgedGemm& gemm) { return gemm.held_out; }) / measured - 1};
}

}  // namespace

std::vector<ErrorClass> gemm_classes(std::span<const JudgedGemm> gemms) {
    Shapes shapes;
    std::vector<ErrorPair> all, whole, brief, sustained;
    for (const JudgedGemm& gemm : gemms) {
        const GemmShape& shape = gemm.measured.shape;
        const Seconds time = gemm.measured.time, busy = gemm.measured.busy;
        if (busy > Seconds()) {
            sustained.push_back(error_of(gemm));
            continue;
        }
        shapes[{shape.m, shape.n, shape.k, shape.accumulate}] = &gemm;
        if (time < shortest_class_time) {
            brief.push_back(error_of(gemm));
            continue;
        }
        all.push_back(error_of(gemm));
        if (!shape.accumulate) whole.push_back(error_of(gemm));
    }
    std::vector<ErrorClass> result{to_class(all_gemms_class, all), to_class("  whole (beta = 0)", whole)};
    std::vector<ErrorClass> losses;
    std::vector<ErrorPair> every_loss;
    for (const Cut& cut : cuts()) {
        std::map<const JudgedGemm*, ErrorPair> parts;
        std::vector<ErrorPair> loss;
        for (const auto& [key, gemm] : shapes) {
            const JudgedGemm* part = part_of(shapes, key, cut);
            if (part == nullptr) continue;
            if (part->measured.time >= shortest_class_time) parts[part] = error_of(*part);
            const JudgedGemm* own = cut.own_shard_first ? part_of(shapes, key, cuts()[1]) : nullptr;
            if (gemm->measured.time < shortest_class_time || (cut.own_shard_first && own == nullptr))
                continue;
            loss.push_back(loss_error(*gemm, *part, cut, own));
        }
        every_loss.insert(every_loss.end(), loss.begin(), loss.end());
        std::vector<ErrorPair> errors;
        for (const auto& [part, error] : parts) errors.push_back(error);
        result.push_back(to_class("  part " + cut.part, errors));
        losses.push_back(to_class("  " + cut.sum, loss));
    }
    result.push_back(to_class(all_losses_class, every_loss));
    result.insert(result.end(), losses.begin(), losses.end());
    result.push_back(to_class("GEMM below 50 us", brief));
    result.push_back(to_class("long runs, 20-900 ms", sustained));
    return result;
}

}  // namespace overlap
