#include "sim/calibrate/problems/problems.hpp"

#include <algorithm>
#include <map>

#include "models/cost_model_registry.hpp"
#include "models/work_energy.hpp"
#include "sim/calibrate/measurements/measurement_file.hpp"
#include "sim/topology/device_losses.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

const std::string idle = "idle", gemms = "GEMM", small_k = "  of K up to 1024",
                  few_rows = "  of M up to 2048", other_types = "  of fp16, fp8",
                  local = "copy inside a GPU by kernels", peer = "copy between GPUs", pull = "  pull",
                  push = "  push", by_dma = "  by DMA", by_kernels = "  by kernels",
                  limited = "GEMM at the power limit (not fitted)",
                  few_units = "GEMM on few units (not fitted)",
                  local_dma = "copy inside a GPU by DMA (not fitted)";
const std::array<std::string, 4> kinds_of_work{"idle", "gemm", "local", "peer"};

/// Passes of a case agree within 0.5 %, ten times better than the fit's other rows.
constexpr double weight = 10;

std::vector<DeviceParameter> energy_parameters() {
    const std::string group = "energy";
    const Range watts{0.1, 1e4}, picojoules{1e-3, 1e5};
    return {{group, "idle_W", 125, 1.5, watts, "estimate: idle GPUs"},
            {group, "active_W", 40, 3, watts, "estimate: copies by 16 and 32 blocks"},
            {group, "bf16_pJ_per_flop", 1, 3, picojoules, "estimate: bursts of GEMMs"},
            {group, "fp16_pJ_per_flop", 1, 3, picojoules, "estimate: as bf16"},
            {group, "fp8_pJ_per_flop", 0.5, 3, picojoules, "estimate: half of bf16"},
            {group, "hbm_pJ_per_byte", 100, 3, picojoules, "estimate: copies by 16 and 32 blocks"},
            {group, "link_pJ_per_byte", 30, 3, picojoules, "estimate: copies by DMA, less those of a GPU"},
            {group, "copy_kernel_pJ_per_byte", 60, 3, picojoules, "estimate: copies by kernels, less DMA"}};
}

/// One operation that GPUs repeat; without `task`, idle.
struct Case {
    std::string name, family;
    std::vector<std::string> classes;
    std::optional<Task> task;
    int gpus = 1;
    bool fitted = true;
    /// Means over the passes: power of a working GPU, time of one operation,
    /// fraction of time with an operation.
    double power_W = 0, seconds = 0, busy = 0;
};

Case gemm(ConfigObject& line, bool at_peak_clock) {
    const auto side = [&](const char* key) { return line.integer(key, 1, most_in_a_case); };
    GemmShape shape{side("m"), side("n"), side("k")};
    shape.dtype = static_cast<DType>(line.choice("dtype", dtype_names));
    const auto units = static_cast<int>(line.integer("units", 0, most_in_a_case));
    Case one;
    one.task = Task{.work = shape, .gemm_cus = units};
    one.name = shape_name(shape) + " " + name_of(shape.dtype);
    one.family = "gemm " + name_of(shape.dtype);
    one.fitted = at_peak_clock && units == 0;
    if (units > 0) {
        one.name += " on " + std::to_string(units) + " units";
        one.classes = {at_peak_clock ? few_units : limited};
        return one;
    }
    one.classes = {at_peak_clock ? gemms : limited};
    const auto also = [&](const std::string& name) {
        if (at_peak_clock) one.classes.push_back(name);
        one.family += name;
    };
    if (shape.dtype != DType::bf16) also(other_types);
    if (shape.k <= 1024) also(small_k);
    if (shape.m <= 2048) also(few_rows);
    return one;
}

Case copy(ConfigObject& line, bool to_peer) {
    const Bytes size(line.number("size", positive));
    const auto agent = static_cast<Agent>(line.choice("agent", agent_names));
    const auto direction = static_cast<Direction>(line.choice("transfer", direction_names));
    const auto blocks = static_cast<int>(line.integer("blocks", 0, most_in_a_case));
    const bool dma = agent == Agent::dma;
    const std::string moved_by = dma ? "DMA" : std::to_string(blocks) + " blocks";
    Case one;
    if (to_peer) {
        // Every GPU sends one such copy and receives one, so it uses what both ends of one copy use.
        one.task = Task{.work = CopyWork{0, 1, size, size, agent, direction, blocks},
                        .gpu = direction == Direction::pull ? 1 : 0,
                        .stream = transfer_stream(direction == Direction::pull ? 0 : 1)};
        const std::string way = direction_names.at(static_cast<std::size_t>(direction));
        one.name = way + " by " + moved_by;
        one.family = (dma ? "copy dma " : "copy cu ") + way;
        one.classes = {peer, direction == Direction::pull ? pull : push, dma ? by_dma : by_kernels};
        one.gpus = static_cast<int>(line.integer("gpus", 2, 1024));
    } else {
        // The simulator has no such copies by DMA: they are judged as copies by kernels.
        one.task = Task{.work = LocalCopyWork{size, size}};
        one.name = "local copy by " + moved_by;
        one.family = "local copy";
        one.classes = {dma ? local_dma : local};
        one.fitted = !dma;
    }
    return one;
}

