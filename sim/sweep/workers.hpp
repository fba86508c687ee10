#pragma once

#include <tbb/enumerable_thread_specific.h>

#include "sim/sweep/rows.hpp"

namespace overlap {

/// Workers that run points: threads of this process, and of other processes of a cluster.
class Workers {
public:
    virtual ~Workers() = default;
    /// Number of blocks that run in parallel.
    virtual int count() const = 0;
    /// Contract: called by at most count() threads at a time. Rows do not depend on the worker.
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
