#include "sim/advise/table.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::int64_t most_tokens = 65536;

/// A run of one way, with its time.
struct Timed {
    std::string name, schedule;
    Json params;
    Seconds time;
};

std::vector<Timed> times_of(const RunConfig& config, const Pair& pair, const AllowedCandidates& allowed,
                            const ConfigFolder& folder, Resolver& resolver) {
    RunConfig one = config;
    one.schedule = "serial";
    one.workload = to_json(Workload{"gemm", "", pair});
    std::vector<Timed> times;
    const Scenario scenario = resolver.resolve(one);
    std::vector<Candidate> candidates = candidates_for(scenario.workload, scenario.machine->topology);
    append(candidates, library_candidates(scenario.workload, scenario.machine->topology));
    std::erase_if(candidates, [&](const Candidate& candidate) { return !allowed.has(candidate); });
    for (const RankedCandidate& ranked_one : ranked(scenario, candidates))
        times.push_back({ranked_one.candidate.label(), ranked_one.candidate.schedule,
                         ranked_one.candidate.params(), ranked_one.makespan});
    for (const PresetTime& preset : presets_of(scenario, folder, allowed))
        times.push_back({preset.name, preset.name, Json::object(), preset.makespan});
    return times;
}

GemmChoices table_of(const TableGemm& gemm, const std::vector<std::vector<Timed>>& by_bucket) {
    std::map<std::string, TableChoice> all;
    std::vector<std::string> kept;
    for (std::size_t bucket = 0; bucket < by_bucket.size(); ++bucket) {
        const Timed *best = nullptr, *serial = nullptr;
        for (const Timed& one : by_bucket[bucket]) {
            TableChoice& choice = all[one.name];
            choice.name = one.name;
            choice.schedule = one.schedule;
            choice.params = one.params;
            choice.times.resize(by_bucket.size());
            choice.times[bucket] = one.time;
            if (best == nullptr || one.time < best->time) best = &one;
            if (one.schedule == "serial" && (serial == nullptr || one.time < serial->time)) serial = &one;
        }
        for (const Timed* one : {best, serial})
            if (one != nullptr && !contains(kept, one->name)) kept.push_back(one->name);
    }
    GemmChoices table{gemm, {}};
    for (const std::string& name : kept) table.choices.push_back(all[name]);
    return table;
}

}  // namespace

std::vector<TableGemm> read_gemms(const ConfigFile& file) {
    ConfigObject root = file.view();
    std::vector<TableGemm> gemms;
    for (ConfigObject& one : root.objects("gemms")) {
        TableGemm gemm{one.text("name"), {}};
        gemm.pair.gemm.m = most_tokens;
        gemm.pair.gemm.n = one.integer("n", 1, 1LL << 40);
        gemm.pair.gemm.k = one.integer("k", 1, 1LL << 40);
        gemm.pair.gemm.dtype = static_cast<DType>(one.choice("dtype", dtype_names));
        gemm.pair.collective = static_cast<CollectiveKind>(one.choice("collective", collective_names));
        const CollectiveKind kind = gemm.pair.collective;
        gemm.pair.order = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce
                              ? Order::gemm_first
                              : Order::collective_first;
        one.finish();
        if (contains(mapped(gemms, &TableGemm::name), gemm.name))
            one.fail("name", "is " + in_quotes(gemm.name) + " a second time");
        gemms.push_back(std::move(gemm));
    }
    root.finish();
    if (gemms.empty()) throw UserError(file.name + ": /gemms: is empty");
    return gemms;
}

std::vector<std::int64_t> table_buckets() {
    std::vector<std::int64_t> buckets;
    for (std::int64_t tokens = 1; tokens <= most_tokens; tokens *= 2)
        for (int quarter = 0; quarter < 4; ++quarter)
            if (tokens * quarter % 4 == 0 && (quarter == 0 || tokens < most_tokens))
                buckets.push_back(tokens + tokens * quarter / 4);
    return buckets;
}

AdviceTable advice_table(const RunConfig& config, const std::vector<TableGemm>& gemms,
                         const AllowedCandidates& allowed, const ConfigFolder& folder,
                         const std::function<void()>& simulated) {
    AdviceTable table;
    table.buckets = table_buckets();
    Resolver resolver(folder);
    table.topology = resolver.machine(config)->topology.name();
    table.host = config.host;
    for (const TableGemm& gemm : gemms) {
        std::vector<std::vector<Timed>> by_bucket;
        for (const std::int64_t tokens : table.buckets) {
            Pair pair = gemm.pair;
            pair.gemm.m = tokens;
            try {
                by_bucket.push_back(times_of(config, pair, allowed, folder, resolver));
            } catch (const UserError&) {
                if (tokens == most_tokens) throw;  // fewer tokens may be fewer than GPUs
                by_bucket.emplace_back();
            }
            simulated();
        }
        table.gemms.push_back(table_of(gemm, by_bucket));
    }
    return table;
}

