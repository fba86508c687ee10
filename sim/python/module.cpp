#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <spdlog/spdlog.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "sim/commands/command_line.hpp"
#include "sim/core/failure.hpp"
#include "sim/core/interruption.hpp"
#include "sim/core/shown.hpp"
#include "sim/run/json_runs.hpp"
#include "sim/sweep/workers.hpp"

// Texts of JSON in, texts out, or the words of a command line: the package overlap makes dicts of them. No function
// holds Python's lock while it works.
namespace py = pybind11;

namespace overlap {
namespace {

/// Whether a signal's handler raised an exception (Ctrl-C: KeyboardInterrupt), which then is this thread's error in
/// Python. Python runs handlers in its main thread only.
bool signal_raised() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds between_looks{50};
    thread_local Clock::time_point last;
    if (Clock::now() - last < between_looks) return false;
    last = Clock::now();
    const PyGILState_STATE held = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() != 0;
    PyGILState_Release(held);
    return raised;
}

/// Exceptions as `sim` reports them: a mistake of the caller in one line, or a fault of ours. Ctrl-C ends the work.
template <class Work>
auto reported(const Work& work) {
    interruption_wanted = signal_raised;
    try {
        const py::gil_scoped_release released;
        return work();
    } catch (const Interrupted&) {
        throw py::error_already_set();
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
    for (const char* key : {"topology", "schedule", "plan", "workload", "host"})
        if (const auto name = config.find(key); name != config.end() && name->is_string())
            if (std::filesystem::exists(name->get<std::string>(), ignored)) return true;
    return false;
}

std::shared_ptr<JsonRuns> runs_for(const Json& config) {
    const bool fresh = config.is_object() && names_files(config);
    return fresh ? std::make_shared<JsonRuns>(ConfigFolder::standard()) : shared_runs();
}

std::string run_one(const std::string& text) {
    return reported([&] {
        const Json config = parse_json(text, "config");
        return json_text(runs_for(config)->run(config, "config"));
    });
}

/// `plan`: as JSON text, which is read once as long as it stays among the last ones.
std::string simulate(const std::string& text, const std::string& plan) {
    return reported([&] {
        const Json config = parse_json(text, "config");
        return json_text(runs_for(config)->simulate(config, plan, "config"));
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

/// What a command prints, and why it failed (empty if it did not): sim compare prints before it fails.
py::tuple command(const std::vector<std::string>& words) {
    std::string text, mistake;
    reported([&] {
        try {
            run_captured(words, text);
        } catch (const Interrupted&) {
            throw;
        } catch (...) {
            const Failure failure = current_failure();
            if (failure.ours) throw std::runtime_error(failure.reason);
            mistake = failure.reason;
        }
    });
    return py::make_tuple(text, mistake);
}

}  // namespace
}  // namespace overlap

PYBIND11_MODULE(_overlap, module) {
    py::register_exception<overlap::UserError>(module, "UserError", PyExc_ValueError);
    module.attr("version") = OVERLAP_VERSION;
    module.def("run", overlap::run_one);
    module.def("simulate", overlap::simulate);
    module.def("sweep", overlap::sweep_over);
    module.def("command", overlap::command);
    spdlog::set_level(spdlog::level::off);  // warnings are in the results; no progress on standard error
}
