#include "sim/commands/other_runs.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/commands/import_scenario.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/importers/tensor_degree.hpp"
#include "sim/run/candidates.hpp"
#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/device_library.hpp"

namespace overlap {
namespace {

/// Runs lists of operators on a machine.
class Lists {
public:
    Lists(const std::string& topology, const ConfigFolder& folder)
        : resolver_(folder), has_price_(gemm_prices(topology, folder)) {
        config_.origin = "the recorded list";
        config_.topology = topology;
        config_.schedule = "concurrent";
        config_.seeds = 1;
        machine_ = resolver_.machine(config_);
        if (!device().collective_library->collectives.empty()) config_.params["algorithm"] = "library";
    }

    const DeviceSpec& device() const { return machine_->topology.device(); }
    int gpus() const { return machine_->topology.gpus(); }

    double makespan_us(const Json& operators, const Json& params = Json::object()) {
        RunConfig config = config_;
        config.params.update(params);
        config.workload = {
            {"name", "recorded"}, {"ranks", gpus()}, {"order", "program"}, {"operators", operators}};
        return to_microseconds(makespan_of(resolver_.resolve_for_numbers(config)));
    }

    /// What an operator of a list takes alone; none if the machine has no price for it.
    std::optional<double> price(const Json& op) {
        Json alone{{"name", "alone"}};
        for (const auto& [key, value] : op.items())
            if (!contains(not_of_its_work, key)) alone[key] = value;
        const auto [known, is_new] = prices_.emplace(alone.dump(), std::nullopt);
        if (!is_new || !is_priced(op)) return known->second;
        try {
            known->second = makespan_us(Json::array({alone}));
        } catch (const UserError&) {  // such as a group that is none of this machine's
        }
        return known->second;
    }

private:
    static inline const std::vector<std::string> not_of_its_work{
        "name", "needs", "host_needs", "host_us", "recorded_us", "gap_us", "stream"};

    bool is_priced(const Json& op) const {
        if (op.at("type") != "gemm") return op.at("type") == "collective";
        GemmShape shape;
        shape.dtype = static_cast<DType>(place_of(dtype_names, op.at("dtype").get<std::string>()));
        return !has_price_ || has_price_(shape);
    }

    Resolver resolver_;
    HasPrice has_price_;
    RunConfig config_;
    Resolver::MachinePtr machine_;
    std::map<std::string, std::optional<double>> prices_;
};

/// What an operator takes after a change, and how much of that is as recorded.
struct ChangedTime {
    double us = 0, kept_us = 0;
};

/// A list whose operators take other times than recorded.
struct Rescaled {
    Json operators;
    double kept_us = 0, all_us = 0;  ///< kernels' time that is as recorded, and all

    double recorded_us(std::size_t i) const { return operators[i].at("recorded_us"); }
    void set(std::size_t i, const ChangedTime& time) {
        // A time of 0 would be priced.
        constexpr double least_us = 1e-3;
        all_us += recorded_us(i);
        kept_us += time.kept_us;
        operators[i]["recorded_us"] = std::max(least_us, time.us);
        if (time.us == 0) operators[i]["gap_us"] = 0;
    }
    /// A share of its recorded time; all of it: as recorded.
    void scale(std::size_t i, double share) {
        const double us = recorded_us(i);
        set(i, {share * us, share == 1 ? us : 0});
    }
    double kept_share() const { return kept_us / std::max(1e-9, all_us); }
};

class OtherRuns {
public:
    explicit OtherRuns(const PairedIteration& of)
        : of_(of),
          lists_(of.topology, of.folder),
          seen_(list_of(of.iteration.spans, of.flags.spreads() ? 1 : of.recording.ranks, Prices::recorded,
                        gemm_prices(of.topology, of.folder))) {
        std::vector<std::string> notes;  // are of the advice already
        list_ = spread_list(of.flags, of.recording, of.iteration, Prices::recorded, of.folder, notes);
        for (Json& op : list_.operators)
            if (!op.contains("recorded_us"))  // a collective of a spread list
                op["recorded_us"] = lists_.price(op).value_or(0), op["gap_us"] = 0;
        list_us_ = lists_.makespan_us(list_.operators);
    }

    std::vector<OtherRun> all() && {
        if (list_.has_collectives) add_channels();
        if (lists_.gpus() > 1 && !of_.flags.spreads()) add_degrees();
        add_machines();
        return std::move(result_);
    }

private:
    OtherRun& add(const std::string& what) { return result_.emplace_back(OtherRun{.what = what}); }
    void add_unknown(const std::string& what, const std::string& why) { add(what).note = why; }
    double gain_us(double makespan_us, double of_us) const {
        return of_.base_us * (1 - makespan_us / std::max(1e-9, of_us));
    }
    double gain_us(const Json& operators) { return gain_us(lists_.makespan_us(operators), list_us_); }

