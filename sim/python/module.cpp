#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdlib>
#include <mutex>

#include "sim/advise/advise.hpp"
#include "sim/compare/compare_cases.hpp"
#include "sim/core/failure.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/json_runs.hpp"
#include "sim/sweep/workers.hpp"
#include "sim/transformer/list_advice.hpp"

// Texts of JSON in, texts out: overlap.py makes dicts of them. No function holds Python's lock while it works.
namespace py = pybind11;

namespace overlap {
namespace {

/// Exceptions as `sim` reports them: a mistake of the caller in one line, or a fault of ours.
template <class Work>
auto reported(const Work& work) {
    const py::gil_scoped_release released;
    try {
        return work();
    } catch (...) {
        const Failure failure = current_failure();
        if (failure.ours) throw std::runtime_error(failure.reason);
        throw UserError(failure.reason);
    }
}

/// Keeps the shipped files that were read, until OVERLAP_CONFIGS names another folder.
std::shared_ptr<JsonRuns> shared_runs() {
    static std::mutex mutex;
    static std::shared_ptr<JsonRuns> runs;
    static std::string of;
    const char* given = std::getenv("OVERLAP_CONFIGS");
    const std::string folder = given == nullptr ? "" : given;
    const std::lock_guard lock(mutex);
    if (runs == nullptr || of != folder) {
        runs = std::make_shared<JsonRuns>(ConfigFolder::standard());
        of = folder;
    }
    return runs;
}

/// Whether the config names a file of the caller's, which may be another one the next time.
bool names_files(const Json& config) {
    std::error_code ignored;
    for (const char* key : {"topology", "schedule", "workload", "host"})
        if (const auto name = config.find(key); name != config.end() && name->is_string())
            if (std::filesystem::exists(name->get<std::string>(), ignored)) return true;
    return false;
}

std::string run_one(const std::string& text) {
    return reported([&] {
        const Json config = parse_json(text, "config");
        const bool fresh = config.is_object() && names_files(config);
        const auto runs = fresh ? std::make_shared<JsonRuns>(ConfigFolder::standard()) : shared_runs();
        return json_text(runs->run(config, "config"));
    });
}

/// The columns and rows of points.csv (see `sim sweep`) of a sweep config, or of the sweep of that name.
std::string sweep_over(const std::string& text, int workers) {
    return reported([&] {
        const ConfigFolder folder = ConfigFolder::standard();
        const Json config = parse_json(text, "sweep");
        const DesignSpace space = config.is_string()
                                      ? DesignSpace(folder.find("sweeps", config.get<std::string>()), folder)
                                      : DesignSpace(config, "sweep", folder);
        tbb::task_arena arena(workers > 0 ? workers : tbb::task_arena::automatic);
        SharedParts shared(folder, arena.max_concurrency());
        ThreadWorkers threads(arena.max_concurrency(), space, shared);
        constexpr std::uint64_t block = 16;  // combinations that a thread takes at once
        std::vector<Rows> rows((space.size() + block - 1) / block);
        arena.execute([&] {
            tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
                rows[i] = threads.run(i * block, std::min(block, space.size() - i * block));
            });
        });
        std::string csv = PointRunner::header(space) + "\n";
        for (const Rows& part : rows) csv += part.csv;
        return csv;
    });
}

std::string advise_on(const std::string& text, std::size_t top, const std::vector<std::string>& agents,
                      bool own_kernels) {
    return reported([&] {
        const ConfigFolder folder = ConfigFolder::standard();
        RunConfig config = read_run_config(parse_json(text, "config"), "config");
        config.schedule = "serial";  // only for resolving; every candidate brings its own
        Resolver resolver(folder);
        const Scenario scenario = resolver.resolve(config);
        if (scenario.machine->topology.gpus() < 2)
            throw UserError("config: /topology has one GPU, nothing to overlap");
        const AllowedCandidates allowed{agents, own_kernels};
        const SimulatedAdvice advice = advise(scenario, folder, top, allowed);
        Json json = to_json(advice);
        const StudyOptions options{.run = config, .allowed = allowed};
        if (const auto pairs = advise_pairs(scenario.workload, options, advice, resolver))
            json["pairs"] = to_json(*pairs);
        return json_text(json);
    });
}

std::string compare_with(const std::vector<std::string>& traces, const std::string& tolerances,
                         const std::vector<std::string>& models) {
    return reported([&] {
        std::vector<MeasuredCase> cases = read_measured_cases(traces);
        if (!models.empty())
            for (MeasuredCase& one : cases) one.config.cost_models = models;
        Comparison comparison = compare(cases, ConfigFolder::standard());
        comparison.verdicts = tolerances.empty() ? judge_cases(comparison) : judge(comparison, tolerances);
        return json_text(to_json(comparison));
    });
}

}  // namespace
}  // namespace overlap

PYBIND11_MODULE(_overlap, module) {
    py::register_exception<overlap::UserError>(module, "UserError", PyExc_ValueError);
    module.attr("version") = OVERLAP_VERSION;
    module.def("run", overlap::run_one);
    module.def("sweep", overlap::sweep_over);
    module.def("advise", overlap::advise_on);
    module.def("compare", overlap::compare_with);
}
