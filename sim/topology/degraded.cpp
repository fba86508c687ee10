#include "sim/topology/degraded.hpp"

#include "sim/core/fields.hpp"

namespace overlap {
namespace {

// clang-format off
std::span<const Field<Degraded>> degraded_fields() {
    using D = Degraded;
    constexpr Range number{0, most_gpus - 1}, share{0.001, 1};
    static const std::array rows{
        field<&D::gpu>("gpu", "Number of the GPU in its node.").plain_in(number),
        field<&D::node>("node", "Number of the node.").plain_in(number).or_else("the GPU with this number in every node"),
        field<&D::gemm_speed>("gemm_speed", "Speed of the GPU's GEMMs, relative to the device's.").in(share).optional(),
        field<&D::links>("links", "Share that is left of the bandwidth of its links inside the node, both ways. Routes inside the node stay.").in(share).optional(),
        field<&D::to>("to", "Number in the node of another GPU: of the link to it only.").plain_in(number).or_else("all its links").only_with("links"),
        field<&D::nic>("nic", "Share that is left of the bandwidth of its NIC, both ways.").in(share).optional()};
    return rows;
}
// clang-format on

/// Returns whether one of the links is inside a node.
bool take_bandwidth(Wiring& wiring, const Degraded& degraded, const ClusterSize& size) {
    const auto gpus = static_cast<VertexId>(size.gpus()),
               per_node = static_cast<VertexId>(size.gpus_per_node);
    const auto is_degraded = [&](VertexId vertex) {
        return vertex < gpus && vertex % per_node == static_cast<VertexId>(degraded.gpu) &&
               (degraded.node == Degraded::all || vertex / per_node == static_cast<VertexId>(degraded.node));
    };
    const auto is_asked_for = [&](VertexId other) {
        return degraded.to == Degraded::all ||
               (other < gpus && other % per_node == static_cast<VertexId>(degraded.to));
    };
    bool found = false;
    for (Link& link : wiring.links) {
        const auto [from, to] = wiring.ends[link.id];
        if (!is_degraded(from) && !is_degraded(to)) continue;
        const VertexId other = is_degraded(from) ? to : from;
        const bool is_nic = wiring.is_nic(other);
        if (!is_nic && !is_asked_for(other)) continue;
        found = found || !is_nic;
        const BytesPerSecond left = (is_nic ? degraded.nic : degraded.links) * link.bandwidth;
        if (from < gpus && (!is_nic || per_node == 1)) wiring.egress[from] += left - link.bandwidth;
        link.bandwidth = left;
    }
    return found;
}

}  // namespace

std::vector<Degraded> degrade(ConfigObject& topology, const ClusterSize& size, bool has_network,
                              Wiring& wiring) {
    std::vector<Degraded> all;
    if (!topology.has("degraded")) return all;
    std::vector<Field<Degraded>> rows(degraded_fields().begin(), degraded_fields().end());
    for (Field<Degraded>& row : rows)
        if (row.kind == Key::Kind::whole)
            row.range.high = (row.key == "node" ? size.nodes : size.gpus_per_node) - 1;
    for (ConfigObject& one : topology.objects("degraded")) {
        Degraded& degraded = all.emplace_back();
        read_fields<Degraded>(one, degraded, rows);
        one.finish();
        if (!one.has("gemm_speed") && !one.has("links") && !one.has("nic"))
            one.fail("", "degrades nothing (allowed: gemm_speed, links, nic)");
        if (one.has("nic") && !has_network) one.fail("nic", "is given, but the GPUs have no NICs");
        const bool found = take_bandwidth(wiring, degraded, size);
        if (one.has("to") && !found)
            one.fail("to", "is " + std::to_string(degraded.to) + ", to which GPU " +
                               std::to_string(degraded.gpu) + " has no link of its own");
    }
    return all;
}

Json degraded_schema() {
    Json one = object_schema("A GPU and its links.");
    add_fields(one, "sourced", true, degraded_fields());
    return list_schema(
        "GPUs that work worse than the others: slow ones, and those whose links have lost lanes or carry traffic of others.",
        one);
}

}  // namespace overlap