    std::set<std::string> kinds_of_collectives() const {
        std::set<std::string> kinds;
        for (const Json& op : list_.operators)
            if (op.at("type") == "collective") kinds.insert(op.at("collective"));
        return kinds;
    }

    /// Kinds of collectives of the list that were measured with all channels only.
    std::vector<std::string> without_channels() const {
        std::set<std::string> kinds = kinds_of_collectives();
        for (const auto& [kind, fit] : lists_.device().collective_library->collectives)
            if (!fit.bus_by_channels.empty()) kinds.erase(name_of(kind));
        return {kinds.begin(), kinds.end()};
    }

    /// Numbers of channels with which all kinds of collectives of the list were measured.
    std::vector<int> channels() const {
        std::map<int, std::size_t> times;
        const std::set<std::string> kinds = kinds_of_collectives();
        for (const auto& [kind, fit] : lists_.device().collective_library->collectives)
            if (kinds.contains(name_of(kind)))
                for (const auto& [count, rate] : fit.bus_by_channels) ++times[count];
        std::vector<int> counts;
        for (const auto& [count, found] : times)
            if (found == kinds.size()) counts.insert(counts.begin(), count);
        return counts;
    }

    void add_channels() {
        const DeviceLibrary& library = *lists_.device().collective_library;
        const std::string name = library.name.empty() ? "the library" : short_name(library.name);
        const std::vector<int> counts = channels();
        if (counts.empty())
            return add_unknown(
                "fewer compute units for " + name,
                lists_.device().name + " has no bus_GBps_by_channels of " + joined(without_channels()));
        std::vector<std::string> notes;
        const RecordedList priced =
            spread_list(of_.flags, of_.recording, of_.iteration, Prices::of_the_machine, of_.folder, notes);
        const double all_us = lists_.makespan_us(priced.operators);
        for (const int count : counts) {
            OtherRun& run =
                add(std::to_string(count) + " instead of " + std::to_string(std::llround(library.channels)) +
                    " compute units for " + name);
            run.gain_us = gain_us(lists_.makespan_us(priced.operators, {{"channels", count}}), all_us);
            run.kept_share =
                priced.shares.priced_us > 0 ? 1 - priced.shares.priced_us / priced.shares.all_us() : 1;
        }
    }

    void add_degrees() {
        TensorPairs pairs;
        const std::string what = "another degree of tensor parallelism";
        if (of_.pairs.empty()) return add_unknown(what, "there are no pairs");
        for (const TracePair& pair : of_.pairs) {
            const RankGroup& group = pair.first.group;
            const std::int64_t size = group.members(static_cast<int>(of_.recording.ranks));
            if (group.stride != 1 || group.ranks || (pairs.degree != 0 && pairs.degree != size) ||
                pair.first.pair.collective == CollectiveKind::all_to_all)
                return add_unknown(what, "the pairs are of several groups, or of no tensor parallelism");
            pairs.degree = size;
            const CollectiveKind kind = pair.first.pair.collective;
            const bool gemm_first = pair.first.pair.order == Order::gemm_first;
            pairs.shares_tokens |= kind == CollectiveKind::reduce_scatter || !gemm_first;
            if (gemm_first && kind == CollectiveKind::all_gather) continue;  // of columns of results
            (gemm_first ? pairs.closes : pairs.opens).insert(pair.gemms.begin(), pair.gemms.end());
        }
        if (pairs.opens.empty() && pairs.closes.empty())
            return add_unknown(what, "the pairs are of no tensor parallelism");
        if (pairs.degree % 2 == 0) add_degree(pairs, pairs.degree / 2);
        add_degree(pairs, pairs.degree * 2);
    }

    void add_degree(const TensorPairs& pairs, std::int64_t to) {
        const std::int64_t ranks = of_.recording.ranks, gpus = ranks == pairs.degree ? to : ranks;
        const std::string what = "TP " + std::to_string(to) + " instead of " + std::to_string(pairs.degree) +
                                 " on " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
        const std::string device = lists_.device().name;
        const std::string topology =
            gpus == ranks ? of_.topology : topology_of(device, static_cast<int>(gpus), of_.folder);
        if (topology.empty() && to > 1)
            return add_unknown(what, "no topology of " + std::to_string(gpus) + " x " + device + " is known");
        try {
            const std::vector<ChangedOperator> changed = with_degree(seen_, pairs, ranks, to);
            Lists others(topology.empty() ? of_.topology : topology, of_.folder);
            Rescaled list{seen_.operators};
            double by_part_us = 0;
            for (std::size_t i = 0; i < changed.size(); ++i) {
                const auto& [op, share] = changed[i];
                const bool is_priced = !op.is_null() || share == 0;
                const auto time = is_priced ? priced(seen_.operators[i], op, others) : std::nullopt;
                if (!time && share != 1 && share != 0) by_part_us += list.recorded_us(i);
                time ? list.set(i, *time) : list.scale(i, share);
            }
            OtherRun& run = add(what);
            run.gain_us = gain_us(list.operators);
            run.kept_share = list.kept_share();
            run.note = std::to_string(std::llround(100 * by_part_us / std::max(1e-9, list.all_us))) +
                       " % of the kernels' time by their part; the same tokens in a group";
        } catch (const UserError& why) {
            add_unknown(what, why.what());
        }
    }

