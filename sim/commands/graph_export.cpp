#include "sim/commands/graph_export.hpp"

#include <iomanip>
#include <sstream>

#include "sim/core/output_keys.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// A task of a plan with its place in the graph.
struct PlannedTask {
    const TaskGraph& graph;
    TaskId id;
    const Operands* operands;  ///< null: the plan's data have no places

    const Task& task() const { return graph[id]; }
};

using TaskKey = OutputKey<PlannedTask>;

/// A key of tasks whose work is one of Works. `value` takes the work.
template <class... Works, class Value>
TaskKey of(const std::string& key, const Json& schema, Value value) {
    const auto find = [=](const PlannedTask& planned) {
        Json found = left_out;
        const auto take = [&](const auto* work) {
            if (work != nullptr) found = value(*work);
        };
        (take(std::get_if<Works>(&planned.task().work)), ...);
        return found;
    };
    return {key, schema, find, false};
}

Json where(bool condition, const Json& value) {
    return condition ? value : left_out;
}

Json blocks_schema(const std::string& doc) {
    return {{"description", doc}, {"$ref", "#/definitions/blocks"}};
}

Json blocks_json(const std::vector<Block>& blocks) {
    return mapped(blocks, [](const Block& block) {
        return Json{block.buffer, block.row, block.column, block.rows, block.columns};
    });
}

Json predecessors_of(const PlannedTask& planned) {
    Json after = Json::array();
    planned.graph.for_each_edge_into(planned.id, [&](const Edge& edge) {
        if (!edge.of_progress()) after.push_back(edge.predecessor);
    });
    return after;
}

Json gates_of(const PlannedTask& planned) {
    Json gates = left_out;
    planned.graph.for_each_edge_into(planned.id, [&](const Edge& edge) {
        if (!edge.of_progress()) return;
        if (gates.is_discarded()) gates = Json::array();
        gates.push_back({{"task", edge.predecessor}, {"from", edge.from}, {"to", edge.to}});
    });
    return gates;
}

