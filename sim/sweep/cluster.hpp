#pragma once

#include <tbb/concurrent_queue.h>

#include <future>

#include "sim/core/files_read.hpp"
#include "sim/sweep/workers.hpp"

namespace overlap {

/// The processes that mpirun or srun started together, or this process alone. One object a process; only the
/// thread that created it may call it.
class Cluster {
public:
    Cluster();
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    int processes() const { return processes_; }
    /// Whether this process hands out points and writes results.
    bool leads() const { return rank_ == 0; }
    /// Sends the leader's text to all processes; every process must call it.
    /// Empty if the leader failed before.
    std::string shared_text(const std::string& text = "");
    /// What the first process with something against going on says, in all processes; empty if none has. Every process
    /// must call it, unless shared_text() was empty.
    std::string objection(const std::string& mine) const;
    /// Runs points for the leader until it says that there are no more. `files`: what this process has read.
    void serve(PointRunner& runner, const FilesRead& files);

private:
    static std::string broadcast(std::string text, int from);

    int rank_ = 0, processes_ = 1;
    bool shared_ = false;
};

/// One thread of this process, and the other processes of the cluster. Contract: only for the leader, created
/// by the cluster's thread, which calls exchange() while other threads call run().
class ClusterWorkers : public Workers {
public:
    ClusterWorkers(const Cluster& cluster, const DesignSpace& space, SharedParts& shared);
    /// Tells the other processes that there are no more points.
    ~ClusterWorkers() override;

    int count() const override { return processes_; }
    Rows run(std::uint64_t first, std::uint64_t count) override;
    /// Carries requests and results between run() and the other processes until `done` is ready.
    void exchange(const std::future<void>& done);

private:
    struct Request {
        std::uint64_t range[2];
        std::promise<Rows> rows;
    };
    bool send_requests();
    bool receive_rows();

    int processes_;
    PointRunner own_;
    tbb::concurrent_bounded_queue<int> idle_;  ///< ranks
    tbb::concurrent_queue<std::pair<int, std::shared_ptr<Request>>> requests_;
    std::vector<std::shared_ptr<Request>> running_;  ///< by rank
};

}  // namespace overlap
