#include "sim/advise/framework_settings.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

using Time = std::optional<Seconds>;  ///< none: it can't run so few tokens

/// `a` + `b`, if both are known.
Time added(Time a, Time b) {
    return a && b ? Time(*a + *b) : std::nullopt;
}
bool faster(Time a, Time b) {
    return a && (!b || *a < *b);
}
std::string time_text(Time time) {
    return time ? fixed(to_microseconds(*time), 1) + " us" : "can't run";
}

/// Simulated times of GEMMs with their collectives.
class SettingTimes {
public:
    SettingTimes(const RunConfig& config, const ConfigFolder& folder)
        : config_(config), resolver_(folder), machine_(resolver_.machine(config)) {}

    const Topology& topology() const { return machine_->topology; }

    Time of(const Pair& pair, const std::string& schedule, const Json& params = Json::object()) {
        return time([&] { return scenario(pair, schedule, params); });
    }
    /// Without overlap, by the vendor's library or the kernels that servers have for small all-reduces.
    Time without_overlap(const Pair& pair) {
        const Workload workload{"gemm", "", pair};
        std::vector<Candidate> candidates = library_candidates(workload, topology());
        if (candidates.empty()) candidates = candidates_for(workload, topology());
        Time best;
        for (const Candidate& one : candidates)
            if (one.schedule == "serial")
                if (const Time time = of(pair, one.schedule, one.params()); faster(time, best)) best = time;
        return best;
    }
    Time gemm_alone(const GemmShape& gemm) {
        return time([&] {
            RunConfig one = config_;
            one.schedule = "serial";
            one.workload = Json{{"name", "gemm"},
                                {"operators", Json::array({Json{{"name", "gemm"},
                                                                {"type", "gemm"},
                                                                {"m", gemm.m},
                                                                {"n", gemm.n},
                                                                {"k", gemm.k},
                                                                {"dtype", name_of(gemm.dtype)}}})}};
            return resolver_.resolve_for_numbers(one);
        });
    }
    /// Expected error of the time of async tensor parallelism, as a fraction; 0: not known. Throws UserError if it can't run.
    double error_of_async_tp(const Pair& pair) {
        return predict(scenario(pair, "async_tp", Json::object()), true)
            .confidence.makespan_error()
            .value_or(0);
    }

private:
    Scenario scenario(const Pair& pair, const std::string& schedule, const Json& params) {
        RunConfig one = config_;
        one.schedule = schedule;
        one.params = params;
        one.workload = to_json(Workload{"gemm", "", pair});
        return resolver_.resolve_for_numbers(one);
    }
    template <class Resolve>
    Time time(Resolve&& resolve) {
        try {
            return makespan_of(resolve());
        } catch (const UserError&) {
            return std::nullopt;
        }
    }

    RunConfig config_;
    Resolver resolver_;
    Resolver::MachinePtr machine_;
};

Pair with_tokens(Pair pair, std::int64_t tokens) {
    pair.gemm.m = tokens;
    return pair;
}
bool is_gathered(const TableGemm& gemm) {
    return gemm.pair.collective == CollectiveKind::all_gather;
}
/// The GEMM under sequence parallelism: an all-reduce becomes a reduce-scatter, and the all-gather of the next GEMM.
Pair sequence_parallel(const TableGemm& gemm, std::int64_t tokens) {
    Pair pair = with_tokens(gemm.pair, tokens);
    if (pair.collective == CollectiveKind::all_reduce) pair.collective = CollectiveKind::reduce_scatter;
    return pair;
}

/// A time without and with a setting, by buckets of tokens.
struct Compared {
    std::int64_t tokens;
    Time without, with;

    double gain() const { return *without / *with - 1; }
};

/// The fewest tokens from which on all gains exceed `least`; none if the largest one's does not.
std::optional<std::int64_t> from_which(const std::vector<Compared>& rows, double least) {
    std::optional<std::int64_t> first;
    for (const Compared& row : rows)
        if (!row.without || !row.with || row.gain() <= least)
            first.reset();
        else if (!first)
            first = row.tokens;
    return first;
}

std::string in_words(std::optional<std::int64_t> tokens) {
    return tokens ? "from " + std::to_string(*tokens) + " tokens" : "never up to 65536 tokens";
}
std::string gain_text(Time without, Time with) {
    std::string text = time_text(with) + ", " + time_text(without) + " without overlap";
    if (!with || !without) return text;
    const double gain = *without / *with - 1;
    return text + ", " + percent_text(std::abs(gain)) + (gain < 0 ? " slower" : " faster");
}

