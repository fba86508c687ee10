// Reads inputs without a fuzzer. FOLDER/TARGET/… are inputs of a target.
//   fuzz_replay FOLDER…                   each once
//   fuzz_replay --accepted FOLDER…        each once, and none may be refused
//   fuzz_replay --mutated N TARGET FOLDER  N mutations of them, the same on every machine
// Ends with 1 at the first input that is neither read nor refused as it should be, by SIGPROF where one takes
// more than 5 s of processor time, which is the limit of the fuzzers, too.
#include <sys/time.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "sim/core/errors.hpp"
#include "tests/fuzz/mutator.hpp"
#include "tests/fuzz/targets.hpp"

using namespace overlap;
namespace fs = std::filesystem;

namespace {

constexpr unsigned longest_seconds = 5;

std::string contents(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

std::optional<std::string> refusal(const fuzz::Target& target, const std::string& input) {
    const auto limit = [](unsigned seconds) {  // 0: none
        const itimerval time{{0, 0}, {seconds, 0}};
        setitimer(ITIMER_PROF, &time, nullptr);
    };
    limit(longest_seconds);
    std::optional<std::string> refused = fuzz::refusal(target, input);
    limit(0);
    return refused;
}

void replay(const fuzz::Target& target, const std::string& name, const std::string& input, bool must_accept) {
    std::cout << target.name << ' ' << name << ' ' << std::flush;  // seen where the input ends the program
    const std::optional<std::string> refused = refusal(target, input);
    std::cout << (refused ? "refused: " + refused->substr(0, 200) : "read") << '\n';
    if (must_accept && refused) throw UserError(target.name + " " + name + ": is a seed, but is refused");
}

std::vector<fs::path> files_of(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::size_t replay_folder(const fs::path& folder, bool must_accept) {
    const std::vector<fs::path> files = files_of(folder);
    for (const fs::path& file : files)
        replay(fuzz::find_target(file.parent_path().filename().string()), file.filename().string(),
               contents(file), must_accept);
    return files.size();
}

/// Ends with the number of the mutation that failed, which gives it again.
std::size_t replay_mutated(std::size_t times, const fuzz::Target& target, const fs::path& folder) {
    std::vector<std::string> seeds;
    if (target.seeds != nullptr) seeds = target.seeds();
    if (fs::exists(folder / target.name))
        for (const fs::path& file : files_of(folder / target.name)) seeds.push_back(contents(file));
    if (seeds.empty()) throw UserError(target.name + ": has no seeds in " + folder.string());
    std::size_t read = 0;
    for (unsigned number = 0; number < times; ++number) {
        const std::string& seed = seeds[number % seeds.size()];
        std::string input = target.is_json() && number % 4 != 0 ? fuzz::mutated_json(seed, number) : "";
        if (input.empty()) input = fuzz::mutated_bytes(seed, number);
        std::cout << '\r' << target.name << " mutation " << number << std::flush;
        if (!refusal(target, input)) ++read;
    }
    std::cout << ", of all: " << read << " read, the others refused\n";
    return times;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool accepted = !arguments.empty() && arguments.front() == "--accepted";
    std::size_t inputs = 0;
    try {
        if (arguments.size() == 4 && arguments[0] == "--mutated")
            return replay_mutated(std::stoul(arguments[1]), fuzz::find_target(arguments[2]), arguments[3]) > 0
                       ? 0
                       : 1;
        for (std::size_t i = accepted ? 1 : 0; i < arguments.size(); ++i)
            inputs += replay_folder(arguments[i], accepted);
        for (const fuzz::Target& target : fuzz::targets())
            if (accepted && target.seeds != nullptr)
                for (const std::string& seed : target.seeds()) replay(target, "made", seed, true);
    } catch (const std::exception& error) {
        std::cout << std::endl;
        std::cerr << "fuzz_replay: " << error.what() << '\n';
        return 1;
    }
    std::cout << inputs << " files\n";
    return inputs > 0 ? 0 : 1;
}
