#include "sim/topology/link_group.hpp"

#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

// clang-format off
std::span<const Field<LinkGroup>> fields() {
    using G = LinkGroup;
    constexpr Range rate{1e-3, 1e6}, count{1, most_gpus};
    static const std::array rows{
        field<&G::bandwidth>("bandwidth_GBps",
            "Usable rate of a link in one direction: of a switch, of a GPU's port; between nodes, of a NIC.").in(rate),
        field<&G::latency>("latency_us", "From GPU to GPU over one link, or through one switch."),
        plain_field<&G::leaves>("leaves", leaf_names,
            "Which NICs share a leaf: those of whole nodes, or NIC i of several nodes."),
        field<&G::leaf_ports>("leaf_ports", "NICs on a leaf; divides all NICs, or those of a rail.").plain_in(count),
        field<&G::spines>("spines", "Spine switches.").plain_in(count),
        field<&G::router_ports>("router_ports", "NICs on a router.").plain_in(count),
        field<&G::group_routers>("group_routers",
            "Routers in a group; there are 2 or more whole groups.").plain_in(count),
        field<&G::global_links>("global_links",
            "Links of a router to other groups, at most one each; those of a group are dealt evenly.").plain_in(count),
        field<&G::spine>("spine_GBps", "Usable rate from a leaf to a spine in one direction.").in(rate),
        field<&G::local>("local_GBps", "Usable rate between two routers of a group in one direction.").in(rate),
        field<&G::global>("global_GBps", "Usable rate of a link between groups in one direction.").in(rate),
        field<&G::link>("link_GBps", "Usable rate between two routers in one direction.").in(rate),
        field<&G::hop>("hop_latency_us", "Added by each link between two switches.")};
    return rows;
}

struct GroupKeys {
    const char* doc;
    std::vector<std::string_view> keys;  ///< beside bandwidth_GBps and latency_us, which all have
};

/// In the order of group_names.
const std::array<GroupKeys, group_names.size()> types{{
    {"A link both ways between every two GPUs of a node.", {}},
    {"A link both ways between GPU i and GPU i+1 of a node, and between the last and the first.", {}},
    {"Links both ways to the neighbours in every dimension, with wrap-around; the first dimension varies fastest.", {}},
    {"Every GPU of a node has one link up to and one link down from a non-blocking switch.", {}},
    {"A link both ways between the GPUs of each pair.", {}},
    {"Between nodes: NIC i of every node joined to leaf switch i.", {}},
    {"Between nodes: leaf switches with a NIC a port, each joined to every spine.",
        {"leaves", "leaf_ports", "spines", "spine_GBps", "hop_latency_us"}},
    {"Between nodes: groups of routers, all joined inside a group, and links between groups.",
        {"router_ports", "group_routers", "global_links", "local_GBps", "global_GBps", "hop_latency_us"}},
    {"Between nodes: a router a node, joined to its neighbours in every dimension, with wrap-around.",
        {"link_GBps", "hop_latency_us"}}}};
// clang-format on

std::vector<Field<LinkGroup>> fields_of(std::size_t type) {
    const auto& keys = types[type].keys;
    std::vector<Field<LinkGroup>> found(fields().begin(), fields().begin() + 2);
    for (const Field<LinkGroup>& field : fields())
        if (contains(keys, field.key)) found.push_back(field);
    return found;
}

}  // namespace

LinkGroup read_link_group(ConfigObject& config, std::size_t type, int gpus) {
    LinkGroup group;
    std::vector<Field<LinkGroup>> rows = fields_of(type);
    for (Field<LinkGroup>& row : rows)
        if (row.kind == Key::Kind::whole) row.range.high = gpus;
    read_fields<LinkGroup>(config, group, rows);
    return group;
}

Json link_group_schema() {
    std::vector<Json> groups;
    for (std::size_t type = 0; type < types.size(); ++type) {
        const std::string& name = group_names[type];
        Json& group = groups.emplace_back(object_schema(types[type].doc));
        const auto add = [&](const char* key, const Json& schema) {
            group["properties"][key] = schema;
            group["required"].push_back(key);
        };
        add("type", {{"const", name}});
        add_fields<LinkGroup>(group, "sourced", true, fields_of(type));
        if (name == "switch") add("name", name_schema("Name of the switch, unique in the node."));
        // clang-format off
        if (name == "torus" || name == "node_torus")
            add("dims", list_schema("GPUs, or nodes, along each dimension: as many in all as there are. The first "
                                    "dimension varies fastest.", {{"type", "integer"}, {"minimum", 1}, {"maximum", most_gpus}}));
        if (name == "links")
            add("pairs", parse_json(R"({
                "description": "Pairs of GPU numbers in the node.", "type": "array", "minItems": 1, "uniqueItems": true,
                "items": {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": true,
                          "items": {"type": "integer", "minimum": 0}}})", "pairs"));
        // clang-format on
    }
    return schema_by_type("Kind of link group.", groups);
}

}  // namespace overlap
