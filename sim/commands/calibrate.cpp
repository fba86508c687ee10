#include <chrono>
#include <ctime>
#include <iomanip>
#include <memory>
#include <sstream>

#include "models/calibration/gemm_calibration.hpp"
#include "sim/commands/commands.hpp"

namespace overlap {
namespace {

struct CalibrateFlags {
    std::string data, out = "configs/calibrations", date;
    std::vector<std::string> devices;
};

std::string today() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::ostringstream out;
    out << std::put_time(&utc, "%Y-%m-%d");
    return out.str();
}

void execute(const CalibrateFlags& flags) {
    for (const auto& folder : {std::filesystem::path(flags.data) / "gemm", std::filesystem::path(flags.out)})
        if (!std::filesystem::is_directory(folder)) throw UserError(folder.string() + ": no such folder");
    const std::string date = flags.date.empty() ? today() : flags.date;
    std::ostringstream table;
    table << "device   dtype    fitted   held out: mean     p90  families    rows   4-fold mean     p90\n"
          << std::fixed << std::setprecision(1);
    const auto percent = [&](int width, double share) { table << std::setw(width) << 100 * share << " %"; };
    for (const auto& [device, dtype, errors] :
         write_gemm_calibrations(flags.data, flags.out, date, flags.devices)) {
        table << std::left << std::setw(9) << device << std::setw(6) << name_of(dtype) << std::right;
        percent(7, errors.fitted.mean);
        percent(15, errors.held_out.mean);
        percent(6, errors.held_out.p90);
        table << std::setw(10) << errors.held_out.families << std::setw(8) << errors.held_out.rows;
        percent(12, errors.cross_validated_mean);
        percent(6, errors.cross_validated_p90);
        table << '\n';
    }
    print(table.str());
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "calibrate",
        "Fit cost models to measurements; mean |error| of GEMMs >= 20 us, held out by (N,K) family");
    auto flags = std::make_shared<CalibrateFlags>();
    command->add_option("--data", flags->data, "Folder of measured tables, with gemm/ in it")->required();
    command->add_option("--out", flags->out, "Folder of <device>.json; default configs/calibrations");
    command->add_option("--date", flags->date, "Date for the provenance; default today (UTC)");
    command->add_option("devices", flags->devices, "Devices to fit; default all that have tables");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
