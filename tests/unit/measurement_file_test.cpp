// Files of the microbenchmark: read as they are, refused in one line that names
// place, key, value and what is allowed.
#include "sim/calibrate/measurements/measurement_file.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/calibrate/measurements/measured_gemms.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::measurement_file_test {

using test::error_of;

namespace {

const std::string machine = R"({"schema":1,"kind":"machine","date":"2026-11-21T13:29:09Z","device":"GPU"})"
                            "\n";

/// A GEMM of 8 × 16 × 32 with `more` fields before its results.
std::string gemm(const std::string& results, const std::string& more = R"("pass":1)") {
    return R"({"kind":"gemm",)" + more +
           R"(,"case_line":4,"m":8,"n":16,"k":32,"dtype":"bf16","beta":"0","units":0,"weights":"warm","gpu":0,)" +
           results + "}\n";
}
const std::string good = R"("unit":"us","median":3.5,"min":3,"p90":4,"chain_us":2,"samples":[3,3.5,4])";

class File {
public:
    std::string error(const std::string& content) {
        std::ofstream(path_, std::ios::binary) << content;
        return error_of([&] { read_measurements(path_); });
    }
    MeasurementFile read(const std::string& content) {
        std::ofstream(path_, std::ios::binary) << content;
        return read_measurements(path_);
    }

private:
    test::TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "x.jsonl";
};

/// `good` with one value replaced.
std::string with(std::string from, const std::string& to) {
    std::string result = good;
    const auto at = result.find(from);
    REQUIRE(at != std::string::npos);
    return result.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a file of measurements is read: machine, kinds, passes, lines") {
    File file;
    const MeasurementFile read =
        file.read(machine + gemm(good) + gemm(good, R"("pass":2)") +
                  R"({"kind":"latency","pass":1,"case_line":5,"what":"events","skipped":"no clock"})"
                  "\n");
    CHECK(read.date() == "2026-11-21");
    REQUIRE(read.measurements.size() == 2);
    CHECK(read.measurements[1].pass == 2);
    CHECK(read.measurements[1].line == 3);
    CHECK(read.measurements[1].fields["median"].get<double>() == 3.5);
    CHECK(read.not_measured == 1);
    // Both passes of one shape are one row, its time the mean of chain_us.
    const auto rows = measured_gemms(read, DType::bf16);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].shape.k == 32);
    CHECK(to_microseconds(rows[0].time) == Approx(2));
    CHECK(measured_gemms(read, DType::fp8).empty());
}

TEST_CASE("a broken line is refused with its place") {
    File file;
    CHECK_THAT(file.error(""), Catch::EndsWith("x.jsonl: is empty, expected a line of kind 'machine'"));
    std::string cut = gemm(good);
    cut.resize(cut.size() - 20);
    CHECK_THAT(file.error(machine + cut), Catch::EndsWith("x.jsonl:2: is cut off, expected an end of line"));
    CHECK_THAT(file.error(machine + cut + "\n" + gemm(good)), Catch::Contains("x.jsonl:2: is cut off"));
    CHECK_THAT(file.error(machine + "\n" + gemm(good)), Catch::Contains("x.jsonl:2: is cut off or no JSON"));
    CHECK_THAT(file.error(machine + gemm(good + R"(,"x":[1,2)")),
               Catch::Contains("x.jsonl:2: not valid JSON"));
    CHECK_THAT(file.error(machine + gemm(good + R"(,"min":2)")),
               Catch::EndsWith("x.jsonl:2: key 'min' is given twice in one object"));
}

TEST_CASE("numbers that are none, negative or zero are refused with key, value and what is allowed") {
    File file;
    const auto error = [&](const std::string& results) { return file.error(machine + gemm(results)); };
    const std::string finite = ", expected a finite number or null";
    CHECK_THAT(error(with("3.5,\"min", "NaN,\"min")), Catch::EndsWith("x.jsonl:2: /median: is NaN" + finite));
    CHECK_THAT(error(with("3.5,\"min", "-Infinity,\"min")),
               Catch::EndsWith("x.jsonl:2: /median: is -Infinity" + finite));
    CHECK_THAT(error(with("[3,3.5", "[3,inf")), Catch::EndsWith("x.jsonl:2: /samples: is inf" + finite));
    CHECK_THAT(error(with("\"chain_us\":2", "\"chain_us\":1e999")), Catch::Contains("1e999"));
    CHECK_THAT(error(with("\"chain_us\":2", "\"chain_us\":-2")),
               Catch::EndsWith("x.jsonl:2: /chain_us: is -2, expected a number >= 0"));
    CHECK_THAT(error(with("[3,3.5", "[3,-3.5")),
               Catch::EndsWith("x.jsonl:2: /samples/1: is -3.5, expected a number >= 0"));
    CHECK_THAT(error(with("\"min\":3", "\"min\":0")),
               Catch::EndsWith("x.jsonl:2: /min: is 0, expected a number > 0"));
    CHECK_THAT(error(with("\"min\":3", "\"min\":\"3\"")),
               Catch::Contains("/min: is \"3\", expected a number"));
    CHECK(error(with("\"min\":3", "\"min\":null")).empty());
}

