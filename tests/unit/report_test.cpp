#include "sim/report/run/report.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "sim/core/csv_reader.hpp"

namespace overlap::test::report_test {
namespace {

// Two GPUs: 60 µs of GEMM, a 20 µs transfer before the second half. Makespan 80, serial 100, ideal 60:
// speed-up 1.25 of 1.667, so 0.25 / 0.6667 = 0.375 of the gain. Losses: 1 + 2 +
// 3 + 4 + 5 + 6 − 1 = 20 = 80 − 60.
RunResult small_run() {
    RunResult run;
    run.config = Json::parse(R"({"schema": 1, "topology": "h200_2.json", "schedule": "shard_p2p",
        "params": {"agent": "dma", "transfer": "pull"}, "engine": "simgrid", "without": [],
        "workload": {"name": "pair", "collective": "all_gather", "order": "collective_first",
                     "gemm": {"m": 1024, "n": 512, "k": 256, "dtype": "bf16"}}})");
    run.scenario = "pair: all_gather > gemm, 2 x h200";
    run.makespan = microseconds(80);
    run.phases.serial = microseconds(110);
    run.baseline.time = microseconds(100);
    run.baseline.name = "serial by RCCL";
    run.phases.gemm = run.ideal = microseconds(60);
    run.phases.comm = run.phases.exposed_comm = microseconds(20);
    run.baseline.speedup = 1.25;
    run.baseline.overlap_efficiency = 0.375;
    run.losses.decomposition = microseconds(1);
    run.losses.contention = microseconds(2);
    run.losses.fill_drain = microseconds(3);
    run.losses.launch = microseconds(4);
    run.losses.packing = microseconds(5);
    run.losses.pattern = microseconds(5);
    run.used.utilisation = {0.75, 0.5, 0.25, 0.125};
    run.used.comm_cus = 16;
    run.used.staging = Bytes(1 << 20);
    run.used.energy =
        Energy{Joules(10), Joules(5), Joules(20), Joules(3), Joules(1), Joules(0.5), Joules(-1.5)};
    run.simulation.tasks = 6;
    run.simulation.engine = "simgrid";
    run.simulation.wall_ms = 1.5;
    std::vector<Span> spans;
    for (int gpu = 0; gpu < 2; ++gpu) {
        spans.push_back({"copy 1>0", TaskKind::copy, gpu, "transfer 1", microseconds(10), microseconds(30)});
        spans.push_back({"copy 2>0", TaskKind::copy, gpu, "transfer 2", microseconds(10), microseconds(20)});
        spans.push_back({"gemm s1", TaskKind::gemm, gpu, "compute", microseconds(50), microseconds(80)});
        spans.push_back({"gemm s0", TaskKind::gemm, gpu, "compute", Seconds(), microseconds(30)});
        spans.push_back({"pack", TaskKind::local_copy, gpu, "local", microseconds(30), microseconds(50)});
    }
    run.observed.timeline = Timeline(std::move(spans));
    return run;
}

// Everything that makes the text long: 64 GPUs, many tasks, long names, every
// parameter, each loss, no efficiency.
RunResult big_run() {
    RunResult run = small_run();
    const std::string word(60, 'x');
    run.scenario = word + " " + word + "\n" + word;
    run.config["topology"] = std::string(300, 't');
    for (int i = 0; i < 20; ++i) run.config["params"]["parameter_" + std::to_string(i)] = word;
    run.config["workload"] = {{"name", word}};
    for (int i = 0; i < 50; ++i) run.config["workload"]["operators"].push_back({{"name", "\xc3\xa9" + word}});
    run.config["without"] = std::vector<std::string>(20, word);
    run.baseline.overlap_efficiency.reset();
    run.baseline.speedup = 0.5;
    for (int i = 0; i < 9; ++i) run.confidence.parts.push_back({word, {}});
    std::vector<Span> spans;
    const std::array kinds{TaskKind::gemm, TaskKind::copy, TaskKind::reduce};
    for (int gpu = 0; gpu < 64; ++gpu)
        for (int i = 0; i < 24; ++i)
            for (const TaskKind kind : kinds)
                spans.push_back({word, kind, gpu, word, microseconds(1e6 * i), microseconds(1e6 * i + 1e6)});
    run.observed.timeline = Timeline(std::move(spans));
    return run;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::size_t columns_of(const std::string& line) {
    return static_cast<std::size_t>(
        std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

/// By column; a field in quotes without the quotes around it.
std::map<std::string, std::string> cells_of(const RunResult& run) {
    std::istringstream header(csv_header());
    std::istringstream row(csv_row(to_json(run)) + ",");  // an empty last cell ends, too
    std::map<std::string, std::string> cells;
    for (std::string name, cell; std::getline(header, name, ',');) {
        const bool quoted = row.peek() == '"';
        if (quoted) row.get();
        REQUIRE(std::getline(row, cell, quoted ? '}' : ','));
        if (quoted) row.ignore(2);
        cells[name] = cell;
    }
    CHECK(row.peek() == std::istringstream::traits_type::eof());
    return cells;
}

/// The line of the text that starts with `name`, without what follows the first number.
double number_after(const std::string& text, const std::string& name) {
    const std::size_t at = text.find("\n" + name + " ");
    INFO(name);
    REQUIRE(at != std::string::npos);
    return std::stod(text.substr(at + 1 + name.size()));
}

}  // namespace

TEST_CASE("text, JSON and CSV give the same numbers") {
    const RunResult run = small_run();
    const Json json = to_json(run);
    const std::string text = to_text(run);
    const auto cells = cells_of(run);
    CHECK(json["makespan_us"].get<double>() == Approx(80));
    CHECK(Json::parse(json.dump()) == json);
    int numbers = 0;
    const Json flat = json.flatten();
    for (const auto& [pointer, value] : flat.items()) {
        if (!value.is_number() || pointer.starts_with("/config") || pointer == "/schema") continue;
        std::string name = pointer.substr(1);
        std::replace(name.begin(), name.end(), '/', '.');
        INFO(name);
        REQUIRE(cells.contains(name));
        CHECK(std::stod(cells.at(name)) == value.get<double>());
        ++numbers;
    }
    // times and ratios, losses, utilisation, cost, energy; tasks, simulated GPUs and wall time
    CHECK(numbers == 12 + 6 + 4 + 2 + 8 + 3);
    const std::map<std::string, std::string> rows{{"makespan", "/makespan_us"},
                                                  {"serial", "/serial_us"},
                                                  {"GEMM alone", "/gemm_us"},
                                                  {"transfers alone", "/comm_us"},
                                                  {"ideal", "/ideal_us"},
                                                  {"exposed communication", "/exposed_comm_us"},
                                                  {"without overlap", "/baseline_us"},
                                                  {"speed-up", "/speedup"}};
    for (const auto& [row, pointer] : rows)
        CHECK(number_after(text, row) == Approx(json[Json::json_pointer(pointer)].get<double>()));
    CHECK(number_after(text, "overlap efficiency") == Approx(37.5));
    for (const auto& [loss, value] : json["losses_us"].items())
        CHECK(number_after(text, "  " + loss) == Approx(value.get<double>()));
    CHECK(number_after(text, "  makespan - ideal") == Approx(80 - 60));
    CHECK_THAT(text,
               Catch::Contains("compute units 75.0 %   HBM 50.0 %   links 25.0 %   DMA engines 12.5 %"));
    // 10 + 5 + 20 + 3 + 1 + 0.5 − 1.5 = 38, of which the four largest parts are 20, 10, 5 and 3.
    CHECK(json["energy_J"]["total"].get<double>() == Approx(38));
    CHECK(number_after(text, "energy") == Approx(38));
    CHECK_THAT(text, Catch::Contains("J   compute 52.6 %  idle 26.3 %  active 13.2 %  HBM 7.9 %\n"));
}

TEST_CASE("CSV: what does not apply is empty, and fields are quoted by RFC 4180") {
    RunResult run = small_run();
    const auto cells = cells_of(run);
    CHECK(cells.at("n") == "512");
    CHECK(cells.at("agent") == "dma");
    CHECK(cells.at("chunks").empty());
    CHECK(cells.at("copy_cus").empty());
    run.used.energy.reset();
    CHECK(to_json(run)["energy_J"].is_null());
    CHECK(cells_of(run).at("energy_J.total").empty());
    CHECK_THAT(to_text(run), !Catch::Contains("energy"));
    run.baseline.overlap_efficiency.reset();
    CHECK(to_json(run)["overlap_efficiency"].is_null());
    CHECK(cells_of(run).at("overlap_efficiency").empty());
    run.config["topology"] = "a,b \"c\"\nd.json";
    CHECK(csv_row(to_json(run)).starts_with("\"a,b \"\"c\"\"\nd.json\",shard_p2p,pair,"));
    CHECK(csv_header().starts_with("topology,schedule,workload,collective,order,m,n,k,dtype,chunks,agent,"));
}

TEST_CASE("CSV: a spreadsheet computes no text, and numbers stay numbers") {
    for (const std::string text : {"=1+2", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1"}) {
        const std::string cell = csv_cell(text);
        CHECK((cell.starts_with("'") || cell.starts_with("\"'")));
        CHECK(text_of_csv_cell("'" + text) == text);
    }
    CHECK(csv_cell("-5") == "'-5");  // a text that looks like a number is one
    CHECK(csv_cell("a=1") == "a=1");
    CHECK(csv_cell("") == "");
    CHECK(csv_cell("'tis") == "'tis");
    CHECK(text_of_csv_cell("'tis") == "'tis");
    CHECK(csv_cell(-5) == "-5");
    CHECK(csv_cell(-0.5) == "-0.5");
    CHECK(csv_cell("\xFF") == "\xEF\xBF\xBD");
}

TEST_CASE("the text shows one GPU over time") {
    const std::string text = to_text(small_run());
    // 72 columns for 80 µs: gemm s0 in the first 27, packing in 18, gemm s1 in 27; transfers from column 9 to
    // 27, two at once for the first half of that.
    CHECK_THAT(text, Catch::Contains("compute    " + std::string(27, 'A') + std::string(18, '.') +
                                     std::string(27, 'B') + "   75.0 %"));
    CHECK_THAT(text, Catch::Contains("local      " + std::string(27, '.') + std::string(18, '#') + "."));
    CHECK_THAT(text, Catch::Contains("transfers  " + std::string(9, '.') + std::string(9, '2') +
                                     std::string(9, '1') + "."));
    CHECK_THAT(text, Catch::Contains("|0       |10      |20      |30"));
    CHECK_THAT(text, !Catch::Contains("slower than without overlap"));
}

TEST_CASE("the text has 39 lines of 100 columns beside the confidence, which is never cut") {
    for (const RunResult& run : {small_run(), big_run(), RunResult()}) {
        const std::vector<std::string> lines = lines_of(to_text(run));
        CHECK(lines.size() > 10);
        const std::size_t of_confidence = overlap::lines_of(run.confidence, SIZE_MAX).size();
        CHECK(lines.size() <= 39 + of_confidence);
        for (const std::string& line : lines) CHECK(columns_of(line) <= 100);
    }
    const std::string text = to_text(big_run());
    CHECK_THAT(text, Catch::Contains("n/a"));
    CHECK_THAT(text, Catch::Contains("slower than without overlap"));
    CHECK_THAT(to_text(small_run()), Catch::Contains("--trace out.json"));
}

}  // namespace overlap::test::report_test
