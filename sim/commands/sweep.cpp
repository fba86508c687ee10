#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "sim/commands/commands.hpp"
#include "sim/commands/progress_reporter.hpp"
#include "sim/commands/terminal.hpp"
#include "sim/core/failure.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"
#include "sim/run/remarks.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/sweep/cluster.hpp"
#include "sim/sweep/progress_line.hpp"
#include "sim/sweep/run_sweep.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

struct SweepFlags {
    std::string file, out;
    bool resume = false, dry_run = false;
    std::optional<std::uint64_t> point;
    int workers = 0;
};

std::atomic<bool> interrupted{false};

/// Requests a stop at the next block; a second signal stops at once.
void stop_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

fs::path folder_of(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
}

/// Files whose content the state of a sweep has as a whole, and those that the sweep itself changes.
std::vector<fs::path> unwatched(const SweepFlags& flags, const fs::path& file) {
    return {file, fs::path(flags.out) / "sweep.json", fs::path(flags.out) / "progress.json"};
}

/// Files beside the sweep have their paths in it.
Json config_of(const DesignSpace& space, std::uint64_t number, const std::string& file,
               const ConfigFolder& configs) {
    if (number >= space.size())
        throw UserError(file + ": --point is " + std::to_string(number) + ", the last is " +
                        std::to_string(space.size() - 1));
    const std::optional<DesignPoint> point = space.point(number);
    if (!point)
        throw UserError(file + ": combination " + std::to_string(number) + " is no point (see /where)");
    Json config = resolve(point->config, configs).config();
    for (const char* key : {"topology", "schedule", "plan", "host"})
        if (config.contains(key) && config[key].is_string()) {
            const auto name = config[key].get<std::string>();
            std::error_code ignored;
            if (fs::exists(name, ignored)) continue;
            if (const fs::path beside = configs.file_beside(name); !beside.empty())
                config[key] = beside.string();
        }
    return config;
}

/// The sweep with ranges expanded, and how many of its combinations will run.
Json dry_run(const DesignSpace& space) {
    ProgressReporter progress("combinations counted", space.size());
    const DesignSpace::Counts counts =
        space.counts([&](std::uint64_t number, std::uint64_t) { progress.reach(number); });
    Json json = space.resolved();
    json["combinations"] = space.size();
    json["points"] = counts.points;
    json["skipped"] = {{"by_where", counts.not_allowed}, {"repeated", counts.repeated}};
    return json;
}

std::string summary(const SweepFolder& folder, std::uint64_t before, double seconds) {
    std::string text = std::to_string(folder.points()) + " points";
    if (folder.errors() > 0)
        text += ", " + std::to_string(folder.errors()) + " of them failed (column 'error' says why)";
    const auto run = static_cast<double>(folder.points() - before);
    text += "; " + fixed(run, 0) + " run in " + fixed(seconds, 1) + " s, " + fixed(run / seconds, 0) +
            " a second\n";
    for (const char* name : {"points.csv", "points.jsonl", "sweep.json"})
        text += "  " + (folder.path() / name).string() + "\n";
    return text;
}

/// Points of a sweep, from the first to the last, as far apart as each other.
std::vector<DesignPoint> some_points(const DesignSpace& space) {
    constexpr std::uint64_t most = 8, most_looked_at = 10'000;
    std::vector<DesignPoint> points;
    for (std::uint64_t i = 0; i < most; ++i) {
        const std::uint64_t first = points.empty() ? 0 : points.back().number + 1;
        std::uint64_t number = std::max(first, (space.size() - 1) * i / (most - 1));
        const std::uint64_t end = std::min(space.size(), number + most_looked_at / most);
        for (bool found = false; !found && number < end; ++number)
            if (std::optional<DesignPoint> point = space.point(number)) {
                points.push_back(std::move(*point));
                found = true;
            }
    }
    return points;
}

