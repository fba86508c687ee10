#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/task_graph.hpp"

namespace overlap {

/// An activity on one GPU from `start` to `end`; predicted or measured.
struct Span {
    std::string name;
    TaskKind kind = TaskKind::gemm;
    int gpu = 0;
    std::string track;  ///< stream
    Seconds start;
    Seconds end;
    /// When a DMA engine took the copy, which had waited for the engine since `start`. Timestamps of a GPU do not
    /// show this wait, because the engine itself records the event before the copy. None for kernels.
    std::optional<Seconds> taken = {};

    Seconds lasted() const { return end - taken.value_or(start); }
};

/// A span without its names.
struct Activity {
    TaskKind kind = TaskKind::gemm;
    int gpu = 0;
    Seconds start, end;
};
/// Time from the first number to the second, of a GPU.
using Interval = std::pair<Seconds, Seconds>;
/// Time that at least one of the intervals covers.
Seconds covered(std::vector<Interval> intervals);

/// Exposed communication: time during which a GPU takes part in a transfer or a reduction and computes
/// nothing, of the GPU with most of it. A transfer counts on the GPU that executes it.
Seconds exposed_communication(std::span<const Activity> activities);

/// Spans of one run in any order; time 0 is the common release of all GPUs.
class Timeline {
public:
    explicit Timeline(std::vector<Span> spans = {}) : spans_(std::move(spans)) {}

    const std::vector<Span>& spans() const { return spans_; }
    int gpus() const;
    Seconds end() const;
    /// Time during which `gpu` runs at least one span of these kinds.
    Seconds busy(int gpu, std::span<const TaskKind> kinds) const;
    Seconds exposed_communication() const;

private:
    std::vector<Span> spans_;
};

}  // namespace overlap
