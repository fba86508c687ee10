#include <array>
#include <bit>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <span>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/sweep/sweep_analysis.hpp"
#include "sim/report/sweep/sweep_report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

// Columns are written to the page as they lie in memory; JavaScript's typed arrays read the same layout on
// every machine with a browser.
static_assert(std::endian::native == std::endian::little);

template <class Value>
std::string base64(const std::vector<Value>& values) {
    using namespace boost::archive::iterators;
    using Encoder = base64_from_binary<transform_width<const char*, 6, 8>>;
    const auto bytes = std::as_bytes(std::span(values));
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    std::string text(Encoder(begin), Encoder(begin + bytes.size()));
    text.resize((text.size() + 3) / 4 * 4, '=');
    return text;
}

/// Text numbers, in the smallest integer type that fits; `none` becomes the first unused number.
Json list_json(const std::vector<std::string>& values, const std::vector<std::uint32_t>& at) {
    const auto packed = [&]<class Number>(Number) {
        std::vector<Number> numbers;
        numbers.reserve(at.size());
        for (const std::uint32_t id : at)
            numbers.push_back(static_cast<Number>(std::min<std::size_t>(id, values.size())));
        return Json{{"values", values}, {"width", sizeof(Number)}, {"at", base64(numbers)}};
    };
    if (values.size() < UINT8_MAX) return packed(std::uint8_t{});
    if (values.size() < UINT16_MAX) return packed(std::uint16_t{});
    return packed(std::uint32_t{});
}

Json dimension_json(const Dimension& dimension) {
    Json json = list_json(dimension.values, dimension.at);
    json["name"] = dimension.name;
    json["label"] = dimension.label;
    json["shown"] = dimension.shown();
    json["choice"] = dimension.choice;
    json["swept"] = dimension.swept;
    return json;
}

Json metric_json(const SweepPoints& points, std::size_t id) {
    const Metric& metric = sweep_metrics[id];
    static const std::array better{"less", "more", "neither"};  // by Metric::Better
    const std::vector<float> values(points.metrics[id].begin(), points.metrics[id].end());
    return {{"name", metric.name},
            {"label", metric.label},
            {"unit", metric.unit},
            {"scale", metric.scale},
            {"better", better[static_cast<std::size_t>(metric.better)]},
            {"at", base64(values)}};
}

Json data_of(const SweepPoints& points) {
    Json data;
    const auto [x, y] = first_dimensions(points);
    data["first"] = Json::array();
    for (const Dimension* one : {x, y}) data["first"].push_back(one == nullptr ? "" : one->name);
    if (y == nullptr && x != nullptr) data["first"][1] = x->name;
    data["dimensions"] = mapped(points.dimensions, dimension_json);
    for (std::size_t id = 0; id < column::count; ++id) data["metrics"].push_back(metric_json(points, id));
    data["scenario"] = list_json(points.scenarios, points.scenario);
    data["number"] = base64(std::vector<std::uint32_t>(points.point.begin(), points.point.end()));
    data["error"] = list_json(points.errors, points.error);
    return data;
}

std::string kept_text(const SweepPoints& points) {
    static const std::array<std::string, 4> texts{"", "the best point of each scenario, schedule and agent",
                                                  "the best point of each scenario and schedule",
                                                  "the best point of each scenario"};
    return texts[static_cast<std::size_t>(points.kept)];
}

/// At most a dozen values of an axis, some from either end.
std::string values_text(const SweepInfo::Axis& axis) {
    constexpr std::size_t most = 12;
    std::string text;
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
        if (axis.values.size() > most && i == most - 1) {
            text += ", … ";
            i = axis.values.size() - 1;
        }
        const Json& value = axis.values[i];
        text += (i == 0 || text.ends_with(' ') ? "" : ", ") +
                (value.is_array() ? joined(mapped(value, unquoted), " ") : unquoted(value));
    }
    return text + " (" + std::to_string(axis.values.size()) + ")";
}

/// Whose GEMMs are priced, and the weakest kind of price of the points.
std::string prices_text(const SweepPoints& points) {
    std::string text;
    for (const std::string& library : points.gemm_libraries)
        text += (text.empty() ? "GEMMs of " : "; ") + library;
    std::string bases;
    for (const auto& [basis, count] : points.bases)
        bases +=
            (bases.empty() ? "points by their weakest price: " : ", ") + std::to_string(count) + " " + basis;
    if (!bases.empty()) text += (text.empty() ? "" : "; ") + bases;
    return text.empty() ? "" : text + "; ";
}

