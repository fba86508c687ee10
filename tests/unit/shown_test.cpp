#include "sim/core/shown.hpp"

#include <catch2/catch.hpp>

#include "sim/core/failure.hpp"
#include "sim/core/file_kind.hpp"
#include "tests/test_support.hpp"

namespace overlap::test::shown_test {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

std::string repeated(const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
}

/// Json::dump throws on what is no UTF-8.
bool is_utf8(const std::string& text) {
    try {
        return !Json(text).dump().empty();
    } catch (const Json::exception&) {
        return false;
    }
}

}  // namespace

TEST_CASE("an output has line breaks and tabs, and no other control character") {
    CHECK(printable("a\tb\n\x1b[31m\r\xC3") == "a\tb\n\\u001b[31m\\r\xEF\xBF\xBD");
    CHECK(printable("\xE2\x80\xA6 %") == "\xE2\x80\xA6 %");
}

TEST_CASE("bytes that are no UTF-8 are replaced, all others kept") {
    const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
    // One, two, three and four bytes: a, é, €, 😀.
    CHECK(valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    CHECK(valid_utf8("a\xC3") == "a" + bad);                    // cut off
    CHECK(valid_utf8("\xC3(") == bad + "(");                    // not continued
    CHECK(valid_utf8("\xA9") == bad);                           // continues nothing
    CHECK(valid_utf8("\xC0\xAF") == bad + bad);                 // '/' in two bytes
    CHECK(valid_utf8("\xED\xA0\x80") == bad + bad + bad);       // a surrogate
    CHECK(valid_utf8("\xF4\x90\x80\x80") == repeated(bad, 4));  // above U+10FFFF
    for (int first = 0; first < 256; ++first)
        for (int second = 0; second < 256; ++second) {
            const std::string text{static_cast<char>(first), static_cast<char>(second), 'x'};
            const std::string mended = valid_utf8(text);
            if (!is_utf8(mended) || (mended == text) != is_utf8(text))
                FAIL("bytes " << first << " " << second);
        }
}

TEST_CASE("a value is shown in one piece of valid text, however long and whatever is in it") {
    CHECK(in_quotes("gemm") == "'gemm'");
    CHECK(in_quotes(std::string("a\0b\x1B[31m\n\x7F", 10)) == "'a\\u0000b\\u001b[31m\\n\\u007f'");
    CHECK(in_quotes("\xC2\x85") == "'\\u0085'");  // NEL, a control of two bytes
    // 57 bytes are 28 characters of two bytes, and half of one that is left out.
    CHECK(in_quotes(repeated("\xC3\xA9", 100)) == "'" + repeated("\xC3\xA9", 28) + "...'");
    CHECK(shown(Json("say \"a\\b\"")) == R"("say \"a\\b\"")");
    CHECK(shown(Json{{"a", {1, 2.5, nullptr, true}}}) == R"({"a":[1,2.5,null,true]})");
    for (int length = 0; length < 80; ++length)
        for (const char* end : {"\xC3\xA9", "\xF0\x9F\x98\x80", "\xFF", "\x1B"}) {
            const std::string text = std::string(static_cast<std::size_t>(length), 'x') + repeated(end, 40);
            CHECK(is_utf8(in_quotes(text)));
            CHECK(is_utf8(shown(Json(text))));
            CHECK(shown(Json(text)).size() <= 60);
        }
    const Json large(std::vector<std::string>(100'000, std::string(1000, 'x')));
    CHECK(shown(large).size() == 60);
}

TEST_CASE("a message is one line; of a long one both ends stay") {
    CHECK(one_line("a\nb\r\x1B[1m") == "a b \\u001b[1m");
    CHECK(one_line(std::string("a\0b", 3)) == "a\\u0000b");
    const std::string line = one_line("x.json: " + repeated("\xE2\x82\xAC", 100'000) + ": the cause");
    CHECK(line.size() < 2000);
    CHECK(is_utf8(line));
    CHECK_THAT(line, StartsWith("x.json: ") && Contains("bytes left out") && EndsWith(": the cause"));
}

TEST_CASE("JSON of any bytes can be written") {
    CHECK(json_text(Json{{"a", "\xFF"}}) == "{\"a\":\"\xEF\xBF\xBD\"}");
    CHECK(json_text(Json{{"a", 1}}, 2) == Json{{"a", 1}}.dump(2));
}

TEST_CASE("JSON is nested 100 levels deep at most") {
    const auto nested = [](int levels) { return repeated("[", levels) + repeated("]", levels); };
    CHECK(error_of([&] { parse_json(nested(100), "x"); }) == "");
    CHECK(error_of([&] { parse_json(nested(101), "x"); }) == "x: is nested more than 100 levels deep");
    CHECK(error_of([&] { parse_json(nested(80'000), "x"); }) == "x: is nested more than 100 levels deep");
    CHECK(error_of([&] { parse_json(repeated("{\"a\":", 80'000), "x"); }) ==
          "x: is nested more than 100 levels deep");
}

TEST_CASE("keys and names in errors are cut, and their control characters escaped") {
    const std::string key(1'000'000, 'k');
    const Json json{{key, 1}};
    const std::string error = error_of([&] { ConfigObject(json, "x.json").finish(); });
    CHECK(error.size() < 500);
    CHECK_THAT(error, StartsWith("x.json: /kkk") && EndsWith("is an unknown key (none is allowed here)"));
    const Json nul{{std::string("a\0b", 3), 1}};
    CHECK(error_of([&] { ConfigObject(nul, "x.json").finish(); }) ==
          "x.json: /a\\u0000b: is an unknown key (none is allowed here)");
}

TEST_CASE("the nearest name is nearest without regard to case") {
    const std::vector<std::string> types{"fp16", "bf16", "fp32"};
    CHECK(nearest_name("BF16", types) == "bf16");
    CHECK(nearest_name("FP16", types) == "fp16");
    CHECK(nearest_name("bf17", types) == "bf16");
    CHECK(nearest_name("a", std::vector<std::string>{"B", "A", "a"}) == "a");
    CHECK(nearest_name("quantised", types) == "");
    CHECK(nearest_name(std::string(1'000'000, 'x'), types) == "");
}

TEST_CASE("where no name is near, those that contain the word are suggested first") {
    const std::vector<std::string> names{"gpt", "my_llama", "llama_attention", "Llama_mlp"};
    CHECK(suggestion("llama", names) == " (did you mean one of 'llama_attention', 'Llama_mlp', 'my_llama'?)");
    CHECK(suggestion("attention", names) == " (did you mean 'llama_attention'?)");
    CHECK(suggestion("quantised", names) == " (allowed: gpt, my_llama, llama_attention, Llama_mlp)");
    std::vector<std::string> many;
    for (int i = 0; i < 55; ++i) many.push_back("workload_" + std::to_string(100 + i));
    CHECK_THAT(suggestion("xyz", many), EndsWith("workload_115 and 39 more)"));  // 55 - 16
    CHECK_THAT(suggestion("workload", many), EndsWith("'workload_115' and 39 more?)"));
}

TEST_CASE("a file of another kind is told from a bad one of the right kind") {
    const auto error = [](const std::string& text, FileKind expected) {
        return error_of([&] { require_kind(parse_json(text, "x"), "x.json", expected); });
    };
    using enum FileKind;
    CHECK(error(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096})", run_config) ==
          "x.json: is the config of a Hugging Face model, expected a run config (sim model FILE "
          "--topology T takes it)");
    CHECK_THAT(error(R"({"traceEvents": []})", measured_case),
               Contains("is a Chrome trace") && Contains("sim import"));
    CHECK_THAT(error(R"({"axes": {}, "base": {}})", run_config),
               Contains("is a sweep") && Contains("sim sweep"));
    CHECK_THAT(error(R"({"system": "a", "scenario": {}})", chrome_trace), Contains("sim compare"));
    CHECK_THAT(error(R"({"schedule": "serial"})", workload), Contains("sim --config"));
    for (const char* fine : {R"({"schedule": 5})", R"({"schedul": "serial"})", "[]", "7"})
        CHECK(error(fine, run_config) == "");
    CHECK(error(R"({"operators": [], "axes": {}})", workload) == "");  // its reader refuses the unknown key
}

TEST_CASE("every exception becomes one line and somebody's fault") {
    const auto failure = [](auto exception) {
        try {
            throw exception;
        } catch (...) {
            return current_failure();
        }
    };
    CHECK(failure(UserError("a\nb")).reason == "a b");
    CHECK_FALSE(failure(UserError("a")).ours);
    CHECK_THAT(failure(std::bad_alloc()).reason, StartsWith("needs more memory"));
    CHECK_FALSE(failure(std::bad_alloc()).ours);
    CHECK_FALSE(failure(std::length_error("vector")).ours);
    const std::filesystem::filesystem_error missing("status", "a/b",
                                                    std::make_error_code(std::errc::filename_too_long));
    CHECK(failure(missing).reason == "a/b: File name too long");
    CHECK_FALSE(failure(missing).ours);
    CHECK_THAT(failure(std::logic_error("x")).reason, StartsWith("internal error: x (please report"));
    CHECK(failure(std::logic_error("x")).ours);
    CHECK(failure(5).ours);
}

}  // namespace overlap::test::shown_test
