#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/report/sweep/sweep_report.hpp"

namespace overlap {
namespace {

struct ReportFlags {
    std::string folder, out, plot;
    std::string kind = sweep_plot_names[0];
    SweepPlot wanted;
};

/// A picture, or a folder with one picture of every kind if the name has no extension.
void draw(const SweepPoints& points, const std::filesystem::path& where, SweepPlot plot) {
    if (where.has_extension()) {
        write_picture(where, to_gnuplot(points, plot));
        return print(where.string() + "\n");
    }
    make_folder(where);
    for (std::size_t kind = 0; kind < sweep_plot_names.size(); ++kind) {
        plot.kind = static_cast<SweepPlotKind>(kind);
        const std::filesystem::path file = where / (sweep_plot_names[kind] + ".svg");
        write_picture(file, to_gnuplot(points, plot));
        print(file.string() + "\n");
    }
}

void execute(ReportFlags& flags) {
    const std::filesystem::path folder = flags.folder, plot = flags.plot;
    flags.wanted.kind = static_cast<SweepPlotKind>(place_of(sweep_plot_names, flags.kind));
    if (!plot.empty()) {
        if (plot.has_extension()) require_picture_name(plot);
        require_gnuplot();
    }
    std::filesystem::path page = flags.out;
    if (page.empty() && plot.empty()) page = folder / "report.html";
    std::vector<std::filesystem::path> outputs{page}, inputs;
    if (plot.has_extension()) outputs.push_back(plot);
    for (const char* name : {"points.csv", "points.jsonl", "sweep.json", "progress.json"})
        inputs.push_back(folder / name);
    if (flags.out.empty() && !plot.has_extension())
        outputs.clear();  // in the folder, if that is one of a sweep
    require_outputs(outputs, inputs);
    const SweepPoints points = read_sweep(folder);
    if (!plot.empty()) draw(points, plot, flags.wanted);
    if (page.empty()) return;
    write_page(page, page_of(points));
    print(page.string() + "\n");
}

}  // namespace

void add_report_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "report", "Make a self-contained page of a sweep, or plots: the best points, and why they are best");
    auto flags = std::make_shared<ReportFlags>();
    SweepPlot& plot = flags->wanted;
    command->add_option("folder", flags->folder, "Output folder of sim sweep FILE --out DIR")->required();
    command->add_option("--out", flags->out,
                        "Page to write (default: report.html in the folder; none with --plot alone)");
    CLI::Option* drawn = command->add_option(
        "--plot", flags->plot, "Picture to draw, FILE.svg or FILE.png, or a folder for all kinds (gnuplot)");
    const auto add = [&](const std::string& name, std::string& value, const std::string& text) {
        return command->add_option(name, value, text)->needs(drawn);
    };
    add("--kind", flags->kind, "Kind of picture")
        ->check(CLI::IsMember(std::vector<std::string>(sweep_plot_names.begin(), sweep_plot_names.end())));
    add("--x", plot.x, "Heat map: what goes across (a column of points.csv)");
    add("--y", plot.y, "Heat map: what goes down");
    add("--value", plot.value, "Heat map: figure (a column of points.csv; default speedup)");
    add("--against", plot.against, "Pareto front: comm_cus (default) or staging_bytes");
    add("--scenario", plot.scenario,
        "Name of a scenario, as on the page (default: the first; heat map: all)");
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
