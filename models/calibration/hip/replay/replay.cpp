// Executes task graphs of the simulator on the GPUs of this machine and writes JSON Lines: facts of the
// machine, then one measured trace for each plan (README.md describes the fields).
//
// Usage: replay PLANS [--out FILE] [--repeats N] [--spans] [--no-rest] [--arena-GiB N] [--seconds N]
//   PLANS           one plan a line (sim/plan/format.md), or a list of plans that are executed in turn
//   --out FILE      instead of standard output; FILE.part until all is done
//   --repeats N     timed executions of each plan (9)
//   --spans         times of each task for every plan, not only for those with "spans": true
//   --no-rest       do not wait for peak clocks before each execution
//   --arena-GiB N   memory a GPU for the plans (24)
//   --seconds N     begin no plan later than N seconds after the first; the results then lack the others
// For each plan: inputs are filled; one execution is checked against the result of `serial`, or copy by copy and GEMM by
// GEMM if the plan names no places (own_places.hpp); two warm up; N are timed; one more records the times of each task if
// requested; the result is checked again. Before each execution the GPUs rest until they run at their peak clocks, and
// their caches are overwritten. The plan's "measure" may say otherwise. A plan that
// can't be run ends the program if it is the only plan; in a list it is noted in its place. Exit code: 0
// done; 1 fault of the program (a GPU call failed or a result is wrong: that plan has an `error`); 2 fault of
// the user (no GPU, a plan that can't be run, bad argument).
//
// Build, from the top of the repository:
//   files=$(ls models/calibration/hip/*.cpp models/calibration/hip/replay/*.cpp | grep -v microbench.cpp)
//   nvcc -std=c++20 -O2 -arch=sm_90 -I. -x cu $files -lcublasLt -o replay
//   hipcc -std=c++20 -O2 --offload-arch=gfx942 -I. -x hip $files -ldl -o replay

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/clock.hpp"
#include "models/calibration/hip/program.hpp"
#include "models/calibration/hip/question.hpp"
#include "models/calibration/hip/replay/own_places.hpp"
#include "models/calibration/hip/replay/reference.hpp"

namespace overlap::hip {
namespace {

struct Arguments {
    std::string plans, out;
    int repeats = 9, seconds = 0, arena_GiB = 24;
    bool spans = false, without_rest = false;
};

const char* const usage =
    "usage: replay PLANS [--out FILE] [--repeats N] [--spans] [--no-rest] [--arena-GiB N] [--seconds N]";

Arguments arguments_of(const std::vector<std::string>& given) {
    Arguments to;
    const Flag flags[]{
        {"--out", &to.out},     {"--repeats", &to.repeats},      {"--arena-GiB", &to.arena_GiB},
        {"--spans", &to.spans}, {"--no-rest", &to.without_rest}, {"--seconds", &to.seconds}};
    read_arguments(given, usage, flags, to.plans);
    if (to.plans.empty()) throw UserError(usage);
    return to;
}

std::vector<std::string> read_lines(const std::string& path) {
    if (std::filesystem::is_directory(path))
        throw UserError(path + ": is a directory, expected a file of plans");
    std::ifstream file(path);
    if (!file) throw UserError(path + ": cannot be read");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(std::move(line));
    if (lines.empty()) throw UserError(path + ": no plans; a line is what sim --graph writes");
    return lines;
}

constexpr std::size_t more_than_a_cache = std::size_t{320} << 20;

class Replay {
public:
    Replay(Machine& machine, const Arguments& arguments) : machine_(machine), arguments_(arguments) {
        open_streams(machine);
    }

    /// What was measured of each plan. Plans of one line are executed in turn, so that each finds the GPUs as warm as the
    /// others do.
    std::vector<JsonLine> run(const std::vector<Plan>& plans) {
        gpus_ = 0;
        for (const Plan& plan : plans) {
            if (plan.gpus > machine_.gpus())
                throw UserError("needs " + std::to_string(plan.gpus) + " GPUs, this host has " +
                                std::to_string(machine_.gpus()));
            if (plan.gpus > 1 && !machine_.peers())
                throw UserError("needs GPUs that reach each other's memory");
            gpus_ = std::max(gpus_, plan.gpus);
        }
        const std::vector<PlacedPlan> placed = place(plans);
        std::vector<Executor> executors;
        for (const PlacedPlan& one : placed) {
            (one.plan->placed ? fill_inputs : fill_own_places)(one);
            executors.emplace_back(machine_, gemms_, one);
            executors.back().run_first();
            check_placed(one);
        }
        std::vector<Measured> measured(plans.size());
        for (bool more = true, warm = true; more; warm = false) {
            more = warm;
            for (std::size_t i = 0; i < plans.size(); ++i) {
                for (int number = 0; warm && number < plans[i].measure.warm_ups; ++number)
                    settled(plans[i], executors[i], times_of(plans[i]));
                if (warm || measured[i].samples.size() >= repeats_of(plans[i])) continue;
                measured[i].add(settled(plans[i], executors[i], times_of(plans[i])));
                more = true;
            }
        }
        std::vector<JsonLine> lines;
        for (std::size_t i = 0; i < plans.size(); ++i)
            lines.push_back(line_of(plans[i], executors[i], measured[i]));
        for (const PlacedPlan& one : placed) check_placed(one);
        return lines;
    }

private:
    struct Measured {
        std::vector<double> samples;
        std::vector<std::vector<double>> ends, stream_ends;
        void add(const Execution& execution) {
            samples.push_back(execution.makespan);
            stream_ends.push_back(execution.stream_ends);
            ends.emplace_back();
            for (const Span& span : execution.spans) ends.back().push_back(span.end);
        }
    };

