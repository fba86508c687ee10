// What a written file is after success and after failure. Links, devices and pipes: tests/cli/output_test.py.
#include "sim/core/output_file.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/test_support.hpp"

namespace overlap::test::output_file_test {

using Catch::Contains;

namespace {

std::string content_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a written file is whole or not there") {
    const TemporaryFolder folder;
    const auto files = [&] {
        return std::distance(std::filesystem::directory_iterator(folder / ""),
                             std::filesystem::directory_iterator());
    };
    write_file_atomically(folder / "out.txt", "first");
    write_file_atomically(folder / "out.txt", "second");
    CHECK(content_of(folder / "out.txt") == "second");
    require_writable(folder / "out.txt");
    require_writable(folder / "other.txt");
    CHECK(content_of(folder / "out.txt") == "second");
    CHECK(files() == 1);  // no temporary file is left
    std::filesystem::create_directory(folder / "taken");
    CHECK_THAT(error_of([&] { write_file_atomically(folder / "taken", "x"); }),
               Contains("taken: is a directory"));
    CHECK_THAT(error_of([&] { write_file_atomically(folder / "no/out.txt", "x"); }),
               Contains("cannot be written"));
    CHECK(files() == 2);
}

TEST_CASE("temporary files of writers that were killed go, others stay") {
    const TemporaryFolder folder;
    for (const char* name : {".sim-1-0.part", "own.part", ".sim-config"})
        std::ofstream(folder / name) << name;
    remove_temporary_files(folder / "");
    CHECK_FALSE(std::filesystem::exists(folder / ".sim-1-0.part"));
    CHECK(content_of(folder / "own.part") == "own.part");
    CHECK(content_of(folder / ".sim-config") == ".sim-config");
}

}  // namespace overlap::test::output_file_test
