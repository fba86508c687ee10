#pragma once

#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "models/calibration/hip/json_line.hpp"
#include "models/calibration/hip/machine.hpp"

// Code that all measuring programs share.
namespace overlap::hip {

/// "2026-11-21T13:29:09Z"
std::string now();
/// The first line of every results file (README.md).
JsonLine machine_facts(const Machine& machine, const std::string& command);
/// Writes result lines to the standard output, or to FILE.part until `finish` renames it to FILE. Results
/// from before a mistake stay in FILE.part.
class ResultsFile {
public:
    /// An empty `path` is the standard output. Throws UserError if the file can't be written.
    explicit ResultsFile(const std::string& path);

    void write(const std::string& line);
    void finish();
    /// Leaves no file, because nothing was measured.
    void discard();

private:
    std::string path_, part_;
    std::ofstream file_;
};
/// A flag of a command line, and the text, number ≥ 1 or truth that it sets; a truth has no value behind it.
struct Flag {
    std::string name;
    std::variant<std::string*, int*, bool*> sets;
};
/// Reads the flags of a command line, and at most one file. Throws UserError, which ends with `usage`.
void read_arguments(const std::vector<std::string>& given, const std::string& usage,
                    std::span<const Flag> flags, std::string& file);

/// Ends the program with the name of the running case if it takes more than a minute: after a mistake,
/// kernels that wait for each other would wait for ever.
class Watch {
public:
    explicit Watch(const std::string& what);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();
};

/// Sets what must be set before the first call of the runtime, then calls `run(arguments, command line)`.
/// Exit code: its result; 2, with one line, for NoGpu and UserError; 1 for any other exception.
int run_program(const std::string& name, int count, char** values,
                const std::function<int(const std::vector<std::string>&, const std::string&)>& run);

}  // namespace overlap::hip
