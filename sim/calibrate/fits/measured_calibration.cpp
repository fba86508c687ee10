#include "sim/calibrate/fits/measured_calibration.hpp"

#include <cassert>
#include <future>
#include <set>

#include "models/gemm_model.hpp"
#include "sim/calibrate/fits/gemm_json.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

const std::string gemm_file = "gemm.jsonl";
const std::string local_file = "local.jsonl";

/// The prior of a dtype with few rows: the fit of another dtype.
GemmPrior prior_from(const GemmFit& other, const MeasuredGemmRecipe& recipe) {
    GemmPrior prior{.start = other.parameters, .field_spread = {}, .tile_spread = recipe.spread};
    prior.start.k_step = recipe.k_step;
    prior.start.peak_rate = prior.start.peak_rate * recipe.rate_ratio;
    for (const Field<GemmParameters>& field : GemmParameters::fields())
        prior.field_spread.push_back(field.key == "peak_TFLOPS" ? recipe.rate_spread : recipe.spread);
    return prior;
}

std::vector<JudgedGemm> judge(const MeasuredCalibration& calibration,
                              const std::map<GemmFamily, int>& folds) {
    std::vector<JudgedGemm> judged;
    for (const GemmMeasurement& row : calibration.data.rows) {
        const int fold = folds.at(operator_family(row.shape));
        const auto time = [&](const GemmFit& fit) {
            return estimate_gemm(row.shape, fit.parameters, row.busy).total();
        };
        judged.push_back(
            {row, time(calibration.fit), time(calibration.fold_fits.at(static_cast<std::size_t>(fold)))});
    }
    return judged;
}

/// Takes the rows of these families out of `rows`.
std::vector<GemmMeasurement> take_out(std::vector<GemmMeasurement>& rows,
                                      const std::set<GemmFamily>& families) {
    const auto first = std::stable_partition(rows.begin(), rows.end(), [&](const GemmMeasurement& row) {
        return !families.contains(operator_family(row.shape));
    });
    std::vector<GemmMeasurement> taken(first, rows.end());
    rows.erase(first, rows.end());
    return taken;
}

std::size_t count_families(std::span<const GemmMeasurement> rows) {
    std::set<GemmFamily> families;
    for (const GemmMeasurement& row : rows) families.insert(operator_family(row.shape));
    return families.size();
}

Json provenance(const MeasuredCalibration& calibration, const std::string& file) {
    std::vector<ErrorClass> summed_up;
    for (const ErrorClass& judged : gemm_classes(calibration.judged))
        if (judged.name == all_gemms_class || judged.name == all_losses_class) summed_up.push_back(judged);
    for (ErrorClass judged : gemm_classes(calibration.unseen))
        if (judged.name == all_gemms_class) {
            judged.name = gemms_in_no_fit;
            summed_up.push_back(judged);
        }
    return {
        {"file", file},
        {"origin", "own measurement: models/calibration/hip, " + calibration.recipe.machine + ", " +
                       calibration.data.gemm_library},
        {"date", calibration.data.date},
        {"method", "models/calibration/fit_gemm on all rows; held out: " + std::to_string(measured_folds) +
                       " folds of operator families (N, odd factor of K)"},
        {"judged_on", "GEMMs of 50 us and more; losses of wholes of 50 us and more"},
        {"rows_fitted", calibration.data.rows.size()},
        {"families", calibration.families},
        {"classes", classes_json(summed_up)},
        {"not_determined", undetermined_parameters(calibration.fit)},
        {"note", calibration.recipe.note}};
}

}  // namespace

MeasuredRows read_measured_rows(const std::filesystem::path& folder, const MeasuredGemmRecipe& recipe) {
    const auto read = [&](const std::string& name) {
        MeasurementFile file = read_measurements(folder / name);
        ConfigObject machine(file.machine, file.path.string() + ":1");
        const std::string device = machine.text("device");
        if (device != recipe.machine)
            machine.fail("device", "is '" + device + "', expected '" + recipe.machine + "'");
        return file;
    };
    const MeasurementFile gemms = read(gemm_file);
    MeasuredRows result{
        .rows = measured_gemms(gemms, recipe.dtype),
        .file = gemm_file,
        .date = gemms.date(),
        .gemm_library = ConfigObject(gemms.machine, gemms.path.string() + ":1").text("gemm_library")};
    if (result.rows.empty())
        throw UserError(gemms.path.string() + ": has no GEMM of dtype " + name_of(recipe.dtype));
    if (std::filesystem::exists(folder / local_file))
        for (const GemmMeasurement& row : sustained_gemms(read(local_file), recipe.dtype))
            result.rows.push_back(row);
    return result;
}

