#pragma once

#include <functional>

#include "sim/core/json.hpp"
#include "sim/importers/trace_importer.hpp"

namespace overlap {

/// Whether operators whose price a machine knows, GEMMs with shapes and collectives with sizes, keep their recorded
/// times, too.
enum class Prices { recorded, of_the_machine };
/// Whether the machine has a price for a GEMM; null: for all.
using HasPrice = std::function<bool(const GemmShape&)>;

/// Shares of the GPU's time of a list, of kernels: those that keep their times though the machine has a price, those
/// that are priced, and those of which nothing is known but the time.
struct ListShares {
    double recorded_us = 0, priced_us = 0, unknown_us = 0;
    std::size_t without_price = 0;
    double all_us() const { return recorded_us + priced_us + unknown_us; }
};

struct RecordedList {
    Json operators;                               ///< of a workload file
    std::vector<const RecordedSpan*> spans = {};  ///< by operator, of the iteration
    std::size_t streams = 0;
    bool has_collectives = false;
    ListShares shares = {};
    std::vector<std::string> notes = {};  ///< a line each
};

/// The operators of one GPU of an iteration, in the order in which the host enqueued them: each with its stream, its
/// recorded time, what it waited for, and what the host did before. A run of the list in this order gives the
/// recorded times back. An operator waits for the one before it on its stream, and of other streams for what ended
/// last before it began, which may be more than what the program waited for. `ranks`: GPUs of the job.
RecordedList list_of(const std::vector<RecordedSpan>& iteration, std::int64_t ranks, Prices prices,
                     const HasPrice& has_price = nullptr);

/// The spans of the GPU that takes longest from its first to its last.
std::vector<const RecordedSpan*> spans_of_longest_gpu(const std::vector<RecordedSpan>& iteration);

/// The GEMM that a span's operator computes, from the shapes of its inputs; none if they were not recorded.
std::optional<GemmShape> gemm_of(const RecordedSpan& span);
Json gemm_json(const GemmShape& shape);
/// Our number format of what a collective moves; empty if unknown.
std::string dtype_of(const RecordedCollective& collective);

}  // namespace overlap
