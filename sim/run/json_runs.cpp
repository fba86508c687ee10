#include "sim/run/json_runs.hpp"

#include "sim/core/ranges.hpp"
#include "sim/report/run/report.hpp"
#include "sim/run/run.hpp"

namespace overlap {

Json JsonRuns::run(const Json& config, const std::string& origin) {
    return run(read_run_config(config, origin));
}

Json JsonRuns::simulate(const Json& config, const std::string& plan, const std::string& origin) {
    RunConfig read = read_run_config(config, origin);
    read.read = resolver_.plan_of_text(plan);
    return run(read);
}

Json JsonRuns::run(const RunConfig& given) {
    const RunConfig read = resolver_.with_machine(given);
    const Scenario scenario = resolver_.resolve_for_numbers(read);
    const RunResult result = overlap::run(scenario, {.record = false, .baselines = &baselines_});
    Remarks remarks = remarker_.on(read, scenario, result.makespan);
    append(remarks.notes, remarker_.on_result(read, scenario, result));
    return to_json(result, remarks);
}

}  // namespace overlap
