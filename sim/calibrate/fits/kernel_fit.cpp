#include "sim/calibrate/fits/kernel_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "models/gemm_libraries.hpp"
#include "sim/calibrate/fits/gemm_calibration.hpp"
#include "sim/calibrate/fits/kernel_priors.hpp"
#include "sim/calibrate/fits/parameter_json.hpp"
#include "sim/calibrate/fits/robust_fit.hpp"

namespace overlap {
namespace {

/// All-to-alls of few tokens are what decode sends, so that no row of theirs counts as short.
bool is_short(const KernelRow& row) {
    return row.time < microseconds(20) && !std::holds_alternative<ExchangeCall>(row.work);
}
constexpr double weight_of_short = 0.35;  // as in fit_gemm
constexpr double most_fitted = 2000;      // per fit, evenly spread over the families
constexpr std::size_t most_cross_validated = 1000;

std::vector<KernelRow> thinned_families(const std::vector<KernelRow>& rows) {
    std::map<std::string, std::vector<const KernelRow*>> families;
    for (const KernelRow& row : rows) families[row.family].push_back(&row);
    const auto share =
        static_cast<std::size_t>(std::ceil(most_fitted / static_cast<double>(families.size())));
    std::vector<KernelRow> taken;
    for (const auto& [family, members] : families) {
        const std::size_t count = std::min(share, members.size());
        for (std::size_t i = 0; i < count; ++i)
            taken.push_back(*members[(2 * i + 1) * members.size() / (2 * count)]);
    }
    return taken;
}

template <class P>
Seconds kernel_price(const KernelRow& row, const P& parameters);
template <>
Seconds kernel_price(const KernelRow& row, const PrefillParameters& p) {
    return estimate_prefill(std::get<AttentionCall>(row.work), p);
}
template <>
Seconds kernel_price(const KernelRow& row, const DecodeParameters& p) {
    return estimate_decode(std::get<AttentionCall>(row.work), p);
}
template <>
Seconds kernel_price(const KernelRow& row, const MoeParameters& p) {
    const double element = weight_bytes(row.format);
    if (const auto* gemm = std::get_if<GemmShape>(&row.work))
        return row.launch + estimate_grouped(row.rows, static_cast<double>(gemm->n),
                                             static_cast<double>(gemm->k), {element, element}, p)
                                .body;
    return estimate_moe(std::get<MoeShape>(row.work), row.rows, p);
}

template <>
Seconds kernel_price(const KernelRow& row, const ExchangeParameters& p) {
    return estimate_exchange(std::get<ExchangeCall>(row.work).exchange,
                             std::get<ExchangeCall>(row.work).group, p);
}

template <class P>
struct KernelFit {
    P parameters;
    std::vector<FittedValue> values;
};

template <class P>
KernelFit<P> fit_families(const std::vector<KernelRow>& rows, const KernelPrior<P>& prior) {
    const std::vector<KernelRow> taken = thinned_families(rows);
    RobustProblem problem;
    problem.spread.assign(P::fields().size(), std::log(prior.spread));
    for (const Field<P>& field : P::fields()) {
        const double value = std::log(field.get(prior.start)), reach = 5 * std::log(prior.spread);
        problem.start.push_back(value);
        const double low = field.range.low > 0 ? std::log(field.range.low) : value - reach;
        problem.low.push_back(std::min(std::max(low, value - reach), value));
        problem.high.push_back(std::max(std::min(std::log(field.range.high), value + reach), value));
    }
    for (const KernelRow& row : taken) problem.weights.push_back(is_short(row) ? weight_of_short : 1);
    const auto at = [&](const std::vector<double>& logs) {
        P parameters = prior.start;
        for (std::size_t i = 0; i < logs.size(); ++i) P::fields()[i].set(parameters, std::exp(logs[i]));
        return parameters;
    };
    problem.errors = [&](const std::vector<double>& logs, double* errors) {
        const P parameters = at(logs);
        for (const KernelRow& row : taken) *errors++ = std::log(kernel_price(row, parameters) / row.time);
    };
    const RobustFit found = robust_fit(problem);
    KernelFit<P> result{at(found.at), {}};
    for (std::size_t i = 0; i < found.at.size(); ++i) {
        const double value = P::fields()[i].get(result.parameters);
        // Rounded as in the file, so that errors are of what it predicts.
        P::fields()[i].set(result.parameters, rounded(value));
        result.values.push_back(
            {value, value * found.standard_error[i], found.prior_share[i], found.residual[i]});
    }
    return result;
}

bool is_backward(const KernelRow& row) {
    const auto* call = std::get_if<AttentionCall>(&row.work);
    return call != nullptr && call->kind == AttentionKind::backward;
}

/// Errors of kernels of 20 us and more, to which rows of several fits may be added.
class ErrorSum {
public:
    template <class P>
    void add(std::span<const KernelRow> rows, const P& parameters, bool backward) {
        for (const KernelRow& row : rows) {
            if (is_short(row) || is_backward(row) != backward) continue;
            const double error = kernel_price(row, parameters) / row.time - 1;
            errors_.push_back(std::abs(error));
            families_.insert(row.family);
            sum_ += error;
        }
    }