/// A note for each what-if that changes the makespan of none of these points. A swept what-if is left out if the points
/// have one value of it only, because that may be the value of the files.
std::vector<std::string> notes_on_no_effect(const std::vector<DesignPoint>& points,
                                            const ConfigFolder& configs) {
    struct Seen {
        std::set<std::string> values;
        std::size_t points = 0;
        bool changes = false;
    };
    std::map<std::string, Seen> keys;
    Resolver resolver(configs);
    for (const DesignPoint& point : points)
        for (const auto& [key, value] : point.config.what_if.items()) {
            Seen& seen = keys[key];
            seen.values.insert(value.dump());
            ++seen.points;
            RunConfig without = point.config;
            without.what_if.erase(key);
            seen.changes = seen.changes || makespan_of(resolver.resolve(point.config)) !=
                                               makespan_of(resolver.resolve(without));
        }
    std::vector<std::string> notes;
    for (const auto& [key, seen] : keys) {
        const bool is_swept = std::ranges::any_of(
            points, [&](const DesignPoint& point) { return point.values.contains("what_if." + key); });
        if (seen.changes || (is_swept && seen.values.size() < 2)) continue;
        notes.push_back("what-if " + key + ": changes nothing in " + std::to_string(seen.points) +
                        " points that were tried");
    }
    return notes;
}

/// Warns of changes of the machine that mislead, as the last of some points has them, or that change none of them.
void warn_of_what_ifs(const DesignSpace& space, const ConfigFolder& configs) {
    const std::vector<DesignPoint> points = some_points(space);
    if (std::ranges::all_of(points, [](const DesignPoint& point) { return point.config.what_if.empty(); }))
        return;
    try {
        const RunConfig& last = points.back().config;
        for (const std::string& note : Remarker(configs).notes_of_values(last, resolve(last, configs)))
            spdlog::warn("{}", note);
        for (const std::string& note : notes_on_no_effect(points, configs)) spdlog::warn("{}", note);
    } catch (const UserError&) {  // the rows of the points say it
    }
}

/// Runs the missing points by threads of this process or by the processes of a cluster.
void run_missing(const DesignSpace& space, SweepFolder& folder, int threads, const Cluster& cluster,
                 const ConfigFolder& configs) {
    SharedParts shared(configs, threads);
    ProgressLine line(std::cerr, isatty(STDERR_FILENO) == 1, folder.next(), space.size());
    const auto written = [&](const SweepFolder& at) {
        if (is_quiet()) return;
        const std::string failed = at.errors() > 0 ? ", " + std::to_string(at.errors()) + " failed" : "";
        line.show(at.next(), std::to_string(at.points()) + " points" + failed);
    };
    const SweepObserver observer{[] { return interrupted.load(); }, written};
    if (cluster.processes() == 1) {
        ThreadWorkers workers(threads, space, shared);
        run_sweep(space, folder, workers, observer);
    } else {
        ClusterWorkers workers(cluster, space, shared);
        std::future<void> done =
            std::async(std::launch::async, [&] { run_sweep(space, folder, workers, observer); });
        workers.exchange(done);
        done.get();
    }
    if (!is_quiet()) line.clear();
}

/// The folder of results, in which no process writes before all agree.
SweepFolder agreed_folder(const SweepFlags& flags, Cluster& cluster, const DesignSpace& space,
                          FilesRead& files) {
    cluster.shared_text(state_of(space, &files).dump());
    if (const std::string text = cluster.objection(""); !text.empty()) throw UserError(text);
    try {
        SweepFolder folder = flags.resume ? SweepFolder::resume(flags.out, space, &files)
                                          : SweepFolder::create(flags.out, space, &files);
        cluster.objection("");
        return folder;
    } catch (...) {
        cluster.objection(current_failure().reason);
        throw;
    }
}

