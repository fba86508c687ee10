#include "sim/calibrate/fits/robust_fit.hpp"

#include "sim/core/installation.hpp"

namespace overlap {

RobustFit robust_fit(const RobustProblem& problem) {
    static auto* const fit_by =
        reinterpret_cast<decltype(fit_by_ceres)*>(load_function("overlap_ceres.so", "fit_by_ceres", "fit"));
    RobustFit fit;
    fit_by(problem, fit);
    return fit;
}

}  // namespace overlap
