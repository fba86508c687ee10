#include "sim/transformer/pipeline.hpp"

#include <algorithm>

namespace overlap {

double Pipeline::in_flight() const {
    const auto most = static_cast<double>(micro_batches);
    if (order == PipelineOrder::dualpipe) return stages + 1;  // arXiv 2412.19437, table 2
    // arXiv 2205.05198, section 4.2.3: interleaving holds 1 + (p − 1) / (p m) as much.
    const double interleaved = 1 + (stages - 1.0) / virtual_stages();
    return std::min(most, chunks == 1 ? stages : stages * interleaved);
}

std::vector<std::int64_t> layers_of_stages(const Pipeline& pipeline, std::int64_t layers) {
    const auto count = static_cast<std::int64_t>(pipeline.virtual_stages());
    const std::int64_t each = (layers + count - 1) / count;
    std::vector<std::int64_t> all(static_cast<std::size_t>(count), each);
    for (std::int64_t missing = 0; missing < each * count - layers; ++missing) {
        const auto inward = static_cast<std::size_t>(missing / 2);
        --(missing % 2 == 0 ? all[all.size() - 1 - inward] : all[inward]);
    }
    return all;
}

}  // namespace overlap