/// Times of all rows, and what the expected error of a time makes of the threshold.
std::string table_text(const std::vector<Compared>& rows, double error) {
    std::string text = "#   tokens    without, us       with, us     gain\n";
    for (const Compared& row : rows)
        if (row.without && row.with && row.tokens >= 256 && (row.tokens & (row.tokens - 1)) == 0)
            text += "# " + right(std::to_string(row.tokens), 8) +
                    right(fixed(to_microseconds(*row.without), 1), 15) +
                    right(fixed(to_microseconds(*row.with), 1), 15) +
                    right(signed_percent_text(row.gain()), 11) + "\n";
    if (error > 0)
        text += "# A time is expected to be " + percent_text(error) +
                " off. If one of the two is off by that: " + in_words(from_which(rows, -error)) + ", or " +
                in_words(from_which(rows, error)) + ".\n";
    return text;
}

/// Without: tensor parallelism, whose row-parallel GEMMs have all-reduces behind them. With: sequence parallelism, whose
/// collectives are beside GEMMs as async tensor parallelism has them.
std::string vllm(SettingTimes& simulated, const std::vector<TableGemm>& gemms) {
    const auto gathered = std::ranges::count_if(gemms, is_gathered);
    if (gathered == 0 || gathered == std::ssize(gemms))
        throw UserError(
            "command line: --emit vllm: its sequence parallelism changes both kinds of GEMMs, so --gemms needs one "
            "with all_gather and one with reduce_scatter or all_reduce");
    std::vector<Compared> rows;
    for (const std::int64_t tokens : table_buckets()) {
        Compared row{tokens, Seconds{}, Seconds{}};
        for (const TableGemm& gemm : gemms) {
            Pair pair = with_tokens(gemm.pair, tokens);
            row.with = added(row.with, simulated.of(sequence_parallel(gemm, tokens), "async_tp"));
            if (!is_gathered(gemm)) pair.collective = CollectiveKind::all_reduce;
            row.without = added(row.without, is_gathered(gemm) ? simulated.gemm_alone(pair.gemm)
                                                               : simulated.without_overlap(pair));
        }
        rows.push_back(row);
    }
    const std::optional<std::int64_t> tokens = from_which(rows, 0);
    Json passes{{"enable_sp", tokens.has_value()}, {"fuse_gemm_comms", tokens.has_value()}};
    if (tokens) passes["sp_min_token_num"] = *tokens;
    const double error =
        simulated.error_of_async_tp(sequence_parallel(gemms.front(), tokens.value_or(rows.back().tokens)));
    return "# vLLM: sequence parallelism with GEMMs beside its collectives " +
           (tokens ? "pays " + in_words(tokens) : "is to be left off") +
           ".\n"
           "vllm serve MODEL --tensor-parallel-size " +
           std::to_string(simulated.topology().gpus()) + " --compilation-config '" +
           Json{{"pass_config", passes}}.dump() + "'\n" + table_text(rows, error) +
           "# Fields: https://docs.vllm.ai/en/stable/design/fusions (2026-11). Without: all-reduces by the library or a server's "
           "own kernel.\n";
}

/// Inductor has one switch for all GEMMs, so the sum decides; each GEMM's own number stands beside it.
std::string pytorch(SettingTimes& simulated, const std::vector<TableGemm>& gemms) {
    std::vector<Compared> rows;
    for (const std::int64_t tokens : table_buckets()) rows.push_back({tokens, Seconds{}, Seconds{}});
    std::string each;
    for (const TableGemm& gemm : gemms) {
        std::vector<Compared> own;
        for (Compared& row : rows) {
            const Pair pair = sequence_parallel(gemm, row.tokens);
            own.push_back({row.tokens, simulated.without_overlap(pair), simulated.of(pair, "async_tp")});
            row.without = added(row.without, own.back().without);
            row.with = added(row.with, own.back().with);
        }
        each += "#   " + gemm.name + ": " + in_words(from_which(own, 0)) + "\n";
    }
    const std::optional<std::int64_t> tokens = from_which(rows, 0);
    const double error =
        simulated.error_of_async_tp(sequence_parallel(gemms.front(), tokens.value_or(rows.back().tokens)));
    return "# PyTorch: async tensor parallelism " +
           (tokens ? "pays " + in_words(tokens) : "is to be left off") + ".\n" +
           (tokens ? "import torch\n"
                     "from torch.distributed._symmetric_memory import enable_symm_mem_for_group\n\n"
                     "enable_symm_mem_for_group(tp_mesh.get_group().group_name)\n"
                     "torch._inductor.config._micro_pipeline_tp = tokens >= " +
                         std::to_string(*tokens) + "  # before torch.compile\n"
                   : "torch._inductor.config._micro_pipeline_tp = False\n") +
           "# Of each GEMM by itself:\n" + each + table_text(rows, error) +
           "# Switches: torch/_inductor/config.py and torchtitan/distributed/tensor_parallel.py (2.11). Without: NCCL or RCCL, "
           "then the GEMM.\n";
}