void lead(const SweepFlags& flags, Cluster& cluster, const DesignSpace& space, const ConfigFolder& configs,
          FilesRead& files) {
    if (flags.out.empty()) throw UserError("command line: --out is missing: a folder for the results");
    SweepFolder folder = agreed_folder(flags, cluster, space, files);
    warn_of_what_ifs(space, configs);
    stop_on_signals();
    const auto begun = std::chrono::steady_clock::now();
    const std::uint64_t before = folder.points();
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const std::string resumable = " (nothing is lost; go on with --resume)";
    try {
        run_missing(space, folder, flags.workers > 0 ? flags.workers : cores, cluster, configs);
    } catch (const UserError& error) {
        throw UserError(error.what() + resumable);
    } catch (const ChangedFile& error) {
        throw UserError(std::string(error.what()) +
                        " (go on with --resume if it is as it was, or take another folder)");
    } catch (const std::bad_alloc&) {
        throw UserError(flags.out + ": out of memory; fewer --workers need less" + resumable);
    } catch (const std::system_error& error) {
        throw UserError(flags.out + ": " + error.what() + resumable);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (folder.next() < space.size())
        throw UserError(flags.out + ": stopped at " + std::to_string(folder.next()) + " of " +
                        std::to_string(space.size()) + "; --resume continues from there");
    print(space.name() + ": " + summary(folder, before, seconds));
}

/// The part of processes other than the leader, which print nothing.
void follow(const SweepFlags& flags, Cluster& cluster, ConfigFolder configs) {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // the leader ends the sweep
    const std::string state = cluster.shared_text();
    if (state.empty()) return;
    std::optional<FilesRead> files;
    std::optional<DesignSpace> space;
    std::string objection;
    try {
        const fs::path file = configs.find("sweeps", flags.file);
        configs = configs.with_files_in(folder_of(file));
        files.emplace(configs.root(), folder_of(file), unwatched(flags, file));
        space.emplace(file, configs);
        objection = difference(Json::parse(state), *space, &*files, flags.file, "process 0");
    } catch (...) {
        objection = current_failure().reason;
    }
    if (!cluster.objection(objection).empty() || !cluster.objection("").empty()) return;
    SharedParts shared(configs);
    PointRunner runner(*space, shared);
    cluster.serve(runner, *files);
}

void execute(const SweepFlags& flags) {
    ConfigFolder configs = ConfigFolder::standard();
    Cluster cluster;
    if (!cluster.leads()) return follow(flags, cluster, configs);
    std::optional<ProgressReporter> looking;
    const fs::path file = configs.find("sweeps", flags.file);
    configs = configs.with_files_in(folder_of(file));
    FilesRead files(configs.root(), folder_of(file), unwatched(flags, file));
    const DesignSpace space(file, configs, [&](std::uint64_t looked_at, std::uint64_t size) {
        if (!looking) looking.emplace("combinations looked at, none allowed", size);
        looking->reach(looked_at);
    });
    looking.reset();
    if (flags.point) return print(config_of(space, *flags.point, flags.file, configs).dump(2) + "\n");
    if (flags.dry_run) return print(in_lines(dry_run(space)) + "\n");
    lead(flags, cluster, space, configs, files);
}

}  // namespace

void add_sweep_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("sweep", "Run every point of a design space; write one row for each point");
    auto flags = std::make_shared<SweepFlags>();
    command->add_option("file", flags->file, "Sweep config: a file, or a name in configs/sweeps")->required();
    command->add_option("--out", flags->out, "Folder for points.csv, points.jsonl and sweep.json");
    command->add_flag("--resume", flags->resume, "Continue the sweep in --out that was interrupted");
    command
        ->add_option("--workers", flags->workers, "Number of points that run in parallel; default: all cores")
        ->check(CLI::Range(1, 4096));
    command->add_flag(
        "--dry-run", flags->dry_run,
        "Print the sweep with ranges expanded and the number of points that would run; run nothing");
    command->add_option("--point", flags->point,
                        "Print the run config of a point, for sim --config; run nothing");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