/// The expected errors of the makespans, where they are known.
std::string sureness(const SweepPoints& points) {
    double least = 0, most = 0;
    std::size_t known = 0, simulated = 0;
    for (std::size_t row = 0; row < points.rows(); ++row) {
        if (points.figure(row, column::makespan) > 0) ++simulated;
        const double error = points.figure(row, column::makespan_error);
        if (!(error >= 0)) continue;
        least = known == 0 ? error : std::min(least, error);
        most = std::max(most, error);
        ++known;
    }
    if (known == 0) return "errors are not known: no measurement tests some of the prices (sim prints which)";
    return "makespans are expected to be " + fixed(least, 1) + (most > least ? " to " + fixed(most, 1) : "") +
           " % off" +
           (known < simulated ? "; not known for " + std::to_string(simulated - known) + " points" : "");
}

void add_summary(Page& page, const SweepPoints& points) {
    const SweepInfo& info = points.info;
    if (!info.description.empty()) page.text(info.description);
    page.text(std::to_string(points.read) + " points of " + std::to_string(info.combinations) +
                  " combinations, " + std::to_string(points.scenarios.size()) + " scenarios, " +
                  (points.failed == 0 ? "no errors" : std::to_string(points.failed) + " failed") + ".",
              points.failed > 0);
    if (points.kept != Kept::all)
        page.text("More than " + std::to_string(most_points_shown) + " points: this page holds only " +
                      kept_text(points) + " (" + std::to_string(points.rows()) + " points), and at most " +
                      std::to_string(most_failures_shown) +
                      " failed ones. Heat maps over anything else show the best of those.",
                  true);
    std::vector<std::pair<std::string, std::string>> facts;
    for (const SweepInfo::Axis& axis : info.axes)
        facts.emplace_back(joined(axis.fields, " with "), values_text(axis));
    for (const std::string& constraint : info.constraints) facts.emplace_back("where", constraint);
    append(facts, points.constants);
    facts.emplace_back("how sure", prices_text(points) + sureness(points));
    facts.emplace_back("run by", "sim " + info.version);
    page.facts(facts);
    if (info.base.empty()) return;
    Page base;
    base.code(info.base.dump(2));
    page.details("run config that all points share", base);
}

std::vector<std::string> best_row(const SweepPoints& points, const ScenarioBest& one) {
    const double fastest = points.figure(one.best, column::makespan);
    std::vector<std::string> row{points.scenarios[one.scenario],
                                 std::to_string(one.points),
                                 choice_of(points, one.best),
                                 significant(fastest),
                                 fixed(points.figure(one.best, column::speedup), 3),
                                 percent_text(points.figure(one.best, column::ideal) / fastest),
                                 one.largest_loss};
    if (!one.runner_up) {
        row.insert(row.end(), {"", "", ""});
        return row;
    }
    row.push_back(choice_of(points, *one.runner_up));
    row.push_back(signed_percent_text(points.figure(*one.runner_up, column::makespan) / fastest - 1));
    row.push_back(one.decided_by
                      ? one.decided_by->part + " (+" + significant(one.decided_by->more_us) + " us)"
                      : "equal");
    return row;
}

}  // namespace

Page page_of(const SweepPoints& points) {
    Page page("Sweep " + points.info.name);
    add_summary(page, points);
    const auto row_of = [&](const ScenarioBest& one) { return best_row(points, one); };
    page.heading(
        "Best schedule by scenario",
        "Of ideal: the ideal time over the makespan. Runner-up: the best of another schedule; it is slower "
        "by the share beside it, most of all for what decides.");
    page.table({"scenario", "points", "best", "makespan us", "speed-up", "of ideal", "largest loss",
                "runner-up", "slower by", "what decides"},
               mapped(best_by_scenario(points), row_of), "best");
    page.set_sweep(data_of(points));
    page.heading("Heat map",
                 "Each cell is the best of all schedules and parameters with these two values, of one "
                 "operator on one machine. Point at a cell for its point.");
    page.view("heat");
    page.heading("Pareto front",
                 "Points that no other beats in both: time, and what communication takes for it.");
    page.view("pareto");
    page.heading("Losses", "The best point of each schedule; the line in a bar is its makespan.");
    page.view("losses");
    page.heading("Points");
    page.view("points");
    return page;
}

}  // namespace overlap