    /// An operator's recorded time, times new price over old price; none if one is not known. `changed`: null, it is
    /// gone. What a collective took beyond its price it waited for other ranks, and waits again.
    std::optional<ChangedTime> priced(const Json& op, const Json& changed, Lists& others) {
        const std::optional<double> before = lists_.price(op),
                                    after = changed.is_null() ? 0.0 : others.price(changed);
        if (!before || !after || *before <= 0) return std::nullopt;
        const double us = op.at("recorded_us");
        const double waits = op.at("type") == "collective" ? std::max(0.0, us - *before) : 0;
        return ChangedTime{waits + (us - waits) * *after / *before, waits};
    }

    /// Those that --other-topology names, else the shipped ones of as many GPUs of each other device.
    std::vector<std::string> machines() const {
        if (!of_.flags.other_topologies.empty()) return of_.flags.other_topologies;
        const std::vector<std::string> known = of_.folder.names("topologies");
        std::vector<std::string> machines;
        for (const std::string& device : of_.folder.names("devices")) {
            const std::string name = device + "_" + std::to_string(lists_.gpus());
            if (name != of_.topology && device != lists_.device().name && contains(known, name))
                machines.push_back(name);
        }
        return machines;
    }

    /// Kernels that read and write memory, and are neither GEMM nor attention, copy nor wait.
    std::set<std::string> kernels_of_memory() const {
        std::set<std::string> names;
        for (std::size_t i = 0; i < seen_.spans.size(); ++i) {
            const RecordedSpan& span = *seen_.spans[i];
            if (span.kind == TaskKind::memory_bound && !span.waits && !span.with_host && !span.attention)
                names.insert(seen_.operators[i].at("name"));
        }
        return names;
    }

    void add_machines() {
        const std::set<std::string> of_memory = kernels_of_memory();
        const std::size_t first = result_.size();
        for (const std::string& name : machines()) {
            Lists others(name, of_.folder);
            if (others.gpus() != lists_.gpus())
                throw UserError("command line: --other-topology " + name + " has " +
                                std::to_string(others.gpus()) + " GPUs, but the recorded run " +
                                std::to_string(lists_.gpus()));
            add_machine(name, others, of_memory);
        }
        // Those that are not known stand last.
        std::stable_sort(result_.begin() + static_cast<std::ptrdiff_t>(first), result_.end(),
                         [](const OtherRun& a, const OtherRun& b) { return a.gain_us > b.gain_us; });
    }

    void add_machine(const std::string& name, Lists& others, const std::set<std::string>& of_memory) {
        Rescaled kept{list_.operators}, by_memory{list_.operators};
        const double memory = lists_.device().hbm / others.device().hbm;
        for (std::size_t i = 0; i < list_.operators.size(); ++i) {
            const Json& op = list_.operators[i];
            const auto time = priced(op, op, others);
            const bool reads = !time && of_memory.contains(op.at("name").get<std::string>());
            time ? kept.set(i, *time) : kept.scale(i, 1);
            time ? by_memory.set(i, *time) : by_memory.scale(i, reads ? memory : 1);
        }
        OtherRun& run = add("machine " + name);
        run.was_named = !of_.flags.other_topologies.empty();
        if (kept.kept_us == kept.all_us) {
            run.note = "no kernel has a shape or size that both price";
            return;
        }
        run.gain_us = gain_us(kept.operators);
        run.by_memory_us = gain_us(by_memory.operators);
        run.kept_share = kept.kept_share();
    }

    const PairedIteration& of_;
    Lists lists_;
    RecordedList seen_, list_;  ///< as recorded, with its spans; of the run that gains are of
    double list_us_ = 0;
    std::vector<OtherRun> result_;
};

}  // namespace

std::vector<OtherRun> other_runs(const PairedIteration& of) {
    return OtherRuns(of).all();
}

}  // namespace overlap
