#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/importers/recorded_list.hpp"
#include "sim/importers/time_shares.hpp"
#include "sim/report/page/page.hpp"
#include "sim/schedules/listed_pairs.hpp"

namespace overlap {

/// Pairs of one shape in a list.
struct TracePair {
    std::string name;                ///< "all_gather > gemm 16384x1792x4096 bf16"
    PairChoice first;                ///< one of them
    std::vector<std::string> gemms;  ///< names in the list
    double recorded_us = 0;  ///< the two operators of one, mean; of a list that is spread the GEMM alone
};

/// The run with one change.
struct Gain {
    std::string what;
    bool own_kernel = false;
    bool preset = false;  ///< as a library runs it (configs/schedules)
    double makespan_us = 0;
    double gain_us = 0;  ///< over the same list with whole pairs
    std::optional<double> in_graphs_us =
        {};  ///< the makespan, if captured graphs replace the recorded host, too
};

/// The run with a change of something else than schedules: GEMMs and collectives by the ratio of their prices, other
/// kernels as recorded or as `note` says.
struct OtherRun {
    std::string what;                    ///< "machine gpu_2"
    std::optional<double> gain_us = {};  ///< none: not known, and `note` says why
    /// Of a machine: the gain if kernels that are neither GEMM nor attention take the less time the faster its memory is.
    std::optional<double> by_memory_us = {};
    double kept_share = 0;  ///< of the kernels' time, which is as recorded
    std::string note = {};
    bool was_named = true;  ///< false: a machine that the program chose
};

/// A recorded iteration of one GPU on several.
struct SpreadRun {
    std::string how;                ///< "8 GPUs (--tp 8 --dp 1)"
    double us = 0, exposed_us = 0;  ///< with whole pairs; 0 where no topology is known
};

/// What sim advise --trace says.
struct TraceAdvice {
    std::string recorded, topology;
    double iteration_us = 0;  ///< as recorded
    std::vector<TimeShare> where;
    ListShares shares;
    std::vector<RecordedSpan> spans = {};  ///< of the GPU that takes longest
    std::vector<std::string> notes = {};
    std::vector<TracePair> pairs = {};
    std::vector<std::string> no_pairs =
        {};                        ///< neighbours that depend on each other and are no pair, and why
    std::vector<Gain> gains = {};  ///< of schedules of the pairs, the largest first
    std::string why_no_gains = {};
    std::optional<Gain> in_graphs = {};    ///< with captured graphs instead of the recorded host
    std::vector<OtherRun> others = {};     ///< machines last, the largest gain first
    std::optional<SpreadRun> spread = {};  ///< of a trace of one GPU that is spread over several

    /// What gains are of: the recorded iteration, or the one that is spread.
    double base_us() const { return spread ? spread->us : iteration_us; }
    double exposed_us() const;
    /// Whole collectives by copy engines; null where none serves the pairs.
    const Gain* copy_engines() const;
};

Json to_json(const TraceAdvice& advice);
std::string to_text(const TraceAdvice& advice);
Page page_of(const TraceAdvice& advice);

}  // namespace overlap
