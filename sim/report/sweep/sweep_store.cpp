#include "sim/report/sweep/sweep_store.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <set>

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

std::uint32_t id_of(const std::string& text, std::unordered_map<std::string, std::uint32_t>& ids,
                    std::vector<std::string>& texts) {
    const auto [found, is_new] = ids.try_emplace(text, static_cast<std::uint32_t>(texts.size()));
    if (is_new) texts.push_back(text);
    return found->second;
}

/// The number that a text begins with ("2x": 2), if any; "nan" and "inf" begin names ("nano", "infiniband").
std::optional<double> leading_number(const std::string& text) {
    double number = 0;
    if (text.find_first_of("0123456789.") > (text.starts_with('-') ? 1U : 0U)) return {};
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return {};
    return number;
}

/// No value first, then numbers by size, then texts with the numbers in them by size (g2, g10).
bool before(const std::string& a, const std::string& b) {
    if (a.empty() != b.empty()) return a.empty();
    const std::optional<double> x = leading_number(a), y = leading_number(b);
    if (x.has_value() != y.has_value()) return x.has_value();
    if (x && *x != *y) return *x < *y;
    return strverscmp(a.c_str(), b.c_str()) < 0;
}

std::size_t index_of(const std::vector<Dimension>& dimensions, const std::string& name) {
    const auto found = std::ranges::find(dimensions, name, &Dimension::name);
    return found == dimensions.end() ? SIZE_MAX : static_cast<std::size_t>(found - dimensions.begin());
}

template <class Value>
void reorder(std::vector<Value>& values, const std::vector<std::size_t>& order) {
    values = mapped(order, [&](std::size_t at) { return values[at]; });
}

void sort_values(Dimension& dimension) {
    std::vector<std::size_t> order(dimension.values.size());
    std::vector<std::uint32_t> place(order.size());
    std::iota(order.begin(), order.end(), 0);
    // A point without a factor has that of 1.
    const std::string unchanged = dimension.is_what_if() ? "1x" : "";
    std::ranges::stable_sort(order, before, [&](std::size_t at) -> const std::string& {
        return dimension.values[at].empty() ? unchanged : dimension.values[at];
    });
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    reorder(dimension.values, order);
    for (std::uint32_t& id : dimension.at) id = place[id];
}

}  // namespace

template <class Visit>
void SweepStore::for_each_column(Visit visit) {
    visit(points_.point);
    for (Dimension& dimension : points_.dimensions) visit(dimension.at);
    for (std::vector<double>& figures : points_.metrics) visit(figures);
    visit(points_.scenario);
    visit(points_.error);
}

SweepStore::SweepStore(std::vector<Dimension> dimensions, std::size_t most)
    : most_(most),
      schedule_(index_of(dimensions, "schedule")),
      agent_(index_of(dimensions, "agent")),
      ids_(dimensions.size()) {
    points_.dimensions = std::move(dimensions);
}

void SweepStore::add(const SweepRow& row) {
    ++points_.read;
    Key ids, scenario;
    for (std::size_t i = 0; i < row.values.size(); ++i) {
        Dimension& dimension = points_.dimensions[i];
        ids.push_back(id_of(row.values[i], ids_[i], dimension.values));
        if (!dimension.choice) scenario.push_back(ids.back());
    }
    const std::uint32_t error = id_of(row.error, error_ids_, points_.errors);
    if (!row.error.empty()) {
        ++points_.failed;
        if (points_.kept != Kept::all && failures_kept_ >= most_failures_shown) return;
        ++failures_kept_;
        put(points_.rows(), row, ids, SweepPoints::none, error);
    } else {
        const auto next = static_cast<std::uint32_t>(scenario_ids_.size());
        keep(row, ids, scenario_ids_.try_emplace(std::move(scenario), next).first->second, error);
    }
    if (full() && !overflown_) reduce();
}

void SweepStore::keep(const SweepRow& row, const Key& ids, std::uint32_t scenario, std::uint32_t error) {
    std::size_t at = points_.rows();
    if (points_.kept != Kept::all) {
        const auto [group, is_new] = groups_.try_emplace(group_of(scenario, ids), at);
        at = group->second;
        if (!is_new && points_.figure(at, column::makespan) <= row.figures[column::makespan]) return;
    }
    put(at, row, ids, scenario, error);
}

void SweepStore::put(std::size_t at, const SweepRow& row, const Key& ids, std::uint32_t scenario,
                     std::uint32_t error) {
    if (at == points_.rows()) resize(at + 1);
    points_.point[at] = row.point;
    for (std::size_t i = 0; i < ids.size(); ++i) points_.dimensions[i].at[at] = ids[i];
    for (std::size_t i = 0; i < column::count; ++i) points_.metrics[i][at] = row.figures[i];
    points_.scenario[at] = scenario;
    points_.error[at] = error;
}