// clang-format off
std::span<const TaskKey> task_keys() {
    using P = PlannedTask;
    static const std::array<std::string, 2> named_commands{"broadcast", "swap"};
    const auto list = [](const Json& items, const std::string& doc) { return Json{{"description", doc}, {"type", "array"}, {"items", items}}; };
    static const std::vector<TaskKey> keys{
        {"id", whole_from(0, "Its place in this list."), [](const P& p) { return p.id; }},
        {"name", text_schema("For reports.", 1), [](const P& p) { return p.task().name(); }},
        {"kind", choice_of(task_kind_names, "What it does."), [](const P& p) { return task_kind_names[static_cast<std::size_t>(p.task().kind())]; }},
        {"gpu", whole_from(0, "Which executes it."), [](const P& p) { return p.task().gpu; }},
        {"stream", text_schema("In-order queue of that GPU.", 1), [](const P& p) { return stream_name(p.task().stream); }},
        {"shard", whole_from(-1, "Owner of the data; -1: of several."), [](const P& p) { return p.task().shard; }},
        {"chunk", whole_from(-1, "-1: the whole shard."), [](const P& p) { return p.task().chunk; }},
        of<GemmShape>("m", whole_from(1, "Rows of C."), [](const auto& gemm) { return gemm.m; }),
        of<GemmShape>("n", whole_from(1, "Columns of C."), [](const auto& gemm) { return gemm.n; }),
        of<GemmShape>("k", whole_from(1, "Columns of A, rows of B."), [](const auto& gemm) { return gemm.k; }),
        of<GemmShape>("dtype", choice_of(dtype_names, "Number format of A and B."), [](const auto& gemm) { return name_of(gemm.dtype); }),
        of<GemmShape>("accumulate", {{"description", "C += A B; else C = A B."}, {"type", "boolean"}}, [](const auto& gemm) { return gemm.accumulate; }),
        of<CopyWork>("src", whole_from(0, "GPU that the data come from."), [](const auto& copy) { return copy.src; }),
        of<CopyWork>("dst", whole_from(0, "GPU that they go to."), [](const auto& copy) { return copy.dst; }),
        of<CopyWork, LocalCopyWork, ReduceWork>("bytes", number_from(0, "Sent; or read and written once (local_copy); or of one part (reduce)."),
            [](const auto& work) { return work.bytes.si(); }),
        of<CopyWork, LocalCopyWork>("run_bytes", number_from(0, "Length of a contiguous piece; bytes where the copy is contiguous."),
            [](const auto& work) { return work.run.si(); }),
        of<CopyWork>("agent", choice_of(agent_names, "Who moves the data."), [](const auto& copy) { return agent_names[static_cast<std::size_t>(copy.agent)]; }),
        of<CopyWork>("transfer", choice_of(direction_names, "pull: the destination executes it; push: the source."),
            [](const auto& copy) { return direction_names[static_cast<std::size_t>(copy.direction)]; }),
        of<CopyWork>("copy_cus", whole_from(0, "Blocks of a copy kernel; 0 with dma."), [](const auto& copy) { return copy.cus; }),
        of<CopyWork>("dma_command", choice_of(named_commands, "broadcast: also to second_dst; swap: both ways; left out: a copy."),
            [](const auto& copy) { return copy.broadcast() != nullptr ? Json(named_commands[0]) : where(copy.is_swap(), named_commands[1]); }),
        of<CopyWork>("second_dst", whole_from(0, "The other GPU that a broadcast writes to."),
            [](const auto& copy) { return copy.broadcast() != nullptr ? Json(copy.broadcast()->second) : left_out; }),
        of<CopyWork>("back_to_back", {{"description", "Which command it is, from 0, of how many that one engine is told of at once, and signals the end of the last."},
            {"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}, {"minItems", 2}, {"maxItems", 2}},
            [](const auto& copy) {
                const auto* part = std::get_if<BackToBack>(&copy.command);
                return part != nullptr ? Json{part->place, part->batch} : left_out; }),
        of<CopyWork>("prelaunched", {{"description", "Queued before, behind a poll that a write to memory ends."}, {"type", "boolean"}},
            [](const auto& copy) { return where(copy.prelaunched, true); }),
        of<ReduceWork>("parts", whole_from(1, "How many are summed."), [](const auto& sum) { return sum.parts; }),
        of<CollectiveKernelWork>("collective", choice_of(collective_names, "Which collective."), [](const auto& work) { return name_of(work.kind); }),
        of<CollectiveKernelWork>("operand_bytes", number_from(0, "The whole operand."), [](const auto& work) { return work.operand.si(); }),
        of<HostWork>("host_us", number_from(0, "Time of the calls."), [](const auto& call) { return to_microseconds(call.time); }),
        of<MemoryBoundWork>("read_bytes", number_from(0, "Bytes read."), [](const auto& work) { return work.read.si(); }),
        of<MemoryBoundWork>("write_bytes", number_from(0, "Bytes written."), [](const auto& work) { return work.written.si(); }),
        {"priority", {{"description", "Of its stream, where it is not 0."}, {"type", "integer"}}, [](const P& p) { return where(p.task().priority != 0, p.task().priority); }, false},
        {"after", list({{"type", "integer"}, {"minimum", 0}}, "Tasks that have ended before; those before it on its stream are left out."), predecessors_of},
        {"gates", list({{"type", "object"}}, "Progress edges: goes beyond the share 'to' once 'task' has done its share 'from'."), gates_of, false},
        {"from", blocks_schema("GEMM: A, B. copy: one block. local_copy: so many. reduce: the parts."),
            [](const P& p) { return p.operands == nullptr ? left_out : blocks_json(p.operands->from); }, false},
        {"to", blocks_schema("GEMM: C. copy: one block. local_copy: as many as from. reduce: one, which may be one of the parts."),
            [](const P& p) { return p.operands == nullptr ? left_out : blocks_json(p.operands->to); }, false}};
    return keys;
}

std::span<const OutputKey<Buffer>> buffer_keys() {
    static const std::array<std::string, 6> names{"a", "b", "c", "stage a", "stage c", "parts"};
    static const std::vector<OutputKey<Buffer>> keys{
        {"gpu", whole_from(0, "Whose memory it is in."), [](const Buffer& buffer) { return buffer.gpu; }},
        {"name", choice_of(names, "a, b, c: of the GEMM, whole. stage a, stage c: rows of fused steps, step after step. parts: partial results that have arrived, before they are summed."),
            [](const Buffer& buffer) { return buffer.name; }},
        {"rows", whole_from(0, "0 where this plan does not need the buffer."), [](const Buffer& buffer) { return buffer.rows; }},
        {"columns", whole_from(1, "Elements of a row."), [](const Buffer& buffer) { return buffer.columns; }},
        {"dtype", choice_of(dtype_names, "Number format."), [](const Buffer& buffer) { return name_of(buffer.dtype); }}};
    return keys;
}

std::span<const OutputKey<Plan>> plan_keys() {
    const auto of_placed = [](auto value) {
        return [=](const Plan& plan) { return plan.placement ? Json(value(*plan.placement)) : left_out; };
    };
    static const std::vector<OutputKey<Plan>> keys{
        {"config", {{"description", "The resolved run config."}, {"type", "object"}}, [](const Plan& plan) { return plan.config; }},
        {"spans", {{"description", "For replay: record the times of each task, too."}, {"type", "boolean"}}, [](const Plan&) { return left_out; }, false},
        {"not_placed", text_schema("Why the data have no places: such a graph can't be executed.", 1),
            [](const Plan& plan) { return where(!plan.not_placed.empty(), plan.not_placed); }, false},
        {"buffers", list_of("Dense row-major matrices. Blocks name them by their place in this list.", buffer_keys()),
            of_placed([](const Placement& placement) { return all_written(std::span(placement.buffers), buffer_keys()); }), false},
        {"inputs", blocks_schema("What is there from the start: own rows of A (all_gather; an element's place in the buffer is that in the gathered A), or all of A, one A a GPU (reduce_scatter); all of B, one B a GPU."),
            of_placed([](const Placement& placement) { return blocks_json(placement.inputs); }), false},
        {"results", blocks_schema("What has to be there at the end: all of C, or the own rows of the sum of all GPUs' C. The place in the buffer is that in C."),
            of_placed([](const Placement& placement) { return blocks_json(placement.results); }), false},
        {"tasks", list_of("In the order in which they were added.", task_keys()), [](const Plan& plan) {
            Json tasks = Json::array();
            for (TaskId id = 0; id < plan.graph.size(); ++id)
                tasks.push_back(written(PlannedTask{plan.graph, id, plan.placement ? &plan.placement->tasks[id] : nullptr}, task_keys()));
            return tasks; }}};
    return keys;
}
// clang-format on

}  // namespace

Plan plan_of(const Scenario& scenario, const TaskGraph& graph) {
    Plan plan{graph, scenario.config(), {}, {}};
    try {
        plan.placement =
            place(graph, *scenario.schedule, scenario.workload, scenario.machine->topology, scenario.params);
    } catch (const UserError& reason) {
        plan.not_placed = reason.what();
    }
    return plan;
}

Json to_json(const Plan& plan) {
    Json json{{"schema", 1}};
    json.update(written(plan, plan_keys()));
    return json;
}

Json plan_schema() {
    Json schema = file_schema(
        "Plan",
        "A task graph with the places of its data, as 'sim ... --graph FILE' writes it and 'replay' executes "
        "it. Tasks of one (gpu, stream) run one after another in their order, which is also the order in "
        "which the host enqueues. A plan whose data have no places has 'not_placed' instead of 'buffers', "
        "'inputs', 'results', 'from' and 'to'.");
    add_keys(schema, plan_keys());
    const Json block{{"type", "array"},
                     {"minItems", 5},
                     {"maxItems", 5},
                     {"items", {{"type", "integer"}, {"minimum", 0}}}};
    schema["definitions"]["blocks"] = {
        {"description", "Each [buffer, row, column, rows, columns]."}, {"type", "array"}, {"items", block}};
    return schema;
}

std::string to_dot(const TaskGraph& graph) {
    std::ostringstream out;
    out << "digraph tasks {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (int gpu = 0; gpu < graph.gpus(); ++gpu) {
        out << "  subgraph cluster_" << gpu << " {\n    label=\"GPU " << gpu << "\";\n";
        for (TaskId id = 0; id < graph.size(); ++id)
            if (graph[id].gpu == gpu)
                out << "    t" << id << " [label=" << std::quoted(graph[id].name()) << "];\n";
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
