#include "sim/commands/sizes.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/core/errors.hpp"
#include "sim/core/shown.hpp"

namespace overlap {

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

}  // namespace overlap