Json to_json(const AdviceTable& table) {
    Json json{{"schema", 1}, {"topology", table.topology}, {"host", table.host}, {"buckets", table.buckets}};
    json["gemms"] = mapped(table.gemms, [](const GemmChoices& one) {
        const Pair& pair = one.gemm.pair;
        Json gemm{{"name", one.gemm.name},
                  {"n", pair.gemm.n},
                  {"k", pair.gemm.k},
                  {"dtype", name_of(pair.gemm.dtype)},
                  {"collective", name_of(pair.collective)}};
        gemm["choices"] = mapped(one.choices, [](const TableChoice& choice) {
            const auto time = [](const std::optional<Seconds>& at) {
                return at ? Json(to_microseconds(*at)) : Json();
            };
            return Json{{"name", choice.name},
                        {"schedule", choice.schedule},
                        {"params", choice.params},
                        {"times_us", mapped(choice.times, time)}};
        });
        return gemm;
    });
    return json;
}

std::string to_header(const AdviceTable& table) {
    std::size_t most = 0;
    for (const GemmChoices& gemm : table.gemms) most = std::max(most, gemm.choices.size());
    const auto size = [](std::size_t count) { return "[" + std::to_string(count) + "]"; };
    const std::string gemms = size(table.gemms.size()), choices = gemms + size(most);
    std::string names, schedules, times;
    for (const GemmChoices& gemm : table.gemms) {
        names += "    " + Json(gemm.gemm.name).dump() + ",\n";
        schedules += "    {";
        times += "    {\n";
        for (const TableChoice& choice : gemm.choices) {
            schedules +=
                "{" + Json(choice.schedule).dump() + ", " + Json(choice.params.dump()).dump() + "}, ";
            times += "        {";
            for (const auto& time : choice.times)
                times += (time ? shortest(to_microseconds(*time)) : "none") + ", ";
            times += "},\n";
        }
        schedules += "},\n";
        times += "    },\n";
    }
    return "// Made by 'sim advise --table' for " + table.topology +
           ".\n"
           "#pragma once\n\n"
           "namespace overlap_table {\n\n"
           "struct Choice {\n"
           "    const char* schedule = nullptr;  // null: none can run\n"
           "    const char* params = nullptr;    // JSON\n"
           "};\n"
           "constexpr double none = 1e300;  // can't run so few tokens\n"
           "constexpr int gemm_count = " +
           std::to_string(table.gemms.size()) +
           ";\n"
           "constexpr const char* gemms" +
           gemms + " = {\n" + names +
           "};\n"
           "constexpr long buckets" +
           size(table.buckets.size()) + " = {" +
           joined(mapped(table.buckets, [](std::int64_t one) { return std::to_string(one); })) +
           "};\n"
           "constexpr Choice choices" +
           choices + " = {\n" + schedules +
           "};\n"
           "constexpr double times_us" +
           choices + size(table.buckets.size()) + " = {\n" + times +
           "};\n\n"
           "// The fastest choice for `tokens`: times between two buckets lie on a line, which goes on behind the last bucket. `us`: its\n"
           "// time.\n"
           "inline Choice choose(int gemm, long tokens, double* us = nullptr) {\n"
           "    constexpr int last = sizeof(buckets) / sizeof(buckets[0]) - 1;\n"
           "    int high = 1;\n"
           "    while (high < last && buckets[high] < tokens) ++high;\n"
           "    const double part = double(tokens - buckets[high - 1]) / double(buckets[high] - buckets[high - 1]);\n"
           "    Choice best;\n"
           "    double least = none;\n"
           "    if (tokens < buckets[0]) return best;\n"
           "    for (int i = 0; i < " +
           std::to_string(most) +
           " && choices[gemm][i].schedule; ++i) {\n"
           "        const double* of = times_us[gemm][i];\n"
           "        if (of[high] == none || (of[high - 1] == none && part < 1)) continue;\n"
           "        const double time = of[high - 1] == none ? of[high] : of[high - 1] + part * (of[high] - of[high - 1]);\n"
           "        if (time >= least) continue;\n"
           "        least = time;\n"
           "        best = choices[gemm][i];\n"
           "    }\n"
           "    if (us) *us = least;\n"
           "    return best;\n"
           "}\n\n"
           "}  // namespace overlap_table\n";
}

}  // namespace overlap
