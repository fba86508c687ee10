#include "sim/core/config_reader.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/test_support.hpp"

namespace overlap::test::config_reader_test {

using Catch::Contains;

namespace {

/// The error of reading `text` as an object with `read`.
std::string reading(const std::string& text, const std::function<void(ConfigObject&)>& read) {
    return error_of([&] {
        const Json json = parse_json(text, "x.json");
        ConfigObject config(json, "x.json");
        read(config);
        config.finish();
    });
}

}  // namespace

TEST_CASE("a complete object is read without an error") {
    const std::string text = R"({"a": 1.5, "b": 2, "c": "d", "e": true, "f": {"value": 3, "source": "s"},
                                 "g": [1, 2], "h": [0.5], "i": ["x"], "j": [{}], "k": null})";
    CHECK(reading(text, [](ConfigObject& config) {
              CHECK(config.number("a", positive) == 1.5);
              CHECK(config.integer("b", 2, 2) == 2);
              CHECK(config.text("c") == "d");
              CHECK(config.boolean("e"));
              CHECK(config.sourced("f", {0, 3}) == 3);
              CHECK(config.integers("g", 1, 2) == std::vector<std::int64_t>{1, 2});
              CHECK(config.numbers("h", fraction) == std::vector<double>{0.5});
              CHECK(config.texts("i") == std::vector<std::string>{"x"});
              CHECK(config.objects("j").size() == 1);
              CHECK(config.raw("k").is_null());
              CHECK(config.has("a"));
              CHECK_FALSE(config.has("z"));
              CHECK(config.keys().size() == 10);
          }) == "");
}

TEST_CASE("a missing key is named, with the key that was probably meant") {
    const auto read = [](ConfigObject& config) { config.number("bandwidth", positive); };
    CHECK_THAT(reading("{}", read), Contains("x.json: /bandwidth: is missing"));
    CHECK_THAT(reading(R"({"bandwith": 1})", read), Contains("(found 'bandwith')"));
}

TEST_CASE("an unknown key is named, with the nearest one or all that are allowed") {
    const auto read = [](ConfigObject& config) { config.number("chunks", positive); };
    CHECK_THAT(reading(R"({"chunks": 1, "chunk": 2})", read),
               Contains("x.json: /chunk: is an unknown key (did you mean 'chunks'?)"));
    CHECK_THAT(reading(R"({"chunks": 1, "colour": 2})", read),
               Contains("/colour: is an unknown key (allowed: chunks)"));
    CHECK_THAT(reading(R"({"a": 1})", [](ConfigObject&) {}), Contains("(none is allowed here)"));
}

TEST_CASE("a value of the wrong type is shown beside the type expected") {
    using Read = std::function<void(ConfigObject&)>;
    const std::vector<std::string> names{"one", "two"};
    const std::vector<std::tuple<std::string, Read, std::string>> cases{
        {R"("1")", [](ConfigObject& c) { c.number("a", positive); }, R"(is "1", expected a number > 0)"},
        {"null", [](ConfigObject& c) { c.number("a", non_negative); }, "is null, expected a number >= 0"},
        {"1.5", [](ConfigObject& c) { c.integer("a", 1, 9); }, "is 1.5, expected a whole number from 1 to 9"},
        {"1.0", [](ConfigObject& c) { c.integer("a", 1, 9); }, "is 1.0, expected a whole number from 1 to 9"},
        {"true", [](ConfigObject& c) { c.integer("a", 1, 9); }, "is true, expected a whole number"},
        {"1", [](ConfigObject& c) { c.text("a"); }, "is 1, expected text"},
        {"1", [](ConfigObject& c) { c.boolean("a"); }, "is 1, expected true or false"},
        {"1", [](ConfigObject& c) { c.object("a"); }, "is 1, expected an object"},
        {"{}", [](ConfigObject& c) { c.objects("a"); }, "is {}, expected an array"},
        {"[1]", [](ConfigObject& c) { c.objects("a"); }, "/a/0: is 1, expected an object"},
        {R"([1, "x"])", [](ConfigObject& c) { c.integers("a", 0, 9); },
         R"(/a/1: is "x", expected a whole number)"},
        {"[null]", [](ConfigObject& c) { c.numbers("a", positive); }, "/a/0: is null, expected a number"},
        {"[1]", [](ConfigObject& c) { c.texts("a"); }, "/a/0: is 1, expected text"},
        {R"("twoo")", [&](ConfigObject& c) { c.choice("a", names); }, "is 'twoo' (did you mean 'two'?)"},
        {R"("seventeen")", [&](ConfigObject& c) { c.choice("a", names); }, "(allowed: one, two)"},
        {"5", [](ConfigObject& c) { c.sourced("a", positive); }, "is 5, expected an object"},
        {R"({"value": 1})", [](ConfigObject& c) { c.sourced("a", positive); }, "/a/source: is missing"},
        {R"({"value": 1, "source": ""})", [](ConfigObject& c) { c.sourced("a", positive); },
         "/a/source: is empty"},
        {R"({"value": 1, "source": "s", "unit": "m"})", [](ConfigObject& c) { c.sourced("a", positive); },
         "/a/unit: is an unknown key"},
    };
    int checked = 0;
    for (const auto& [value, read, expected] : cases) {
        const std::string error = reading(R"({"a": )" + value + "}", read);
        CHECK_THAT(error, Catch::StartsWith("x.json: /a") && Contains(expected));
        CHECK_THAT(error, !Contains("\n"));
        ++checked;
    }
    CHECK(checked == 19);
    CHECK_THAT(reading("[1]", [](ConfigObject&) {}), Contains("x.json: /: is [1], expected an object"));
}

