#include "tests/fuzz/sweep_files.hpp"

#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/report/sweep/sweep_report.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "tests/test_support.hpp"

namespace overlap::fuzz {
namespace {

using test::shipped;
using Path = std::filesystem::path;

constexpr std::array<const char*, 4> names{"sweep.json", "points.csv", "points.jsonl", "progress.json"};
const std::string heading = "=== ";

std::string contents(const Path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

const DesignSpace& small_sweep() {
    static const test::TemporaryFolder folder;
    static const DesignSpace space = [] {
        std::ofstream(folder / "small.json")
            << R"({"schema": 1, "name": "small", "base": {"topology": "h200_2", "schedule": "uniform_fused_1d",
                   "workload": {"collective": "all_gather", "gemm": {"m": 512, "n": 512, "k": 512, "dtype": "bf16"}}},
                   "axes": {"params.chunks": [1, 2], "params.agent": ["dma", "cu"]}})";
        return DesignSpace(folder / "small.json", shipped);
    }();
    return space;
}

using Files = std::map<std::string, std::string>;

Files read_files(const Path& folder) {
    Files files;
    for (const char* name : names) files[name] = contents(folder / name);
    return files;
}

/// The output folder of that sweep after two of its four points, and at its end.
const std::array<Files, 2>& real_folders() {
    static const std::array<Files, 2> folders = [] {
        const test::TemporaryFolder folder;
        SharedParts shared(shipped);
        PointRunner runner(small_sweep(), shared);
        SweepFolder out = SweepFolder::create(folder / "out", small_sweep());
        const auto run_two = [&](std::uint64_t first) {
            out.append(runner.run(first, 2), first + 2);
            out.checkpoint();
            return read_files(out.path());
        };
        return std::array<Files, 2>{run_two(0), run_two(2)};
    }();
    return folders;
}

/// A part of the packed text for each heading in it.
Files parts_of(const std::string& packed) {
    Files parts;
    const std::string text = "\n" + packed;
    for (const char* name : names) {
        const std::string line = "\n" + heading + name + "\n";
        const std::size_t found = text.find(line);
        if (found == std::string::npos) continue;
        const std::size_t begin = found + line.size(), end = text.find("\n" + heading, begin - 1);
        parts[name] = text.substr(begin, end == std::string::npos ? end : end + 1 - begin);
    }
    return parts;
}

/// One folder for all inputs: making and removing one takes longer than reading it.
Path unpacked(const Path& packed) {
    static const test::TemporaryFolder folder;
    const Path path = folder / "out";
    std::filesystem::create_directory(path);
    Files files = parts_of(contents(packed));
    files.insert(real_folders()[0].begin(), real_folders()[0].end());
    for (const auto& [name, content] : files) std::ofstream(path / name, std::ios::binary) << content;
    return path;
}

}  // namespace

std::vector<std::string> sweep_folders() {
    std::vector<std::string> seeds;
    for (const auto& [name, content] : real_folders()[0]) seeds.push_back(heading + name + "\n" + content);
    std::string& whole = seeds.emplace_back();
    for (const auto& [name, content] : real_folders()[1]) whole += heading + name + "\n" + content;
    return seeds;
}

void resume_sweep(const Path& packed) {
    SweepFolder::resume(unpacked(packed), small_sweep());
}

void report_sweep(const Path& packed) {
    const SweepPoints points = read_sweep(unpacked(packed));
    to_html(page_of(points), {});
    for (std::size_t kind = 0; kind < sweep_plot_names.size(); ++kind) {
        SweepPlot plot;
        plot.kind = static_cast<SweepPlotKind>(kind);
        to_gnuplot(points, plot);
    }
}

}  // namespace overlap::fuzz