TEST_CASE("what is served first may start earlier than the other") {
    File file;
    const std::string row =
        R"({"kind":"first_served","pass":1,"at":"middle","unit":"us","median":-3,"min":-5,"p90":140,)"
        R"("gemm_first":0.5,"samples":[-5,-3,140]})"
        "\n";
    CHECK(file.read(machine + row).measurements.size() == 1);
}

TEST_CASE("two kernels may start in the same step of the GPU's clock") {
    File file;
    const std::string row =
        R"({"kind":"latency","pass":1,"what":"mark_apart","unit":"us","median":0.064,"min":0,"p90":0.32})"
        "\n";
    CHECK(file.read(machine + row).measurements.size() == 1);
    std::string launch = row;
    launch.replace(launch.find("mark_apart"), 10, "launch");
    CHECK_THAT(file.error(machine + launch), Catch::EndsWith("/min: is 0, expected a number > 0"));
}

TEST_CASE("units, kinds, schema and repeated cases are checked") {
    File file;
    const std::string row = gemm(good);
    CHECK_THAT(file.error(machine + gemm(with("\"unit\":\"us\",", ""))),
               Catch::Contains("x.jsonl:2: /unit: is missing"));
    CHECK_THAT(file.error(machine + gemm(with("\"us\"", "\"ms\""))), Catch::Contains("/unit: is 'ms' ("));
    CHECK_THAT(file.error(machine + gemm(with("\"min\":3,", ""))), Catch::Contains("/min: is missing"));
    CHECK_THAT(file.error(machine + row + gemm(good, R"("pass":2)") + row),
               Catch::EndsWith("x.jsonl:4: /: repeats the case and pass of line 2, expected each once"));
    CHECK_THAT(file.error(machine + gemm(good, R"("pass":0)")),
               Catch::Contains("x.jsonl:2: /pass: is 0, expected a whole number from 1"));
    CHECK_THAT(file.error(machine + R"({"kind":"gem","pass":1})" + "\n"),
               Catch::EndsWith("x.jsonl:2: /kind: is 'gem' (did you mean 'gemm'?)"));
    CHECK_THAT(file.error(machine + "{\"pass\":1}\n"), Catch::Contains("x.jsonl:2: /kind: is missing"));
    CHECK_THAT(file.error(row),
               Catch::Contains("x.jsonl:1: /kind: is 'gemm', expected 'machine' in the first"));
    CHECK_THAT(file.error(machine + machine), Catch::Contains("x.jsonl:2: /kind: is 'machine', expected"));
    std::string other = machine;
    other.replace(other.find(":1,"), 3, ":2,");
    CHECK_THAT(file.error(other),
               Catch::EndsWith("x.jsonl:1: /schema: is 2, expected a whole number from 1 to 1"));
}

TEST_CASE("a GEMM's own fields are checked") {
    File file;
    const auto error = [&](const std::string& from, const std::string& to) {
        std::string row = gemm(good);
        row.replace(row.find(from), from.size(), to);
        const MeasurementFile read = file.read(machine + row);
        return error_of([&] { measured_gemms(read, DType::bf16); });
    };
    CHECK_THAT(error("\"m\":8", "\"m\":8.5"),
               Catch::Contains("x.jsonl:2: /m: is 8.5, expected a whole number"));
    CHECK_THAT(error("\"bf16\"", "\"bf61\""), Catch::Contains("/dtype: is 'bf61' (did you mean 'bf16'?)"));
    CHECK_THAT(error("\"beta\":\"0\"", "\"beta\":\"2\""), Catch::Contains("/beta: is '2'"));
    CHECK_THAT(error("\"chain_us\":2,", ""), Catch::EndsWith("/chain_us: is missing"));
}

TEST_CASE("families hold an operator with its parts; each lies in one fold") {
    // K-slabs of 8192: 4096 and 2048. 7168 = 7 · 1024 is another operator.
    CHECK(operator_family({1024, 2560, 8192}) == operator_family({64, 2560, 2048, DType::bf16, true}));
    CHECK(operator_family({1024, 2560, 8192}) != operator_family({1024, 2560, 7168}));
    CHECK(operator_family({1024, 2560, 8192}) != operator_family({1024, 5120, 8192}));
    const auto row = [](std::int64_t n, std::int64_t k) {
        return GemmMeasurement{{1, n, k}, microseconds(1), 1, {}};
    };
    const std::vector<GemmMeasurement> rows{row(1, 8), row(1, 3), row(2, 8), row(1, 4), row(3, 8)};
    // In order: (1,1), (1,3), (2,1), (3,1), dealt to two folds in turn.
    CHECK(deal_families(rows, 2) ==
          std::map<GemmFamily, int>{{{1, 1}, 0}, {{1, 3}, 1}, {{2, 1}, 0}, {{3, 1}, 1}});
}

}  // namespace overlap::test::measurement_file_test