void SweepStore::move(std::size_t from, std::size_t to) {
    for_each_column([&](auto& values) { values[to] = values[from]; });
}

void SweepStore::resize(std::size_t rows) {
    for_each_column([&](auto& values) { values.resize(rows); });
}

SweepStore::Key SweepStore::group_of(std::uint32_t scenario, const Key& ids) const {
    Key key{scenario};
    if (points_.kept < Kept::best_of_scenario && schedule_ != SIZE_MAX) key.push_back(ids[schedule_]);
    if (points_.kept < Kept::best_of_schedule && agent_ != SIZE_MAX) key.push_back(ids[agent_]);
    return key;
}

/// Once not all points are kept, failed points have a limit of their own.
bool SweepStore::full() const {
    return points_.rows() - (points_.kept == Kept::all ? 0 : failures_kept_) > most_;
}

void SweepStore::reduce() {
    while (full()) {
        if (points_.kept == Kept::best_of_scenario) {
            overflown_ = true;
            return;
        }
        points_.kept = static_cast<Kept>(static_cast<int>(points_.kept) + 1);
        groups_.clear();
        failures_kept_ = 0;
        std::size_t kept = 0;
        for (std::size_t row = 0; row < points_.rows(); ++row) {
            if (!points_.ok(row)) {
                if (failures_kept_ < most_failures_shown) {
                    ++failures_kept_;
                    move(row, kept++);
                }
                continue;
            }
            const Key ids = mapped(points_.dimensions, [&](const Dimension& one) { return one.at[row]; });
            const auto [group, is_new] = groups_.try_emplace(group_of(points_.scenario[row], ids), kept);
            if (is_new)
                move(row, kept++);
            else if (points_.figure(row, column::makespan) < points_.figure(group->second, column::makespan))
                move(row, group->second);
        }
        resize(kept);
    }
}

SweepPoints SweepStore::finish() {
    sort_by_point();
    for (Dimension& dimension : points_.dimensions) {
        sort_values(dimension);
        if (dimension.values.size() == 1 && !dimension.values[0].empty())
            points_.constants.emplace_back(dimension.name, dimension.values[0]);
    }
    std::erase_if(points_.dimensions, [](const Dimension& dimension) { return dimension.values.size() < 2; });
    label_dimensions();
    name_scenarios();
    return std::move(points_);
}

void SweepStore::sort_by_point() {
    std::vector<std::size_t> order(points_.rows());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](std::size_t row) { return std::pair(points_.point[row], row); };
    std::ranges::sort(order, {}, key);
    for_each_column([&](auto& values) { reorder(values, order); });
}

/// Names of what-ifs are long paths; the last part is enough unless two have the same.
void SweepStore::label_dimensions() {
    const auto is_last_part = [](const std::string& name, const std::string& part) {
        return name == part || name.ends_with("." + part);
    };
    for (Dimension& dimension : points_.dimensions) {
        const std::string& name = dimension.name;
        for (std::size_t dot = name.rfind('.');; dot = name.rfind('.', dot - 1)) {
            dimension.label = dot == std::string::npos ? name : name.substr(dot + 1);
            const auto same = std::ranges::count_if(points_.dimensions, [&](const Dimension& other) {
                return is_last_part(other.name, dimension.label);
            });
            if (same == 1 || dot == std::string::npos || dot == 0) break;
        }
    }
}

/// Named by the values of all dimensions that axes name, and of others that are needed to distinguish
/// scenarios, in the order of the columns (a workload's name before its sizes).
void SweepStore::name_scenarios() {
    std::vector<std::size_t> example(scenario_ids_.size(), SIZE_MAX);  // a row of each
    for (std::size_t row = 0; row < points_.rows(); ++row)
        if (points_.ok(row)) example[points_.scenario[row]] = row;
    std::vector<const Dimension*> named, others;
    for (const Dimension& dimension : points_.dimensions)
        if (!dimension.choice) (dimension.swept ? named : others).push_back(&dimension);
    const auto told_apart = [&] {
        std::set<Key> keys;
        for (const std::size_t row : example)
            keys.insert(mapped(named, [&](const Dimension* one) { return one->at[row]; }));
        return keys.size();
    };
    for (const Dimension* dimension : others) {
        const std::size_t before = told_apart();
        if (before == example.size()) break;
        named.push_back(dimension);
        if (told_apart() == before) named.pop_back();
    }
    for (const std::size_t row : example) {
        std::string name;
        for (const Dimension* one : named) {
            if (one->value(row).empty()) continue;
            const bool speaks = one->label == "workload" || one->label == "topology";
            name += (name.empty() ? "" : ", ") + (speaks ? "" : one->label + " ") + one->value(row);
        }
        points_.scenarios.push_back(name.empty() ? "all points" : name);
    }
}

}  // namespace overlap