/// A GEMM's settings in Transformer Engine's `ub_cfgs`, or none: leave it off.
struct UserBuffers {
    std::string layer;  ///< "fc1_fprop"
    bool gathered;
    Json settings;
    Time without, with;
};

/// Transformer Engine's own limit (UB_MAX_SM of comm_gemm_overlap.cpp).
constexpr int most_sms = 32;

UserBuffers user_buffers(SettingTimes& simulated, const TableGemm& gemm, std::int64_t tokens,
                         std::size_t number) {
    static const std::array<std::string, 4> layers{"qkv", "proj", "fc1", "fc2"};
    if (!contains(layers, gemm.name))
        throw UserError("--gemms: /gemms/" + std::to_string(number) + "/name: is " + in_quotes(gemm.name) +
                        "; Transformer Engine's are qkv, proj, fc1, fc2" +
                        suggestion(gemm.name, {layers.begin(), layers.end()}));
    const Pair pair = sequence_parallel(gemm, tokens);
    UserBuffers found{gemm.name + "_fprop", is_gathered(gemm), {}, simulated.without_overlap(pair), {}};
    const auto take = [&](Time time, Json settings) {
        if (faster(time, found.with)) found.with = time, found.settings = std::move(settings);
    };
    const Json ring{{"method", "ring_exchange"}, {"num_sm", 1}, {"set_sm_margin", 0}};
    if (found.gathered) {
        take(simulated.of(pair, "te_ring_exchange"), ring);
        return found;
    }
    take(simulated.of(pair, "te_ring_exchange_rs"), ring);
    const int peers = simulated.topology().gpus() - 1;
    for (const int splits : {2, 4})
        for (const int each : {1, 2, 4, 8})
            if (each * peers <= most_sms)
                take(simulated.of(pair, "te_pipeline_rs", {{"chunks", splits}, {"copy_cus", each}}),
                     {{"method", "pipeline"},
                      {"num_splits", splits},
                      {"num_sm", each * peers},
                      {"cga_size", 2},
                      {"set_sm_margin", 0}});
    return found;
}

