#pragma once

#include <functional>
#include <memory>

#include "sim/core/recent_values.hpp"
#include "sim/core/what_if.hpp"
#include "sim/report/run/result.hpp"
#include "sim/run/run_config.hpp"
#include "sim/run/scenario.hpp"

namespace overlap {

/// A plain number in a what-if that differs from the file's value by more than this factor
/// may be meant as a factor.
inline constexpr int surprising_factor = 10;

/// Notes on what-if changes whose keys mislead: a number that looks like a factor; a value that no price
/// reads; one of two values for the same quantity, of which the other stays. `device` and `calibration` are
/// without the what-if; `moved`: values that follow the changed ones. `types`: of the run's GEMMs.
std::vector<std::string> notes_of_changes(const std::vector<ChangedValue>& changes, const Json& device,
                                          const Json& calibration, const std::vector<DType>& types,
                                          const std::vector<ChangedValue>& moved = {});

/// The numbers that a command prints, if they are not one run's makespan.
struct RemarkedResult {
    std::string place = "in this run's makespan";
    /// Whether all of them are the same with another what-if; null: asks the run alone.
    std::function<bool(const Json& what_if)> is_same = nullptr;
    /// The what-if as a user gave it, where the run has more changes (a stage of a pipeline is a smaller machine).
    Json asked = nullptr;
};

/// Makes remarks on runs. Many runs name the same files, so the last files are cached.
class Remarker {
public:
    explicit Remarker(ConfigFolder folder) : folder_(std::move(folder)) {}
    /// Remarks on a run of `scenario`, the resolved `config`, with its makespan. For each change of the
    /// what-if, simulates the run once without that change to see whether the makespan differs (where it does not, asks
    /// `result`), and names what else limits the run (limits_of).
    Remarks on(const RunConfig& config, const Scenario& scenario, Seconds makespan,
               const RemarkedResult& result = {});
    /// Notes on a result by the default host: how much longer or shorter it is if one thread enqueues for all GPUs, where
    /// that is more than 5 %; and on a pair's speed-up above 2.
    std::vector<std::string> on_result(const RunConfig& config, const Scenario& scenario,
                                       const RunResult& result);
    /// The what-if and the remarks on it.
    Remarks on_what_if(const RunConfig& config, const Scenario& scenario, Seconds makespan,
                       const RemarkedResult& result);
    /// Those notes on the what-if that need no simulation.
    std::vector<std::string> notes_of_values(const RunConfig& config, const Scenario& scenario) {
        return notes_of_values(config, scenario, config.what_if);
    }

private:
    /// What a what-if makes of a machine's files.
    struct Changes {
        MachineFiles before;  ///< but for changes of the topology
        std::vector<ChangedValue> given, moved;
    };
    using ChangesPtr = std::shared_ptr<const Changes>;

    ChangesPtr changes_of(const RunConfig& config);
    /// Of the changes whose keys are in `asked`.
    std::vector<std::string> notes_of_values(const RunConfig& config, const Scenario& scenario,
                                             const Json& asked);

    ConfigFolder folder_;
    RecentValues<std::string, ChangesPtr> changes_{16};  ///< by topology and what-if
};

}  // namespace overlap
