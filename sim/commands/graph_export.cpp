#include "sim/commands/graph_export.hpp"

#include <boost/graph/graphviz.hpp>
#include <sstream>

namespace overlap {
namespace {

Json details(const Work& work) {
    struct Visitor {
        Json operator()(const GemmShape& gemm) const {
            return {{"m", gemm.m},
                    {"n", gemm.n},
                    {"k", gemm.k},
                    {"dtype", name_of(gemm.dtype)},
                    {"accumulate", gemm.accumulate}};
        }
        Json operator()(const CopyWork& copy) const {
            Json json{{"src", copy.src},
                      {"dst", copy.dst},
                      {"bytes", copy.bytes.si()},
                      {"run_bytes", copy.run.si()},
                      {"agent", agent_names[static_cast<std::size_t>(copy.agent)]},
                      {"transfer", direction_names[static_cast<std::size_t>(copy.direction)]},
                      {"copy_cus", copy.cus}};
            if (copy.command != DmaCommand::copy)
                json["dma_command"] = dma_command_names[static_cast<std::size_t>(copy.command)];
            if (copy.command == DmaCommand::broadcast) json["second_dst"] = copy.second;
            if (copy.batch > 1) json["back_to_back"] = {copy.place, copy.batch};
            if (copy.prelaunched) json["prelaunched"] = true;
            return json;
        }
        Json operator()(const LocalCopyWork& copy) const {
            return {{"bytes", copy.bytes.si()}, {"run_bytes", copy.run.si()}};
        }
        Json operator()(const ReduceWork& reduce) const {
            return {{"bytes", reduce.bytes.si()}, {"parts", reduce.parts}};
        }
        Json operator()(const CollectiveKernelWork& collective) const {
            return {{"collective", name_of(collective.kind)}, {"operand_bytes", collective.operand.si()}};
        }
        Json operator()(const HostWork& call) const { return {{"host_us", to_microseconds(call.time)}}; }
        Json operator()(const MemoryBoundWork& stream) const {
            return {{"read_bytes", stream.read.si()}, {"write_bytes", stream.written.si()}};
        }
    };
    return std::visit(Visitor{}, work);
}

Json to_json(const std::vector<Block>& blocks) {
    Json json = Json::array();
    for (const Block& block : blocks)
        json.push_back({block.buffer, block.row, block.column, block.rows, block.columns});
    return json;
}

}  // namespace

Json to_json(const TaskGraph& graph, const Json& config) {
    Json json{{"schema", 1}, {"config", config}, {"tasks", Json::array()}};
    for (TaskId id = 0; id < graph.size(); ++id) {
        const Task& task = graph[id];
        Json entry{{"id", id},
                   {"name", task.name()},
                   {"kind", task_kind_names[static_cast<std::size_t>(task.kind())]},
                   {"gpu", task.gpu},
                   {"stream", stream_name(task.stream)},
                   {"shard", task.shard},
                   {"chunk", task.chunk}};
        entry.update(details(task.work));
        if (task.priority != 0) entry["priority"] = task.priority;
        entry["after"] = Json::array();
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            if (!edge.of_progress()) return entry["after"].push_back(edge.predecessor);
            entry["gates"].push_back({{"task", edge.predecessor}, {"from", edge.from}, {"to", edge.to}});
        });
        json["tasks"].push_back(std::move(entry));
    }
    return json;
}

void add_placement(Json& graph, const Placement& placement) {
    for (const Buffer& buffer : placement.buffers)
        graph["buffers"].push_back({{"gpu", buffer.gpu},
                                    {"name", buffer.name},
                                    {"rows", buffer.rows},
                                    {"columns", buffer.columns},
                                    {"dtype", name_of(buffer.dtype)}});
    graph["inputs"] = to_json(placement.inputs);
    graph["results"] = to_json(placement.results);
    for (TaskId id = 0; id < placement.tasks.size(); ++id) {
        graph["tasks"][id]["from"] = to_json(placement.tasks[id].from);
        graph["tasks"][id]["to"] = to_json(placement.tasks[id].to);
    }
}

std::string to_dot(const TaskGraph& graph) {
    std::ostringstream out;
    out << "digraph tasks {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (int gpu = 0; gpu < graph.gpus(); ++gpu) {
        out << "  subgraph cluster_" << gpu << " {\n    label=\"GPU " << gpu << "\";\n";
        for (TaskId id = 0; id < graph.size(); ++id)
            if (graph[id].gpu == gpu)
                out << "    t" << id << " [label=" << boost::escape_dot_string(graph[id].name()) << "];\n";
        out << "  }\n";
    }
    for (TaskId id = 0; id < graph.size(); ++id) {
        graph.for_each_edge_into(id, [&](const Edge& edge) {
            out << "  t" << edge.predecessor << " -> t" << id;
            if (edge.of_progress())
                out << " [label=\"" << edge.from << " > " << edge.to << "\", style=dashed]";
            out << ";\n";
        });
        if (const TaskId before = graph.stream_predecessor(id); before != id)
            out << "  t" << before << " -> t" << id << " [style=dotted];\n";
    }
    out << "}\n";
    return out.str();
}

}  // namespace overlap
