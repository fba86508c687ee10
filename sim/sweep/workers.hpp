#pragma once

#include <tbb/enumerable_thread_specific.h>

#include "sim/sweep/rows.hpp"

namespace overlap {

/// Who runs points: threads of this process, or processes of a cluster besides.
class Workers {
public:
    virtual ~Workers() = default;
    /// Blocks that run side by side.
    virtual int count() const = 0;
    /// Contract: called by at most count() threads at a time. Rows do not depend on who made them.
    virtual Rows run(std::uint64_t first, std::uint64_t count) = 0;
};

class ThreadWorkers : public Workers {
public:
    ThreadWorkers(int threads, const DesignSpace& space, SharedParts& shared)
        : threads_(threads), runners_([&space, &shared] { return PointRunner(space, shared); }) {}

    int count() const override { return threads_; }
    Rows run(std::uint64_t first, std::uint64_t count) override { return runners_.local().run(first, count); }

private:
    int threads_;
    tbb::enumerable_thread_specific<PointRunner> runners_;
};

}  // namespace overlap