std::vector<MeasuredCalibration> calibrate_measured(std::span<const MeasuredGemmRecipe> recipes,
                                                    const std::filesystem::path& folder,
                                                    const std::set<GemmFamily>& unseen,
                                                    const std::function<void()>& fitted) {
    std::vector<MeasuredCalibration> calibrations;
    std::map<GemmFamily, int> folds;
    for (const MeasuredGemmRecipe& recipe : recipes) {
        MeasuredCalibration calibration{.recipe = recipe,
                                        .data = read_measured_rows(folder, recipe),
                                        .fit = {},
                                        .fold_fits = {},
                                        .judged = {},
                                        .unseen = {}};
        const std::vector<GemmMeasurement> of_no_fit = take_out(calibration.data.rows, unseen);
        calibration.families = count_families(calibration.data.rows);
        // A later dtype may have families that the first lacks; deal all families to folds together.
        std::vector<GemmMeasurement> all = calibration.data.rows;
        for (const MeasuredCalibration& other : calibrations)
            all.insert(all.end(), other.data.rows.begin(), other.data.rows.end());
        const std::map<GemmFamily, int> dealt = deal_families(all, measured_folds);
        if (!calibrations.empty() && dealt != folds)
            throw UserError((folder / gemm_file).string() + ": has (N,K) families in " +
                            name_of(recipe.dtype) + " that " + name_of(calibrations.front().recipe.dtype) +
                            " lacks");
        folds = dealt;

        const MeasuredCalibration* base = nullptr;
        for (const MeasuredCalibration& other : calibrations)
            if (other.recipe.dtype == recipe.prior_dtype) base = &other;
        assert((base == nullptr) == (recipe.prior_dtype == recipe.dtype));
        const auto fit_without = [&](int fold) {
            std::vector<GemmMeasurement> rows;
            for (const GemmMeasurement& row : calibration.data.rows)
                if (folds.at(operator_family(row.shape)) != fold) rows.push_back(row);
            if (base == nullptr) return fit_gemm(rows, recipe.prior);
            const bool all_rows = fold == measured_folds;
            return fit_gemm(
                rows, prior_from(all_rows ? base->fit : base->fold_fits.at(static_cast<std::size_t>(fold)),
                                 recipe));
        };
        std::vector<std::future<GemmFit>> fits;  // the last fit leaves nothing out; all fits are independent
        for (int fold = 0; fold <= measured_folds; ++fold)
            fits.push_back(std::async(std::launch::async, fit_without, fold));
        for (int fold = 0; fold < measured_folds; ++fold)
            calibration.fold_fits.push_back(fits[static_cast<std::size_t>(fold)].get());
        calibration.fit = fits.back().get();
        if (fitted) fitted();
        calibration.judged = judge(calibration, folds);
        for (const GemmMeasurement& row : of_no_fit) {
            const Seconds time = estimate_gemm(row.shape, calibration.fit.parameters, row.busy).total();
            calibration.unseen.push_back({row, time, time});
        }
        calibrations.push_back(std::move(calibration));
    }
    return calibrations;
}

Json measured_gemm_json(const std::vector<MeasuredCalibration>& calibrations,
                        const std::string& shown_folder) {
    Json gemm = Json::object();
    for (const MeasuredCalibration& calibration : calibrations) {
        const MeasuredGemmRecipe& recipe = calibration.recipe;
        const std::string file = shown_folder + "/" + calibration.data.file;
        const std::string prior = recipe.prior_dtype == recipe.dtype
                                      ? "prior of configs/calibrations/recipes (estimate)"
                                      : "prior: the fit of " + name_of(recipe.prior_dtype);
        gemm[name_of(recipe.dtype)] =
            gemm_group(provenance(calibration, file), calibration.data.gemm_library, calibration.fit,
                       {.fitted = "fitted to " + file,
                        .prior = prior + ": the measurements do not determine it",
                        .file = file,
                        .date = calibration.data.date});
    }
    return gemm;
}

std::string measured_device(std::span<const MeasuredGemmRecipe> recipes,
                            const std::filesystem::path& folder) {
    const MeasurementFile file = read_measurements(folder / gemm_file);
    ConfigObject line(file.machine, file.path.string() + ":1");
    const std::string machine = line.text("device");
    std::vector<std::string> known;
    for (const MeasuredGemmRecipe& recipe : recipes) {
        if (recipe.machine == machine) return recipe.device;
        known.push_back(recipe.machine);
    }
    line.fail("device", "is " + in_quotes(machine) + suggestion(machine, known) +
                            "; an archive of scripts/measure can be of any machine");
}

std::map<std::string, std::filesystem::path> find_measurements(std::span<const MeasuredGemmRecipe> recipes,
                                                               const std::filesystem::path& traces) {
    std::map<std::string, std::filesystem::path> result;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(traces, error)) {
        const std::filesystem::path folder = entry.path() / "microbench";
        if (std::filesystem::exists(folder / gemm_file))
            result.emplace(measured_device(recipes, folder), folder);
    }
    return result;
}

}  // namespace overlap
