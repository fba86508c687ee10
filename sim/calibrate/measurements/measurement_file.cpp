#include "sim/calibrate/measurements/measurement_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "sim/core/shown.hpp"

#include "sim/core/input_file.hpp"

namespace overlap {
namespace {

const std::array<std::string, 12> kinds{"gemm",         "peer_copy", "local_copy",   "memory",
                                        "matrix",       "latency",   "interference", "late_copy",
                                        "first_served", "sustained", "energy",       "machine"};
const std::array<std::string, 1> known_units{"us"};
constexpr std::int64_t most_passes = 1000;
constexpr Range finite{std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};

std::string at_line(const std::filesystem::path& path, std::size_t line) {
    return path.string() + ":" + std::to_string(line);
}

/// Position of the quote that ends the string starting at `begin`, or the end of the text.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
    std::size_t at = begin + 1;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    return std::min(at, text.size());
}

bool is_no_number(std::string word) {
    if (word.starts_with('-') || word.starts_with('+')) word.erase(0, 1);
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return word == "nan" || word == "inf" || word == "infinity";
}

/// JSON has no NaN and infinity, but programs write them.
void refuse_no_numbers(const std::string& text, const std::string& place) {
    constexpr const char* letters = "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string last, key;  // the last string, and the last string before a colon
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '"') {
            const std::size_t end = end_of_string(text, at);
            last = text.substr(at + 1, end - at - 1);
            at = end;
        } else if (text[at] == ':') {
            key = last;
        } else if (std::string_view(letters).find(text[at]) != std::string_view::npos) {
            const std::size_t end = std::min(text.find_first_not_of(letters, at), text.size());
            const std::string word = text.substr(at, end - at);
            if (is_no_number(word))
                throw UserError(
                    one_line(place + ": /" + key + ": is " + word + ", expected a finite number or null"));
            at = end - 1;
        }
    }
}

Json parse_line(const std::string& text, const std::string& place) {
    try {
        return parse_json(text, place);
    } catch (const UserError&) {
        refuse_no_numbers(text, place);
        if (text.empty() || text.back() != '}')
            throw UserError(place + ": is cut off or no JSON object, expected {...} and an end of line");
        throw;
    }
}

/// Whether times of the kind may be below 0. first_served measures how much later one of two kernels starts; all other
/// kinds measure durations.
bool is_signed(const std::string& kind) {
    return kind == "first_served";
}

/// Checks every number of the line, also in arrays and objects.
void require_numbers(const Json& value, bool negative_too, const std::string& pointer,
                     const std::string& place) {
    if (value.is_structured()) {
        for (const auto& [key, member] : value.items())
            require_numbers(member, negative_too, pointer + "/" + key, place);
    } else if (value.is_number()) {
        const auto number = value.get<double>();
        if (std::isfinite(number) && (negative_too || number >= 0)) return;
        throw UserError(place + ": " + pointer + ": is " + shown(value) + ", expected a " +
                        (negative_too ? "finite number" : "number >= 0"));
    }
}

/// The fields that identify a case: all fields before its results.
std::string identity(const Json& fields) {
    std::string result;
    for (const auto& [key, value] : fields.items()) {
        if (key == "unit" || key == "skipped" || key == "error") break;
        result += key + '=' + value.dump() + ' ';
    }
    return result;
}

/// Durations are above 0. How far apart two kernels start may be less than a step of the GPU's clock.
Range allowed_times(const std::string& kind, const Json& line) {
    if (is_signed(kind)) return finite;
    const auto what = line.find("what");
    const bool apart =
        what != line.end() && what->is_string() && what->get<std::string>().ends_with("_apart");
    return apart ? Range{0, finite.high} : positive;
}

void check_times(ConfigObject& line, Range allowed) {
    line.choice("unit", known_units);
    for (const std::string key : {"median", "min", "p90"})
        if (!line.raw(key).is_null()) line.number(key, allowed);
}

}  // namespace

ConfigObject MeasurementFile::view(const Measurement& measurement) const {
    return {measurement.fields, at_line(path, measurement.line)};
}

std::string MeasurementFile::date() const {
    return ConfigObject(machine, at_line(path, 1)).text("date").substr(0, 10);
}

MeasurementFile read_measurements(const std::filesystem::path& path) {
    std::ifstream in = open_input(path, "a file of measurements");
    MeasurementFile file{.path = path, .machine = {}, .measurements = {}};
    std::map<std::string, std::size_t> seen;
    std::string text;
    std::size_t number = 0;
    while (std::getline(in, text)) {
        const std::string place = at_line(path, ++number);
        if (in.eof()) throw UserError(place + ": is cut off, expected an end of line");
        Json fields = parse_line(text, place);
        ConfigObject line(fields, place);
        const std::string& kind = kinds.at(line.choice("kind", kinds));
        require_numbers(fields, is_signed(kind), "", place);
        if ((number == 1) != (kind == "machine"))
            line.fail("kind", "is '" + kind + "', expected 'machine' in the first line and nowhere else");
        if (kind == "machine") {
            line.integer("schema", 1, 1);
            line.text("date");
            line.text("device");
            file.machine = std::move(fields);
            continue;
        }
        const std::int64_t pass = line.integer("pass", 1, most_passes);
        const auto [other, is_new] = seen.emplace(identity(fields), number);
        if (!is_new)
            line.fail("", "repeats the case and pass of line " + std::to_string(other->second) +
                              ", expected each once");
        if (line.has("skipped") || line.has("error")) {
            ++file.not_measured;
            continue;
        }
        check_times(line, allowed_times(kind, fields));
        file.measurements.push_back({kind, pass, number, std::move(fields)});
    }
    if (number == 0) throw UserError(path.string() + ": is empty, expected a line of kind 'machine'");
    return file;
}

}  // namespace overlap
