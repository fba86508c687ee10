#pragma once

#include <map>
#include <tuple>

#include "models/calibration/hip/replay/executor.hpp"
#include "models/calibration/hip/replay/plan_ranks.hpp"

namespace overlap::hip {

/// Gives places to the tasks of a plan that names none, whose tasks then hand each other no data. Copies of one stream
/// between the same two GPUs have one source and one destination. Pieces of run_bytes lie four times as far apart at the
/// source, and next to each other at the destination. GEMMs of one shape have one B, and take turns between as many A and
/// C as evict each other from a cache.
class OwnPlaces {
public:
    explicit OwnPlaces(std::vector<PlanBuffer>& buffers) : buffers_(buffers) {}

    void of_gemm(const PlanLine& json, PlanTask& task);
    void of_copy(const PlanLine& json, int src, int dst, PlanTask& task);

private:
    using Key = std::tuple<int, std::size_t, int, int, std::int64_t>;
    std::size_t buffer(int gpu, const char* name, std::int64_t rows, std::int64_t columns);

    std::vector<PlanBuffer>& buffers_;
    std::map<Key, std::pair<std::size_t, std::size_t>> copies_;
    struct Gemms {
        std::size_t b = 0;
        std::vector<std::size_t> a, c;
        std::size_t next = 0;
    };
    std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>, Gemms> gemms_;
};

/// Fills the sources of copies and A and B with random data, and poisons all other memory.
void fill_own_places(const PlacedPlan& placed);
/// Compares every destination with its source, and entries of every C with a plain kernel. Throws WrongResult.
void check_own_places(const PlacedPlan& placed);

}  // namespace overlap::hip
