#include "sim/core/operators.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

double ExpertExchange::copies_to(int groups) const {
    if (is_low_latency()) return choices;
    // groups · (1 − Π_i (experts − experts/groups − i) / (experts − i)): a token's experts are different.
    double missed = 1;
    for (int i = 0; i < choices; ++i)
        missed *= std::max(1 - static_cast<double>(experts) / groups / (experts - i), 0.0);
    return groups * (1 - missed);
}

GemmShape parse_shape(const std::string& text, const std::string& where) {
    std::array<std::int64_t, 3> dims{};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const auto [stop, error] = std::from_chars(at, end, dims[i]);
        const bool separated = i + 1 < dims.size() ? stop != end && *stop == 'x' : stop == end;
        if (error != std::errc() || !separated || dims[i] < 1 || dims[i] > 1'000'000'000)
            throw UserError(where + " is " + in_quotes(text) +
                            ", expected MxNxK, each 1 to 1e9, such as 8192x2560x8192");
        at = stop + (i + 1 < dims.size() ? 1 : 0);
    }
    return {dims[0], dims[1], dims[2]};
}

Bytes parse_size(const std::string& text, const std::string& where) {
    static constexpr std::array<std::pair<std::string_view, double>, 8> units{{{"", 1},
                                                                               {"B", 1},
                                                                               {"KB", 1e3},
                                                                               {"MB", 1e6},
                                                                               {"GB", 1e9},
                                                                               {"KiB", 1024.0},
                                                                               {"MiB", 1048576.0},
                                                                               {"GiB", 1073741824.0}}};
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
    for (const auto& [name, factor] : units)
        if (error == std::errc() && unit == name && std::isfinite(number) && number > 0 &&
            number * factor <= 1e15)
            return Bytes(number * factor);
    throw UserError(where + " is " + in_quotes(text) +
                    ", expected a size up to 1e15 bytes such as 4096, 64KB, 64MB or 1GiB");
}

std::string shape_name(const GemmShape& shape) {
    return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

}  // namespace overlap