    KernelErrors errors() && {
        if (errors_.empty()) return {};
        std::sort(errors_.begin(), errors_.end());
        const auto count = static_cast<double>(errors_.size());
        return {errors_.size(), families_.size(),
                std::accumulate(errors_.begin(), errors_.end(), 0.0) / count,
                errors_[errors_.size() * 9 / 10], sum_ / count};
    }

private:
    std::vector<double> errors_;
    std::set<std::string> families_;
    double sum_ = 0;
};

template <class P>
KernelErrors kernel_errors_of(std::span<const KernelRow> rows, const P& parameters, bool backward = false) {
    ErrorSum sum;
    sum.add(rows, parameters, backward);
    return std::move(sum).errors();
}

/// Rows whose family is of fold `fold`, and all others.
struct Folded {
    std::vector<KernelRow> inside, outside;
    Folded(const std::vector<KernelRow>& rows, int fold) {
        for (const KernelRow& row : rows) (row.fold == fold ? inside : outside).push_back(row);
    }
};

Json errors_json(const char* which, const KernelErrors& errors) {
    const std::string of(which);
    return {{"rows_" + of, errors.rows},
            {"families_" + of, errors.families},
            {"mean_error_" + of + "_pct", percent(errors.mean)},
            {"p90_error_" + of + "_pct", percent(errors.p90)},
            {"bias_" + of + "_pct", percent(errors.bias)}};
}

/// Each family of a small table is held out once.
template <class P>
Json cross_validation_json(const std::vector<KernelRow>& rows, const KernelPrior<P>& prior, bool backward) {
    ErrorSum sum;
    for (int fold = 0; fold < kernel_folds; ++fold) {
        const Folded folded(rows, fold);
        if (!folded.inside.empty())
            sum.add(folded.inside, fit_families(folded.outside, prior).parameters, backward);
    }
    return errors_json("cross_validated", std::move(sum).errors());
}

template <class P>
KernelFitResult calibrate(const KernelSource& source, const std::string& format, const KernelRows& rows,
                          const KernelPrior<P>& prior, const std::string& date, Json& group) {
    const std::vector<KernelRow>& all = rows.kept.at(format);
    const auto& [inside, outside] = Folded(all, 0);
    const KernelFit<P> found = fit_families(outside, prior);
    KernelFitResult result{source.device,
                           kernel_groups[kernel_group_of(source.kind)],
                           format,
                           kernel_errors_of<P>(outside, found.parameters),
                           kernel_errors_of<P>(inside, found.parameters),
                           {}};
    const std::string table = source.alone ? "traces/" + source.file : published_table(source.file);
    const bool exchanged = source.kind == KernelTableKind::exchange;
    Json& one = group[format] = Json::object();
    Json& provenance = one["provenance"];
    provenance = {{"file", table},
                  {"origin", source.origin},
                  {"licence", source.licence},
                  {"date", date},
                  {"method", std::string("sim/calibrate/fits/kernel_fit; held out: ") +
                                 (exchanged ? "of the sorted families every third"
                                            : "families of fold 0 (kernel_fold)")},
                  {"judged_on", exchanged ? "all rows" : "kernels of 20 us and more"}};
    provenance.update(errors_json("fitted", result.fitted));
    provenance.update(errors_json("held_out", result.held_out));
    const bool small = all.size() < most_cross_validated;
    if (small) provenance.update(cross_validation_json(all, prior, false));
    if (std::any_of(all.begin(), all.end(), is_backward)) {
        Json& backward = provenance["backward"];
        backward = errors_json("fitted", kernel_errors_of<P>(outside, found.parameters, true));
        backward.update(errors_json("held_out", kernel_errors_of<P>(inside, found.parameters, true)));
        if (small) backward.update(cross_validation_json(all, prior, true));
    }
    if (const auto left = rows.left_out.find(format); left != rows.left_out.end()) {
        result.left_out = kernel_errors_of<P>(left->second, found.parameters);
        provenance.update(errors_json("left_out", result.left_out));
        provenance["left_out"] =
            "shapes whose distributions of tokens differ in efficiency by more than 2.5: the tuner's kernels differ";
    }
    if (!source.library.empty()) one["library"] = source.library;
    for (const Field<P>& field : P::fixed_fields())
        one[std::string(field.key)] = parameter_entry(field.get(prior.start), prior.fixed_source);
    for (std::size_t i = 0; i < P::fields().size(); ++i) {
        const std::string key(P::fields()[i].key);
        // The table says nothing about it, so its default stays.
        if (!P::fields()[i].required && found.values[i].prior_share > 0.99 && key != prior.estimated)
            continue;
        one[key] =
            parameter_entry(key, found.values[i],
                            {.fitted = "fitted to " + table,
                             .prior = "prior of sim/calibrate/fits/kernel_priors (estimate): the table "
                                      "hardly determines it",
                             .file = "",
                             .date = ""});
    }
    return result;
}

}  // namespace

KernelErrors kernel_errors(std::span<const KernelRow> rows, const KernelCalibration& fits) {
    if (rows.empty()) return {};
    const std::string& format = rows.front().format;
    const auto* call = std::get_if<AttentionCall>(&rows.front().work);
    if (std::holds_alternative<ExchangeCall>(rows.front().work))
        return kernel_errors_of(rows, fits.exchange.at(format));
    if (call == nullptr) return kernel_errors_of(rows, fits.moe.at(format));
    if (call->kind == AttentionKind::decode) return kernel_errors_of(rows, fits.decode.at(format));
    return kernel_errors_of(rows, fits.prefill.at(format));
}

std::vector<KernelFitResult> write_kernel_calibrations(const std::vector<KernelSource>& sources,
                                                       const std::filesystem::path& data,
                                                       const std::filesystem::path& traces,
                                                       const std::filesystem::path& folder,
                                                       const std::string& date,
                                                       const std::vector<std::string>& devices) {
    std::vector<KernelFitResult> results;
    for (const KernelSource& source : sources) {
        const bool wanted =
            devices.empty() || std::find(devices.begin(), devices.end(), source.device) != devices.end();
        const std::filesystem::path file = folder / (source.device + ".json");
        const std::filesystem::path& tables = source.alone ? traces : data;
        if (!wanted || !std::filesystem::exists(tables / source.file) || !std::filesystem::exists(file))
            continue;
        const Calibration gemms{
            .device = source.device, .gemm = read_gemm_calibration(file), .gemm_times = {}};
        const KernelRows rows = read_kernel_rows(tables, source, gemms);
        const std::string& name = kernel_groups[kernel_group_of(source.kind)];
        Json group = read_config_file(file, "calibration").json.value(name, Json::object());
        for (const auto& [format, members] : rows.kept) {
            if (source.kind == KernelTableKind::prefill)
                results.push_back(calibrate(source, format, rows, prefill_prior(source, gemms), date, group));
            else if (source.kind == KernelTableKind::decode)
                results.push_back(calibrate(source, format, rows, decode_prior(source, gemms), date, group));
            else if (source.kind == KernelTableKind::exchange)
                results.push_back(calibrate(source, format, rows, exchange_prior(format), date, group));
            else
                results.push_back(calibrate(source, format, rows, moe_prior(format, gemms), date, group));
        }
        write_groups(folder, source.device, {{name, group}});
    }
    return results;
}

}  // namespace overlap
