#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

#include "models/gemm_libraries.hpp"
#include "sim/calibrate/measurements/gemm_table.hpp"
#include "sim/calibrate/measurements/measured_machine.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/chakra/chakra_workload.hpp"
#include "sim/compare/measured_case.hpp"
#include "sim/core/csv_table.hpp"
#include "sim/core/formula.hpp"
#include "sim/core/timeline_json.hpp"
#include "sim/importers/iterations.hpp"
#include "sim/importers/recognise.hpp"
#include "sim/report/run/report.hpp"
#include "sim/reproduce/published_experiment.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/schedules/schedule.hpp"
#include "tests/fuzz/sweep_files.hpp"
#include "tests/test_support.hpp"

namespace overlap::fuzz {
namespace {

using test::shipped;
using test::source_folder;
using Path = std::filesystem::path;

/// A shipped device or calibration file, read once; none where nothing of that name is shipped.
const ConfigFile* shipped_file(const std::string& kind, const std::string& name) {
    static std::map<std::string, std::optional<ConfigFile>> files;
    std::optional<ConfigFile>& file = files[kind + '/' + name];
    const std::vector<std::string> names = shipped.names(kind);
    if (!file && std::find(names.begin(), names.end(), name) != names.end())
        file = read_config_file(source_folder / "configs" / kind / (name + ".json"),
                                kind.substr(0, kind.size() - 1));
    return file ? &*file : nullptr;
}

/// What a command would print; names from traces and tables may hold any bytes.
void print(const Json& json) {
    json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_run(const Path& path) {
    static Resolver resolver(shipped);
    resolver.resolve(read_run_config(read_json_file(path), path.string())).config().dump();
}

void read_topology_file(const Path& path) {
    const Path configs = source_folder / "configs";
    const Topology topology = read_topology(read_machine_files(
        read_config_file(path, "topology"), configs / "devices", configs / "calibrations"));
    const int last = topology.gpus() - 1;
    for (const auto& [src, dst] : {std::pair(0, last), {last, 0}, {0, last / 2}})
        if (src != dst) topology.route(src, dst);
}

void read_device_file(const Path& path) {
    const ConfigFile device = read_config_file(path, "device");
    read_device(device, shipped_file("calibrations", device.view().text("name")));
}

void read_calibration(const Path& path) {
    const ConfigFile calibration = read_config_file(path, "calibration");
    read_gemm_calibration(calibration);
    read_gemm_times(calibration);
    if (const ConfigFile* device = shipped_file("devices", calibration.view().text("device")))
        read_device(*device, &calibration);
}

void read_workload_file(const Path& path) {
    const ConfigFile file = read_config_file(path, "workload");
    to_json(read_workload(file.view())).dump();
}

void read_chakra_file(const Path& path) {
    const ChakraWorkload chakra = read_chakra(path.string());
    print(to_json(read_workload({chakra.workload, path.string()})));
}

void read_kernel_table(const Path& path) {
    KernelTable table;
    table.add(path);
    table.use_of("nvjet_sm90");
}

/// A plan that is read is simulated, too: what its checks let through must not end the program.
void read_plan_run(const Path& path) {
    static Resolver resolver(shipped);
    RunConfig config;
    config.origin = "fuzz";
    config.read = std::make_shared<const Plan>(read_plan_file(path));
    if (config.read->config.value("topology", Json()) != "h200_4.json") config.topology = "mi300x_8";
    constexpr std::size_t few = 2000;  // tasks, within the time of an input
    const Scenario scenario = resolver.resolve(config);
    if (scenario.plan->graph.size() < few) print(to_json(run(scenario, {.record = false}), {}));
}

void read_preset_file(const Path& path) {
    read_preset(read_config_file(path, "schedule"));
}

void read_sweep_file(const Path& path) {
    const DesignSpace space(path, shipped);
    space.resolved().dump();
    for (std::uint64_t number = 0; number < std::min<std::uint64_t>(space.size(), 4); ++number)
        space.point(number);
}

void read_experiment_file(const Path& path) {
    read_experiment(path, shipped);
}

void read_case(const Path& path) {
    read_measured_cases(std::vector{path.string()});
}

void read_manifest(const Path& path) {
    read_measured_machine(path.parent_path());
}

/// As `sim import` does; `format` is a name of trace_importers().
template <const char* format>
void read_trace(const Path& path) {
    static const KernelTable kernels = [] {
        KernelTable table;
        table.add(source_folder / "configs" / "kernels.json");
        return table;
    }();
    const RecordedTrace trace = find_trace_importer(path, format).read(path, kernels);
    print({{"spans", spans_json(timeline_of(merged(std::vector{trace})))}, {"device", trace.device}});
    const std::vector<RecordedSpan> spans = merged(std::vector{trace});
    if (spans.empty()) return;
    for (Iteration& one : find_iterations(spans, std::nullopt).all) {
        clip_start_skew(one);
        const Recognised found = recognise(one.spans);
        if (found.what.empty()) continue;
        print(found.config);
        if (found.config.at("workload").contains("operators"))
            read_workload({found.config.at("workload"), "recognised"});
    }
}
constexpr char kineto[] = "kineto", rocprof_csv[] = "rocprof_csv", rocprof_json[] = "rocprof_json",
               nsight[] = "nsight", own[] = "own";

void read_table(const Path& path) {
    const CsvTable table = read_csv_table(path);
    for (std::size_t row = 0; row < table.rows(); ++row) print(table.row_as_json(row));
    read_gemm_table(path, {});
}

void read_microbenchmark(const Path& path) {
    read_measurements(path).date();
}

/// One expression a line, of names as a sweep has them.
void evaluate(const Path& path) {
    const Json values{{"gemm.m", 4096}, {"gpus", 8},    {"chunks", 2.5},
                      {"agent", "cu"},  {"dry", false}, {"what_if.device.dma.peer_engines", 0}};
    std::vector<std::string> names, lines;
    for (const auto& item : values.items()) names.push_back(item.key());
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const Formulas formulas = formulas_at("expressions", lines, names);
    if (!lines.empty()) formulas.front().number(values);
    for (const Formula& one : formulas) one.holds(values);
}

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all{
        {"run_config", "run.json", read_run},
        {"topology", "topology.json", read_topology_file},
        {"device", "device.json", read_device_file},
        {"calibration", "calibration.json", read_calibration},
        {"workload", "workload.json", read_workload_file},
        {"preset", "preset.json", read_preset_file},
        {"plan", "plan.json", read_plan_run},
        {"chakra", "trace.0.et", read_chakra_file},
        {"kernels", "kernels.json", read_kernel_table},
        {"sweep", "sweep.json", read_sweep_file},
        {"experiment", "experiment.json", read_experiment_file},
        {"measured_case", "case.json", read_case},
        {"manifest", "manifest.json", read_manifest},
        {"kineto", "trace.json", read_trace<kineto>},
        {"rocprof_json", "trace.json", read_trace<rocprof_json>},
        {"rocprof_csv", "trace.csv", read_trace<rocprof_csv>},
        {"nsight", "trace.sqlite", read_trace<nsight>},
        {"own_trace", "trace.json", read_trace<own>},
        {"csv_table", "table.csv", read_table},
        {"microbenchmark", "gemm.jsonl", read_microbenchmark},
        {"expressions", "where.txt", evaluate},
        {"resume", "sweep.txt", resume_sweep, sweep_folders},
        {"report", "sweep.txt", report_sweep, sweep_folders},
    };
    return all;
}

const Target& find_target(const std::string& name) {
    std::vector<std::string> names;
    for (const Target& target : targets()) {
        if (target.name == name) return target;
        names.push_back(target.name);
    }
    throw UserError("target '" + name + "' is not known" + suggestion(name, names));
}

std::optional<std::string> refusal(const Target& target, std::string_view input) {
    static const test::TemporaryFolder folder;
    // Refuses what takes more memory, such as a full mesh of 4096 GPUs (7 GB, 30 s). A limit that is set already stays.
    static const int limited = setenv("OVERLAP_MEMORY_GB", "1", 0);
    if (limited != 0) throw std::runtime_error("setenv failed");
    const Path file = folder / target.file;
    std::ofstream(file, std::ios::binary).write(input.data(), static_cast<std::streamsize>(input.size()));
    try {
        target.read(file);
    } catch (const UserError& refused) {
        return refused.what();
    }
    return std::nullopt;
}

}  // namespace overlap::fuzz
