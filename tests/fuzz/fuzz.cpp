// What libFuzzer calls. Flags of our own begin with "--", which libFuzzer leaves alone: --target=NAME,
// --seeds=FOLDER (writes the target's own seeds there first), --list (prints the targets).
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <span>

#include "sim/core/errors.hpp"
#include "tests/fuzz/mutator.hpp"
#include "tests/fuzz/targets.hpp"

using namespace overlap;

namespace {

const fuzz::Target* chosen = nullptr;

void write_seeds(const std::filesystem::path& folder) {
    if (chosen->seeds == nullptr) return;
    int number = 0;
    for (const std::string& seed : chosen->seeds())
        std::ofstream(folder / ("made_" + std::to_string(number++)), std::ios::binary) << seed;
}

void read_flags(std::span<char*> flags) {
    std::string seeds;
    for (const std::string flag : flags) {
        if (flag == "--list") {
            for (const fuzz::Target& target : fuzz::targets()) std::cout << target.name << '\n';
            std::exit(0);
        }
        if (flag.starts_with("--target=")) chosen = &fuzz::find_target(flag.substr(9));
        if (flag.starts_with("--seeds=")) seeds = flag.substr(8);
    }
    if (chosen == nullptr) throw UserError("--target=NAME is missing (--list names them)");
    if (!seeds.empty()) write_seeds(seeds);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    try {
        read_flags({*argv, static_cast<std::size_t>(*argc)});
    } catch (const UserError& error) {
        std::cerr << "fuzz_tests: " << error.what() << '\n';
        std::exit(2);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusal(*chosen, {reinterpret_cast<const char*>(data), size});
    return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
    // A quarter of the mutations are of bytes, so that broken JSON is tried, too.
    if (chosen->is_json() && seed % 4 != 0) {
        const std::string text = fuzz::mutated_json({reinterpret_cast<const char*>(data), size}, seed);
        if (!text.empty() && text.size() <= most) {
            std::copy(text.begin(), text.end(), data);
            return text.size();
        }
    }
    return LLVMFuzzerMutate(data, size, most);
}