std::string user_buffers_text(const std::vector<UserBuffers>& all, bool yaml) {
    std::string text;
    Json on = Json::object();
    for (const UserBuffers& one : all) {
        const bool pays = faster(one.with, one.without);
        text += "# " + one.layer + ": " + (pays ? "" : "leave it off: ") + gain_text(one.without, one.with) +
                "\n";
        if (!pays) continue;
        on[one.layer] = one.settings;
        if (!yaml) continue;
        text += one.layer + ":\n";
        for (const auto& [key, value] : one.settings.items())
            text += "  " + key + ": " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
    return yaml ? text : text + "ub_cfgs = " + on.dump() + "\n";
}

std::vector<UserBuffers> all_user_buffers(SettingTimes& simulated, const std::vector<TableGemm>& gemms,
                                          std::int64_t tokens) {
    std::vector<UserBuffers> all;
    for (const TableGemm& gemm : gemms) all.push_back(user_buffers(simulated, gemm, tokens, all.size()));
    return all;
}

std::string transformer_engine(SettingTimes& simulated, const std::vector<TableGemm>& gemms,
                               std::int64_t tokens) {
    const std::vector<UserBuffers> all = all_user_buffers(simulated, gemms, tokens);
    std::string switches;
    for (const UserBuffers& one : all)
        if (!faster(one.with, one.without))
            switches += "# The module of " + one.layer + ": " +
                        (one.gathered ? "ub_overlap_ag" : "ub_overlap_rs") + "=False\n";
    return "# Transformer Engine's userbuffers at " + std::to_string(tokens) + " tokens.\n" +
           user_buffers_text(all, false) + switches + "transformer_engine.pytorch.initialize_ub([" +
           std::to_string(tokens) + ", HIDDEN], " + std::to_string(simulated.topology().gpus()) +
           ", ub_cfgs=ub_cfgs)\n"
           "# Keys: transformer_engine/pytorch/module/base.py. Not judged: bulk overlap, dgrad and wgrad, aggregate, fp8 buffers.\n";
}

std::string megatron(SettingTimes& simulated, const std::vector<TableGemm>& gemms, std::int64_t tokens) {
    const std::vector<UserBuffers> all = all_user_buffers(simulated, gemms, tokens);
    const auto pays = [](const UserBuffers& one) { return faster(one.with, one.without); };
    const std::string title = "# Megatron-LM at " + std::to_string(tokens) + " tokens.\n";
    if (std::ranges::none_of(all, pays))
        return title + user_buffers_text(all, true) + "# Leave --tp-comm-overlap off.\n";
    std::string flags = "--sequence-parallel --tp-comm-overlap --tp-comm-overlap-cfg tp_overlap.yaml", rest;
    for (const bool gathered : {true, false}) {
        const auto is_kind = [&](const UserBuffers& one) { return one.gathered == gathered; };
        if (std::ranges::any_of(all, is_kind) &&
            std::ranges::none_of(all, [&](const UserBuffers& one) { return is_kind(one) && pays(one); })) {
            flags += gathered ? " --disable-tp-comm-overlap-ag" : " --disable-tp-comm-overlap-rs";
            continue;
        }
        for (const UserBuffers& one : all)
            if (is_kind(one) && !pays(one))
                rest += gathered ? "# TransformerConfig: tp_comm_overlap_disable_" +
                                       one.layer.substr(0, one.layer.find('_')) + " = True\n"
                                 : "# Only --disable-tp-comm-overlap-rs turns " + one.layer +
                                       " off, and the other reduce-scatters with it.\n";
    }
    return title + flags + "\n" + rest + "# tp_overlap.yaml:\n" + user_buffers_text(all, true) +
           "# Flags: megatron/training/arguments.py; keys: transformer_engine/pytorch/module/base.py.\n";
}

/// A collective beside a GEMM that does not need it: channels of the library's kernel, or copy engines, which can't add.
std::string nccl(SettingTimes& simulated, const std::vector<TableGemm>& gemms, std::int64_t tokens) {
    const auto total = [&](const Json& params, bool by_copy_engines) {
        Time time = Seconds{};
        for (const TableGemm& gemm : gemms) {
            Pair pair = with_tokens(gemm.pair, tokens);
            pair.order = Order::independent;
            const bool moves = pair.collective == CollectiveKind::all_gather ||
                               pair.collective == CollectiveKind::all_to_all;
            time = added(time,
                         simulated.of(pair, "concurrent",
                                      by_copy_engines && moves ? Json{{"algorithm", "zero_cta"}} : params));
        }
        return time;
    };
    struct Setting {
        std::string text;
        bool is_comment;  ///< no line of a shell
        Time time;
    };
    const Json library{{"algorithm", "library"}};
    std::vector<Setting> settings{{"leave the number of channels as it is", true, total(library, false)}};
    if (!settings.front().time)
        throw UserError("--topology " + simulated.topology().name() +
                        ": no times of its vendor's library for these collectives are known");
    for (const int channels : {32, 16, 8, 4, 2}) {
        Json fewer = library;
        fewer["channels"] = channels;
        settings.push_back({"NCCL_MAX_CTAS=" + std::to_string(channels), false, total(fewer, false)});
    }
    if (simulated.topology().nodes() == 1)
        settings.push_back(
            {"ncclConfig_t::CTAPolicy = NCCL_CTA_POLICY_ZERO, operands in windows (NCCL_WIN_COLL_SYMMETRIC)",
             true, total(library, true)});
    const Setting* best = &settings.front();
    for (const Setting& one : settings)
        if (faster(one.time, best->time)) best = &one;
    std::string text = "# NCCL or RCCL: collectives beside GEMMs that don't need them, at " +
                       std::to_string(tokens) + " tokens.\n" + (best->is_comment ? "# " : "") + best->text +
                       "\n# Sums of all GEMMs:\n";
    for (const Setting& one : settings)
        text += "# " + left(one.time ? time_text(one.time) : "not measured", 14) + one.text + "\n";
    return text +
           "# not measured: the library's times with so many channels. Names: NCCL's user guide, environment variables and flags.\n";
}

}  // namespace

std::string framework_settings(const std::string& framework, const RunConfig& config,
                               const std::vector<TableGemm>& gemms, std::optional<std::int64_t> tokens,
                               const ConfigFolder& folder) {
    const bool by_tokens = framework == "vllm" || framework == "pytorch";
    if (by_tokens == tokens.has_value())
        throw UserError("command line: --emit " + framework +
                        (by_tokens ? ": --tokens: it is told from how many tokens overlap pays"
                                   : ": needs --tokens, for which its settings are"));
    for (std::size_t i = 0; i < gemms.size(); ++i)
        if (gemms[i].pair.collective == CollectiveKind::all_to_all && framework != "nccl")
            throw UserError("--gemms: /gemms/" + std::to_string(i) +
                            "/collective: is all_to_all, for which " + framework +
                            " has no settings (allowed: all_gather, reduce_scatter, all_reduce)");
    SettingTimes simulated(config, folder);
    if (framework == "vllm") return vllm(simulated, gemms);
    if (framework == "pytorch") return pytorch(simulated, gemms);
    if (framework == "te") return transformer_engine(simulated, gemms, *tokens);
    if (framework == "megatron") return megatron(simulated, gemms, *tokens);
    return nccl(simulated, gemms, *tokens);
}

}  // namespace overlap