Case read_case(ConfigObject& line, double peak_MHz) {
    const std::string& work = kinds_of_work.at(line.choice("work", kinds_of_work));
    Case one;
    if (work == "gemm") {
        one = gemm(line, line.number("clock_MHz", positive) > 0.98 * peak_MHz);
    } else if (work == "idle") {
        one.name = one.family = idle;
        one.classes = {idle};
        one.gpus = 0;
    } else {
        one = copy(line, work == "peer");
    }
    const double seconds = line.number("seconds", positive);
    const std::vector<double> joules = line.numbers("energy_J", positive);
    const std::size_t working = one.gpus == 0 ? joules.size() : static_cast<std::size_t>(one.gpus);
    if (working > joules.size()) line.fail("energy_J", "has fewer values than the GPUs that worked");
    for (std::size_t gpu = 0; gpu < working; ++gpu)
        one.power_W += joules[gpu] / seconds / static_cast<double>(working);
    if (!one.task) return one;
    const double busy = line.has("busy_seconds") ? line.number("busy_seconds", positive) : seconds;
    one.seconds = busy / line.number("operations", positive);
    one.busy = busy / seconds;
    if (line.has("pause_ms"))
        if (const auto pause = line.integer("pause_ms", 0, most_in_a_case); pause > 0)
            one.name += ", then " + std::to_string(pause) + " ms of nothing";
    return one;
}

/// Mean power in W of a GPU that does the case's work at the measured rate.
double predicted_W(const Case& one, const Machine& machine) {
    const DeviceSpec& device = machine.topology.device();
    Watts power = device.energy->idle;
    if (one.task) {
        const Energy work = work_energy(*one.task, CostModels().cost(*one.task, machine), machine).value();
        power += one.busy * (device.energy->active + work.total() / Seconds(one.seconds));
    }
    return std::min(power, device.board_power).si();
}

}  // namespace

std::vector<fs::path> energy_files(const fs::path& folder) {
    if (fs::exists(folder / "energy.jsonl")) return {folder / "energy.jsonl"};
    const fs::path own = (folder / "").lexically_normal().parent_path();
    std::vector<fs::path> found;
    if (own.filename() != "microbench") return found;
    std::error_code error;
    for (const auto& system : fs::directory_iterator(own / "../..", error))
        for (const auto& file : fs::directory_iterator(system.path() / "energy", error))
            if (file.path().extension() == ".jsonl") found.push_back(file.path().lexically_normal());
    const auto device = [](const fs::path& file) { return read_measurements(file).machine.at("device"); };
    std::erase_if(found, [&](const fs::path& file) { return device(file) != device(own / "gemm.jsonl"); });
    std::sort(found.begin(), found.end());
    return found;
}

DeviceProblem energy_of_work(const std::vector<fs::path>& files, const std::string& shown) {
    DeviceProblem problem{.name = "energy",
                          .parameters = energy_parameters(),
                          .classes = {idle, gemms, small_k, few_rows, other_types, local, peer, pull, push,
                                      by_dma, by_kernels, limited, few_units, local_dma},
                          .families = "work, type, agent, direction",
                          .unit = "W"};
    std::vector<Case> cases;
    std::map<std::string, std::pair<std::size_t, int>> known;  // by name: position, passes so far
    for (const fs::path& path : files) {
        const MeasurementFile file = read_measurements(path);
        problem.date = std::max(problem.date, file.date());
        problem.file += (problem.file.empty() ? shown + "/" : ", ") + path.filename().string();
        const double peak_MHz =
            ConfigObject(file.machine, path.string() + ":1").number("peak_clock_MHz", positive);
        for (const Measurement& measurement : file.measurements) {
            if (measurement.kind != "energy") continue;
            ConfigObject line = file.view(measurement);
            const Case one = read_case(line, peak_MHz);
            auto& [place, passes] = known.emplace(one.name, std::pair(cases.size(), 0)).first->second;
            if (++passes == 1) cases.push_back(one);
            const auto average = [&](double& all, double more) { all += (more - all) / passes; };
            average(cases[place].power_W, one.power_W);
            average(cases[place].seconds, one.seconds);
            average(cases[place].busy, one.busy);
        }
    }
    for (const Case& one : cases)
        problem.rows.push_back({.name = one.name,
                                .family = one.family,
                                .classes = one.classes,
                                .measured = one.power_W,
                                .weight = one.fitted ? weight : 0,
                                .predict = [one](const Machines& machines) {
                                    return predicted_W(one, machine_of(machines, 2));
                                }});
    return problem;
}

}  // namespace overlap