TEST_CASE("a number out of range, or none at all, is refused") {
    const auto share = [](ConfigObject& config) { config.number("a", fraction); };
    const auto count = [](ConfigObject& config) { config.integer("a", 1, 1'000'000'000); };
    CHECK_THAT(reading(R"({"a": -0.1})", share), Contains("/a: is -0.1, expected a number from 0 to 1"));
    CHECK_THAT(reading(R"({"a": 1.1})", share), Contains("/a: is 1.1"));
    CHECK_THAT(reading(R"({"a": 0})", [](ConfigObject& c) { c.number("a", positive); }),
               Contains("a number > 0"));
    CHECK_THAT(reading(R"({"a": 0})", count),
               Contains("/a: is 0, expected a whole number from 1 to 1000000000"));
    CHECK_THAT(reading(R"({"a": -8})", count), Contains("/a: is -8"));
    // Above the largest signed number: would be negative if it were only cast.
    CHECK_THAT(reading(R"({"a": 18446744073709551615})", count), Contains("/a: is 18446744073709551615"));
    CHECK_THAT(reading(R"({"a": 1e300})", count), Contains("/a: is 1e+300, expected a whole number"));
    // JSON has neither of these; both must be one clear line all the same.
    CHECK_THAT(reading(R"({"a": 1e999})", share), Contains("x.json: not valid JSON") && Contains("1e999"));
    CHECK_THAT(reading(R"({"a": NaN})", share), Contains("x.json: not valid JSON"));
    const Json nan{{"a", std::numeric_limits<double>::quiet_NaN()}};
    CHECK_THAT(error_of([&] { ConfigObject(nan, "x.json").number("a", non_negative); }),
               Contains("x.json: /a: is"));
}

TEST_CASE("a long value is cut in the message") {
    const std::string error = reading(R"({"a": ")" + std::string(1000, 'x') + R"("})",
                                      [](ConfigObject& config) { config.number("a", positive); });
    CHECK(error.size() < 200);
    CHECK_THAT(error, Contains("..."));
}

TEST_CASE("broken JSON is one line that says where") {
    const auto nothing = [](ConfigObject&) {};
    CHECK_THAT(reading(R"({"a": [1, 2)", nothing), Contains("x.json: not valid JSON") && !Contains("\n"));
    CHECK_THAT(reading("", nothing), Contains("x.json: not valid JSON"));
    CHECK_THAT(reading("{}{}", nothing), Contains("x.json: not valid JSON"));
    CHECK_THAT(reading(R"({"a": 1, "a": 2})", nothing),
               Contains("x.json: key 'a' is given twice in one object"));
    // The same key in two objects is no duplicate.
    CHECK(error_of([] { parse_json(R"({"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]})", "x"); }) ==
          "");
}

TEST_CASE("a file that cannot be read says why") {
    const TemporaryFolder folder;
    CHECK_THAT(error_of([&] { read_json_file(folder / "none.json"); }),
               Contains("none.json: cannot be read"));
    CHECK_THAT(error_of([&] { read_json_file(folder / ""); }),
               Contains("is a directory, expected a JSON file"));
    std::ofstream(folder / "cut.json") << R"({"a": )";
    CHECK_THAT(error_of([&] { read_json_file(folder / "cut.json"); }), Contains("cut.json: not valid JSON"));
    std::ofstream(folder / "good.json") << R"({"a": 1})";
    CHECK(read_json_file(folder / "good.json").at("a") == 1);
    // What was read is kept, until the file has another time or size.
    const auto is_read = [&](const std::string& name, const char* content, int hours_ago) {
        std::ofstream(folder / name) << content;
        std::filesystem::last_write_time(
            folder / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours_ago));
        return read_json_file(folder / name).at("a").get<int>();
    };
    CHECK(is_read("old.json", R"({"a": 1})", 3) == 1);
    CHECK(is_read("old.json", R"({"a": 2})", 2) == 2);
    CHECK(is_read("old.json", R"({"a": 33})", 2) == 33);
    CHECK(is_read("new.json", R"({"a": 1})", 0) == 1);
    CHECK(is_read("new.json", R"({"a": 2})", 0) == 2);
}

TEST_CASE("the nearest name is one that could have been meant") {
    const std::vector<std::string> names{"ring_chunked", "serial", "shard_p2p"};
    CHECK(nearest_name("ring_chunkd", names) == "ring_chunked");
    CHECK(nearest_name("seriel", names) == "serial");
    CHECK(nearest_name("quicksort", names).empty());
    CHECK(nearest_name("x", {}).empty());
}

TEST_CASE("a JSON array is read in time that is linear in its objects") {
    // A builder that walks over the array at each object takes 16 times as long for 4 times as many, and minutes here.
    const auto seconds = [](int objects) {
        std::string text = "[{}";
        for (int i = 1; i < objects; ++i) text += ",{}";
        const std::clock_t begin = std::clock();  // of the processor, so that other load does not count
        CHECK(parse_json(text + "]", "x").size() == static_cast<std::size_t>(objects));
        return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    };
    seconds(10'000);
    CHECK(seconds(200'000) < 10 * seconds(50'000) + 0.2);
}

TEST_CASE("an object has 20,000 keys at most") {
    const auto keys = [](int count) {
        std::string text = "{\"0\": 0";
        for (int i = 1; i < count; ++i) text += ",\"" + std::to_string(i) + "\": 0";
        return text + "}";
    };
    CHECK(parse_json(keys(20'000), "x").size() == 20'000);
    CHECK(error_of([&] { parse_json(keys(20'001), "x"); }) ==
          "x: has an object of more than 20000 keys, the most that are read");
}

}  // namespace overlap::test::config_reader_test
