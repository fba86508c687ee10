#pragma once

#include <memory>

#include "sim/core/recent_values.hpp"
#include "sim/core/what_if.hpp"
#include "sim/report/run/remarks.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// A number that is given as one may have been meant as a factor if it differs from the file's by more than
/// this.
inline constexpr int surprising_factor = 10;

/// What the changes of a what-if mean that is not plain from their keys: a number that looks like a factor;
/// a value that no price reads; one of a pair of values that stand for the same thing, the other of which
/// stays. `device` and `calibration` are as read, without the what-if. `types`: of the run's GEMMs, which
/// `roofline` says are priced by the data sheet.
std::vector<std::string> notes_of_changes(const std::vector<ChangedValue>& changes, const Json& device,
                                          const Json& calibration, const std::vector<DType>& types,
                                          bool roofline);

/// Whose kernels the prices of a type's GEMMs are of; empty where the calibration does not say.
std::string library_of_gemms(const ConfigFolder& folder, const std::string& device, DType dtype);

/// Makes remarks on runs, of which many name the same files; each is read once, as long as it is among those
/// asked for last.
class Remarker {
public:
    explicit Remarker(ConfigFolder folder) : folder_(std::move(folder)) {}
    /// On a run of `scenario`, which is what `config` resolves to, with that makespan. Simulates it once more
    /// for each change of its what-if, without that change, to see whether the makespan is another.
    Remarks on(const RunConfig& config, const Scenario& scenario, Seconds makespan);

private:
    using FilePtr = std::shared_ptr<const ConfigFile>;

    FilePtr file(const std::string& kind, const std::string& name);
    std::string library(const RunConfig& config, const Scenario& scenario);
    std::vector<std::string> notes(const RunConfig& config, const Scenario& scenario, Seconds makespan);

    ConfigFolder folder_;
    RecentValues<std::string, FilePtr> files_{64};  ///< by kind and name
};

}  // namespace overlap
