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

namespace {

std::vector<std::int64_t> spread_evenly(std::int64_t layers, std::int64_t stages) {
    const std::int64_t each = (layers + stages - 1) / stages;
    std::vector<std::int64_t> all(static_cast<std::size_t>(stages), each);
    for (std::int64_t missing = 0; missing < each * stages - layers; ++missing) {
        const auto inward = static_cast<std::size_t>(missing / 2);
        --(missing % 2 == 0 ? all[all.size() - 1 - inward] : all[inward]);
    }
    return all;
}

}  // namespace

std::vector<std::int64_t> layers_of_stages(const Pipeline& pipeline, std::int64_t layers,
                                           std::int64_t behind) {
    const std::int64_t stages = pipeline.virtual_stages();
    if (!pipeline.last_layers) return spread_evenly(layers, stages);
    const std::int64_t last = *pipeline.last_layers + behind;
    std::vector<std::int64_t> all = spread_evenly(layers - last, stages - 1);
    all.push_back(last);
    return all;
}

}  // namespace overlap
