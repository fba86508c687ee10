#pragma once

#include "sim/advise/advise.hpp"
#include "sim/run/resolver.hpp"

namespace overlap {

/// A GEMM of a model and the collective beside it; its rows are the tokens.
struct TableGemm {
    std::string name;
    Pair pair;
};
/// Reads {"gemms": [{"name", "n", "k", "dtype", "collective"}]}. Throws UserError.
std::vector<TableGemm> read_gemms(const ConfigFile& file);

/// A way to run a GEMM and its collective, with its times.
struct TableChoice {
    std::string name, schedule;
    Json params;
    std::vector<std::optional<Seconds>> times;  ///< by bucket; none: it can't run so few tokens
};
struct GemmChoices {
    TableGemm gemm;
    std::vector<TableChoice>
        choices;  ///< those that are the fastest of some bucket, and the fastest without overlap
};
/// Which schedule to take, by tokens.
struct AdviceTable {
    std::string topology, host;
    std::vector<std::int64_t> buckets;  ///< tokens: powers of two, and quarters between them
    std::vector<GemmChoices> gemms;
};
/// `config` names machine and host. `simulated` is called after each bucket of a GEMM.
AdviceTable advice_table(const RunConfig& config, const std::vector<TableGemm>& gemms,
                         const AllowedCandidates& allowed, const ConfigFolder& folder,
                         const std::function<void()>& simulated);
/// Numbers of tokens: powers of two up to 65,536, and quarters of the way between them.
std::vector<std::int64_t> table_buckets();

Json to_json(const AdviceTable& table);
/// A header for C++17 that needs nothing: overlap_table::choose(gemm, tokens).
std::string to_header(const AdviceTable& table);

}  // namespace overlap
