#include "sim/calibrate/fits/error_classes.hpp"

#include <iomanip>
#include <sstream>

namespace overlap {

std::ostream& put_percent(std::ostream& out, int width, double share) {
    return out << std::setw(width) << 100 * share << " %";
}

std::string error_table(std::span<const ErrorClass> classes) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1)
        << "class                          n  fitted: mean     p90    bias  held out: mean     p90    bias\n";
    for (const ErrorClass& one : classes) {
        if (one.count == 0) continue;
        out << std::left << std::setw(26) << one.name << std::right << std::setw(6) << one.count;
        put_percent(out, 12, one.fitted.mean);
        put_percent(out, 6, one.fitted.p90);
        put_percent(out << std::showpos, 6, one.fitted.bias) << std::noshowpos;
        put_percent(out, 14, one.held_out.mean);
        put_percent(out, 6, one.held_out.p90);
        put_percent(out << std::showpos, 6, one.held_out.bias) << std::noshowpos << '\n';
    }
    return out.str();
}

}  // namespace overlap
