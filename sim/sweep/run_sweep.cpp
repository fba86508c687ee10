#include "sim/sweep/run_sweep.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace overlap {
namespace {

/// A numbered block of combinations.
struct Combinations {
    std::uint64_t first = 0, count = 0;
};
struct Done {
    std::uint64_t next = 0;
    Rows rows;
};

/// Large blocks at first and single points at the end, so that all workers end together.
Combinations next_block(std::uint64_t first, std::uint64_t size, int workers) {
    constexpr std::uint64_t largest = 16;
    const std::uint64_t fair = (size - first) / (8 * static_cast<std::uint64_t>(workers));
    return {first, std::clamp<std::uint64_t>(fair, 1, largest)};
}

}  // namespace

void run_sweep(const DesignSpace& space, SweepFolder& folder, Workers& workers,
               const SweepObserver& observer) {
    std::uint64_t next = folder.next();
    const auto hand_out = [&](tbb::flow_control& control) {
        if (next == space.size() || observer.stopped()) {
            control.stop();
            return Combinations{};
        }
        const Combinations block = next_block(next, space.size(), workers.count());
        next += block.count;
        return block;
    };
    const auto run = [&](const Combinations& block) {
        return std::make_shared<const Done>(
            Done{block.first + block.count, workers.run(block.first, block.count)});
    };
    const auto write = [&](const std::shared_ptr<const Done>& done) {
        folder.append(done->rows, done->next);
        observer.written(folder);
    };

    const auto threads = static_cast<std::size_t>(workers.count());
    const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, threads + 1);
    tbb::task_arena arena(workers.count());
    arena.execute([&] {
        constexpr std::size_t ahead = 8;  // blocks a worker that may wait for an earlier block
        using tbb::filter_mode;
        tbb::parallel_pipeline(
            ahead * threads,
            tbb::make_filter<void, Combinations>(filter_mode::serial_in_order, hand_out) &
                tbb::make_filter<Combinations, std::shared_ptr<const Done>>(filter_mode::parallel, run) &
                tbb::make_filter<std::shared_ptr<const Done>, void>(filter_mode::serial_in_order, write));
    });
    folder.checkpoint();
}

}  // namespace overlap
