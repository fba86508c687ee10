// Reads inputs once, without a fuzzer: fuzz_replay [--accepted] FOLDER…, where FOLDER/TARGET/… are inputs of
// a target. Ends with 1 at the first input that is neither read nor refused as it should be, by SIGALRM where
// one takes longer than 5 s, which is the limit of the fuzzers, too. With
// --accepted every input must be read.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "sim/core/errors.hpp"
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

void replay(const fuzz::Target& target, const std::string& name, const std::string& input, bool must_accept) {
    std::cout << target.name << ' ' << name << ' ' << std::flush;  // seen where the input ends the program
    alarm(longest_seconds);
    const std::optional<std::string> refused = fuzz::refusal(target, input);
    alarm(0);
    std::cout << (refused ? "refused: " + refused->substr(0, 200) : "read") << '\n';
    if (must_accept && refused) throw UserError(target.name + " " + name + ": is a seed, but is refused");
}

std::size_t replay_folder(const fs::path& folder, bool must_accept) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files)
        replay(fuzz::find_target(file.parent_path().filename().string()), file.filename().string(),
               contents(file), must_accept);
    return files.size();
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool accepted = !arguments.empty() && arguments.front() == "--accepted";
    std::size_t inputs = 0;
    try {
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
