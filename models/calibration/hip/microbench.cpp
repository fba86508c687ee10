// Runs a list of cases on the GPUs of this machine and writes JSON Lines: facts of the machine, then one line
// for each case (README.md describes the fields).
//
// Usage: microbench CASES [--out FILE] [--passes N] [--arena-GiB N] [--only KIND] [--seconds N]
//        microbench --machine [--out FILE]
//   --out FILE      instead of standard output; FILE.part until all is done
//   --passes N      run the list N times, which shows the noise (1)
//   --arena-GiB N   memory a GPU for the cases (24)
//   --only KIND     only cases of that kind
//   --seconds N     begin no case later than N seconds after the first; the results then lack the others
//   --machine       only the facts of the machine
// Exit code: 0 done; 1 fault of the program (a GPU call failed or a result is wrong: that case has an
// `error`); 2 fault of the user (no GPU, bad list, bad argument).
//
// Build, from the top of the repository:
//   nvcc -std=c++20 -O2 -arch=sm_90 -I. -x cu models/calibration/hip/*.cpp -lcublasLt -o microbench
//   hipcc -std=c++20 -O2 --offload-arch=gfx942 -I. -x hip models/calibration/hip/*.cpp -ldl -o microbench

#include <chrono>
#include <cmath>
#include <iostream>

#include "models/calibration/hip/program.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

struct Arguments {
    std::string cases, out, only;
    int passes = 1, seconds = 0, arena_GiB = 24;
    bool machine = false;
};

const char* const usage =
    "usage: microbench CASES [--out FILE] [--passes N] [--arena-GiB N] [--only KIND] [--seconds N]";

Arguments arguments_of(const std::vector<std::string>& given) {
    Arguments to;
    const Flag flags[]{{"--out", &to.out},         {"--only", &to.only},
                       {"--passes", &to.passes},   {"--arena-GiB", &to.arena_GiB},
                       {"--seconds", &to.seconds}, {"--machine", &to.machine}};
    read_arguments(given, usage, flags, to.cases);
    if (to.cases.empty() != to.machine) throw UserError(usage);
    return to;
}

JsonLine line_of(int pass, const Case& c) {
    JsonLine line;
    line.add("kind", c.kind).add("pass", pass).add("case_line", c.line);
    for (const auto& [key, value] : c.values) {
        if (key->type == Type::word) line.add(key->name, value);
        if (key->type == Type::count) line.add(key->name, c.count(key->name));
        if (key->type == Type::bytes) line.add(key->name, c.bytes(key->name));
    }
    return line;
}

const Question& question_of(const Case& c) {
    for (const Question& question : questions())
        if (question.kind.name == c.kind) return question;
    throw std::logic_error("no question " + c.kind);
}

std::string answer(Machine& machine, int pass, const Case& c, int& failed) {
    JsonLine line = line_of(pass, c);
    machine.reset();
    try {
        const Result result = question_of(c).run(machine, c);
        double least = std::nan("");
        for (const double sample : result.samples) least = std::fmin(least, sample);
        line.add("unit", result.unit)
            .add("median", median(result.samples))
            .add("min", least)
            .add("p90", percentile_90(result.samples))
            .add("runs", static_cast<std::int64_t>(result.samples.size()))
            .append(result.more)
            .add("samples", result.samples);
    } catch (const UserError&) {
        throw;
    } catch (const Skipped& reason) {
        line.add("skipped", reason.what());
    } catch (const std::runtime_error& error) {
        std::cerr << "microbench: " << c.text() << ": " << error.what() << std::endl;
        line.add("error", error.what());
        ++failed;
        machine.synchronize();  // throws if the GPU itself is lost, which ends the program
    }
    return line.text();
}

int write_machine(const std::string& out, const std::string& command) {
    const Machine machine(std::size_t{1} << 20);
    ResultsFile results(out);
    results.write(machine_facts(machine, command).text());
    results.finish();
    return 0;
}

int run(const Arguments& arguments, const std::string& command) {
    if (arguments.machine) return write_machine(arguments.out, command);
    std::vector<Kind> kinds;
    for (const Question& question : questions()) kinds.push_back(question.kind);
    auto cases = read_cases(arguments.cases, kinds);
    if (!arguments.only.empty())
        std::erase_if(cases, [&](const Case& c) { return c.kind != arguments.only; });
    if (cases.empty()) throw UserError("--only " + arguments.only + ": the list has no case of that kind");
    Machine machine(static_cast<std::size_t>(arguments.arena_GiB) << 30);

    ResultsFile results(arguments.out);
    results.write(machine_facts(machine, command).text());
    const auto start = std::chrono::steady_clock::now();
    const auto is_late = [&] {
        return arguments.seconds &&
               std::chrono::steady_clock::now() - start > std::chrono::seconds(arguments.seconds);
    };
    int failed = 0;
    for (int pass = 1; pass <= arguments.passes; ++pass) {
        for (const Case& c : cases) {
            if (is_late()) break;
            const Watch watch(c.text());
            try {
                results.write(answer(machine, pass, c, failed));
            } catch (const UserError& error) {
                throw UserError(arguments.cases + ":" + std::to_string(c.line) + ": " + error.what());
            }
        }
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        std::cerr << "pass " << pass << " of " << arguments.passes << ": " << cases.size() << " cases, "
                  << taken.count() << " s so far" << std::endl;
    }
    results.finish();
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace overlap::hip

int main(int count, char** values) {
    using namespace overlap::hip;
    return run_program("microbench", count, values, [](const auto& given, const std::string& command) {
        return run(arguments_of(given), command);
    });
}
