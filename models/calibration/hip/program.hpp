#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "models/calibration/hip/json_line.hpp"
#include "models/calibration/hip/machine.hpp"

// What programs that measure have in common.
namespace overlap::hip {

/// "2026-11-21T13:29:09Z"
std::string now();
/// The first line of every results file (README.md).
JsonLine machine_facts(const Machine& machine, const std::string& command);
/// Lines of results: to the standard output, or to FILE.part until `finish` makes it FILE. What was measured
/// before a mistake stays in FILE.part.
class ResultsFile {
public:
    /// An empty `path` is the standard output. Throws UserError where it can't be written.
    explicit ResultsFile(const std::string& path);

    void write(const std::string& line);
    void finish();
    /// Nothing was measured: leaves no file.
    void discard();

private:
    std::string path_, part_;
    std::ofstream file_;
};
/// A whole number from 1. Throws UserError.
int positive(const std::string& name, const std::string& text);

/// Ends the program, saying what ran, unless it is gone within a minute: kernels that wait for each other
/// would wait for ever after a mistake.
class Watch {
public:
    explicit Watch(const std::string& what);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();
};

/// Sets what has to be set before the first call of the runtime, then calls `run(arguments, command line)`.
/// Exit code: what it returns; 2, with one line, for NoGpu and UserError; 1 for any other exception.
int run_program(const std::string& name, int count, char** values,
                const std::function<int(const std::vector<std::string>&, const std::string&)>& run);

}  // namespace overlap::hip