    static Times times_of(const Plan& plan) { return plan.measure.marks ? Times::ends : Times::none; }
    std::size_t repeats_of(const Plan& plan) const {
        return plan.measure.repeats ? plan.measure.repeats : arguments_.repeats;
    }
    static void check_placed(const PlacedPlan& placed) {
        (placed.plan->placed ? check_results : check_own_places)(placed);
    }

    JsonLine line_of(const Plan& plan, Executor& executor, const Measured& measured) {
        JsonLine line;
        line.add("unit", "us")
            .add("makespan_us", median(measured.samples))
            .add("samples_us", measured.samples);
        if (plan.measure.marks)
            line.add("ends_us", measured.ends);
        else if (plan.measure.repeats)
            line.add("stream_ends_us", measured.stream_ends);
        if (plan.spans || arguments_.spans) {
            const Execution recorded =
                settled(plan, executor, plan.measure.marks ? Times::ends : Times::around);
            line.add("recorded_makespan_us", recorded.makespan).add_json("spans", spans_of(plan, recorded));
        }
        return line;
    }

    std::vector<PlacedPlan> place(const std::vector<Plan>& plans) {
        machine_.reset();
        clocks_.clear();
        caches_.clear();
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            clocks_.push_back(take_clocks(machine_, gpu, 1));
            caches_.push_back(machine_.take(gpu, more_than_a_cache));
        }
        std::vector<PlacedPlan> all;
        try {
            for (const Plan& plan : plans) {
                all.push_back({&plan, {}});
                for (const PlanBuffer& buffer : plan.buffers)
                    all.back().memory.push_back(machine_.take(buffer.gpu, bytes_of(buffer)));
            }
        } catch (const std::runtime_error& error) {
            throw UserError(error.what());
        }
        return all;
    }

    Execution settled(const Plan& plan, Executor& executor, Times times) {
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            if (plan.measure.rest && !arguments_.without_rest) rest(machine_, gpu, clocks_[gpu]);
            if (!plan.measure.cold) continue;
            check(hipSetDevice(gpu));
            check(hipMemsetAsync(caches_[gpu], 0, more_than_a_cache, machine_.stream(gpu, 0)));
        }
        // A short plan is enqueued faster than this, and its first stream would be released late.
        machine_.synchronize();
        return executor.run(times);
    }

    static std::string spans_of(const Plan& plan, const Execution& recorded) {
        std::string json = "[";
        for (std::size_t id = 0; id < recorded.spans.size(); ++id) {
            JsonLine span;
            span.add("task", static_cast<std::int64_t>(id))
                .add("name", plan.tasks[id].name)
                .add("kind", plan_kind_names[static_cast<std::size_t>(plan.tasks[id].kind)])
                .add("gpu", plan.tasks[id].gpu)
                .add("stream", plan.streams[plan.tasks[id].stream].name)
                .add("start_us", recorded.spans[id].start)
                .add("end_us", recorded.spans[id].end);
            json += (id ? "," : "") + span.text();
        }
        return json + "]";
    }

    Machine& machine_;
    const Arguments& arguments_;
    GemmPlans gemms_;
    int gpus_ = 0;
    std::vector<double*> clocks_;
    std::vector<void*> caches_;
};

/// A mistake in the only plan of a file ends the program before it uses a GPU.
void refuse_single(const std::string& path, const std::vector<std::string>& lines) {
    if (lines.size() > 1) return;
    try {
        static_cast<void>(read_plans(lines[0]));
    } catch (const UserError& error) {
        throw UserError(path + ": " + error.what());
    }
}

int run(const Arguments& arguments, const std::string& command) {
    const std::vector<std::string> lines = read_lines(arguments.plans);
    refuse_single(arguments.plans, lines);
    Machine machine(static_cast<std::size_t>(arguments.arena_GiB) << 30);
    Replay replay(machine, arguments);

    ResultsFile results(arguments.out);
    results.write(machine_facts(machine, command).text());
    const auto start = std::chrono::steady_clock::now();
    int failed = 0, skipped = 0;
    const auto is_late = [&] {
        return arguments.seconds &&
               std::chrono::steady_clock::now() - start > std::chrono::seconds(arguments.seconds);
    };
    for (std::size_t i = 0; i < lines.size() && !is_late(); ++i) {
        JsonLine line;
        line.add("schema", 1)
            .add("kind", "overlap")
            .add("plan", static_cast<std::int64_t>(i + 1))
            .add("date", now());
        try {
            const std::vector<Plan> plans = read_plans(lines[i]);
            const Watch watch(plans[0].name);
            const std::vector<JsonLine> measured = replay.run(plans);
            for (std::size_t one = 0; one < plans.size(); ++one) {
                JsonLine own = line;
                if (!plans[one].system.empty()) own.add("system", plans[one].system);
                results.write(own.add_json("scenario", plans[one].config).append(measured[one]).text());
            }
            continue;
        } catch (const UserError& reason) {
            if (lines.size() == 1) {
                results.discard();
                throw UserError(arguments.plans + ": " + reason.what());
            }
            line.add("skipped", reason.what());
            ++skipped;
        } catch (const std::runtime_error& error) {
            std::cerr << "replay: plan " << i + 1 << ": " << error.what() << std::endl;
            line.add("error", error.what());
            ++failed;
            machine.synchronize();  // throws if the GPU itself is lost, which ends the program
        }
        results.write(line.text());
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::cerr << lines.size() << " plans, " << skipped << " skipped, " << failed << " failed, "
              << taken.count() << " s" << std::endl;
    results.finish();
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace overlap::hip

int main(int count, char** values) {
    using namespace overlap::hip;
    return run_program("replay", count, values, [](const auto& given, const std::string& command) {
        return run(arguments_of(given), command);
    });
}
