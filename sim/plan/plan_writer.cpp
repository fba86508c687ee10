#include <algorithm>
#include <iomanip>
#include <sstream>

#include "sim/core/ranges.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/task_keys.hpp"

namespace overlap {
namespace {

const std::string transfer = "transfer ";

Json blocks_json(const std::vector<Block>& blocks) {
    return mapped(blocks, [](const Block& block) {
        return Json{block.buffer, block.row, block.column, block.rows, block.columns};
    });
}

/// The lines of a plan's tasks.
class TaskWriter {
public:
    TaskWriter(const Plan& plan, bool whole)
        : plan_(plan),
          graph_(plan.graph),
          ranks_(static_cast<std::size_t>(plan.gpus)),
          whole_(whole),
          places_(graph_.size()) {}

    Json lines() {
        Json lines = Json::array();
        for (TaskId id = 0; id < graph_.size();) {
            const std::size_t length = whole_ ? 0 : alike_from(id);
            if (Json group = length > 0 ? for_each_rank(id, length) : Json(); !group.is_null()) {
                lines.push_back({{"each_rank", std::move(group)}});
                id += length * ranks_;
                continue;
            }
            places_[id] = {lines_, false};
            Json line{{"gpu", graph_[id].gpu}};
            line.update(facts_of(id));
            line["after"] = waits_of({id});
            if (line["after"].empty()) line.erase("after");
            lines.push_back(std::move(line));
            ++lines_;
            ++id;
        }
        return lines;
    }

private:
    /// Where a task stands in the file.
    struct Place {
        std::size_t line = 0;
        bool each_rank = false;
    };

    /// Number of tasks from `id` on, all of rank 0, behind which as many of each other rank follow; 0 if none.
    std::size_t alike_from(TaskId id) const {
        std::size_t length = 0;
        while (id + length < graph_.size() && graph_[id + length].gpu == 0) ++length;
        if (length == 0 || id + length * ranks_ > graph_.size()) return 0;
        for (std::size_t i = 0; i < length * ranks_; ++i)
            if (graph_[id + i].gpu != static_cast<int>(i / length)) return 0;
        return length;
    }

    /// Lines for `length` tasks of each rank; null if ranks differ by more than values.
    Json for_each_rank(TaskId first, std::size_t length) {
        for (std::size_t i = 0; i < length * ranks_; ++i) places_[first + i] = {lines_ + i % length, true};
        Json lines = Json::array();
        for (std::size_t i = 0; i < length; ++i) {
            std::vector<TaskId> tasks;
            for (std::size_t rank = 0; rank < ranks_; ++rank) tasks.push_back(first + i + rank * length);
            Json line = merged(mapped(tasks, [&](TaskId id) { return facts_of(id); }));
            const Json after = waits_of(tasks);
            if (line.is_null() || after.is_null()) return {};
            if (!after.empty()) line["after"] = after;
            lines.push_back(std::move(line));
        }
        lines_ += length;
        return lines;
    }

    /// All of a task but gpu and after.
    Json facts_of(TaskId id) const {
        const Task& task = graph_[id];
        Json facts = written_task(task);
        if (!plan_.names.empty() && !plan_.names[id].empty()) facts["name"] = plan_.names[id];
        facts["stream"] = graph_.name_of_stream(task.stream);
        if (plan_.placement) {
            facts["from"] = blocks_json(plan_.placement->tasks[id].from);
            facts["to"] = blocks_json(plan_.placement->tasks[id].to);
        }
        return facts;
    }

    /// How far `rank` is from the own one, if it is as far on all ranks.
    std::optional<std::size_t> offset_of(const std::vector<Json>& numbers) const {
        std::optional<std::size_t> offset;
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            if (!numbers[rank].is_number_integer() || numbers[rank] < 0 || numbers[rank] >= ranks_) return {};
            const std::size_t own = (numbers[rank].get<std::size_t>() + ranks_ - rank) % ranks_;
            if (offset.value_or(own) != own) return {};
            offset = own;
        }
        return offset;
    }

    static bool same(const std::vector<Json>& values) {
        return std::ranges::all_of(values, [&](const Json& value) { return value == values.front(); });
    }

    Json merged_value(const std::string& key, const std::vector<Json>& values) const {
        if (same(values)) return values.front();
        if (contains(rank_keys, key))
            if (const auto offset = offset_of(values)) return "+" + std::to_string(*offset);
        const auto goes_to_peer = [](const Json& value) {
            return value.get_ref<const std::string&>().starts_with(transfer);
        };
        if (key == "stream" && std::ranges::all_of(values, goes_to_peer)) {
            const auto peers = mapped(values, [](const Json& value) {
                return Json(std::stoi(value.get_ref<const std::string&>().substr(transfer.size())));
            });
            if (const auto offset = offset_of(peers)) return transfer + "+" + std::to_string(*offset);
        }
        return {{"ranks", values}};
    }

    /// One object for the tasks of all ranks; null if they have other keys.
    Json merged(const std::vector<Json>& tasks) const {
        Json line = Json::object();
        for (const Json& task : tasks)
            if (task.size() != tasks.front().size() || task["kind"] != tasks.front()["kind"]) return {};
        for (const auto& item : tasks.front().items()) {
            std::vector<Json> values;
            for (const Json& task : tasks) {
                const auto found = task.find(item.key());
                if (found == task.end()) return {};
                values.push_back(*found);
            }
            line[item.key()] = merged_value(item.key(), values);
        }
        return line;
    }

    /// What tasks of all ranks, or one task, wait for; null if ranks wait for others.
    Json waits_of(const std::vector<TaskId>& tasks) const {
        std::vector<std::vector<Edge>> edges;
        for (const TaskId id : tasks) {
            edges.emplace_back();
            graph_.for_each_edge_into(id, [&](const Edge& edge) { edges.back().push_back(edge); });
            if (edges.back().size() != edges.front().size()) return {};
        }
        Json waits = Json::array();
        for (std::size_t i = 0; i < edges.front().size(); ++i) {
            waits.push_back(wait_of(mapped(edges, [&](const auto& of_rank) { return of_rank[i]; })));
            if (waits.back().is_null()) return {};
        }
        return waits;
    }

    Json wait_of(const std::vector<Edge>& edges) const {
        const Edge& first = edges.front();
        const Place place = places_[first.predecessor];
        std::vector<Json> ranks;
        for (const Edge& edge : edges) {
            if (places_[edge.predecessor].line != place.line || edge.from != first.from ||
                edge.to != first.to)
                return {};
            ranks.push_back(graph_[edge.predecessor].gpu);
        }
        Json task = place.line;
        if (place.each_rank) {
            const bool one = edges.size() == 1;
            const bool own = one ? ranks.front() == graph_[first.successor].gpu : offset_of(ranks) == 0u;
            if (!own && same(ranks))
                task = {place.line, ranks.front()};
            else if (!own && offset_of(ranks))
                task = {place.line, "+" + std::to_string(*offset_of(ranks))};
            else if (!own)
                return {};
        }
        if (!first.of_progress()) return task;
        return {{"task", task}, {"from", first.from}, {"to", first.to}};
    }

    const Plan& plan_;
    const TaskGraph& graph_;
    std::size_t ranks_;
    bool whole_;
    std::vector<Place> places_;  ///< by task
    std::size_t lines_ = 0;
};

PlanHead head_of(const Plan& plan) {
    PlanHead head;
    head.gpus = plan.gpus;
    head.description = plan.description;
    head.spans = plan.spans;
    head.measure = plan.measure;
    head.config = plan.config;
    head.not_placed = plan.not_placed;
    if (plan.graph.runs_by_data()) head.order = ListOrder::data;
    for (const auto& [stream, name] : plan.graph.stream_names()) head.streams.push_back(name);
    std::ranges::reverse(head.streams);  // side streams have falling numbers
    return head;
}

// clang-format off
Json task_schema() {
    Json task = object_schema("One task.");
    const auto add = [&](const std::string& key, const Json& schema) {
        Json& known = task["properties"][key];
        Json own = schema;
        own.erase("default");
        if (known.is_null()) known = {{"description", own["description"]}, {"anyOf", Json::array()}};
        own.erase("description");
        if (contains(rank_keys, key)) known["anyOf"].push_back({{"$ref", "#/definitions/offset"}});
        if (!contains(known["anyOf"], own)) known["anyOf"].push_back(own);
    };
    const auto kinds = std::span(task_kind_names).first(static_cast<std::size_t>(TaskKind::host));
    task["properties"]["kind"] = choice_of(kinds, "What it does.");
    task["properties"]["name"] = text_schema("For reports, and for tasks that wait for it. Default: kind, ranks, shard and chunk.", 1);
    task["properties"]["gpu"] = whole_from(0, "Which rank executes it; not in each_rank.");
    add("stream", {{"description", "In-order queue of the rank: compute, local, transfer N, transfer +1, or a name of /streams."}, {"type", "string"}, {"minLength", 1}});
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
        for (const auto& key : keys_of_kind(static_cast<TaskKind>(kind))) add(key.key, key.schema);
    for (const auto& key : common_task_keys()) add(key.key, key.schema);
    task["properties"]["after"] = {{"description", "Tasks that have ended before, beside the one before it on its stream."}, {"type", "array"}, {"items", {{"$ref", "#/definitions/wait"}}}};
    add("from", {{"description", "GEMM: A, B. copy: one block. local_copy: so many. reduce: the parts."}, {"$ref", "#/definitions/blocks"}});
    add("to", {{"description", "GEMM: C. copy: one block. local_copy: as many as from. reduce: one, which may be one of the parts."}, {"$ref", "#/definitions/blocks"}});
    for (auto& item : task["properties"].items())
        if (item.value().contains("anyOf")) item.value()["anyOf"].push_back({{"$ref", "#/definitions/by_rank"}});
    task["required"] = {"kind", "stream"};
    return task;
}

Json definitions() {
    const Json task_name{{"anyOf", {{{"type", "integer"}, {"minimum", 0}}, {{"type", "string"}, {"minLength", 1}}}}};
    const Json of_rank{{"type", "array"}, {"minItems", 2}, {"maxItems", 2}};
    Json gate = object_schema("Goes beyond the share 'to' of its work once 'task' has done its share 'from'.");
    gate["properties"] = {{"task", {{"anyOf", {task_name["anyOf"][0], task_name["anyOf"][1], of_rank}}}},
                          {"from", {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}}},
                          {"to", {{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}}}};
    gate["required"] = {"task"};
    const Json block{{"type", "array"}, {"minItems", 5}, {"maxItems", 5}, {"items", {{"type", "integer"}, {"minimum", 0}}}};
    Json by_rank = object_schema("The value of each rank.");
    by_rank["properties"]["ranks"] = {{"type", "array"}};
    by_rank["required"] = {"ranks"};
    return {{"task", task_schema()},
            {"offset", {{"description", "A rank counted from that of the task: \"+1\" is the next one, \"-1\" the one before."}, {"type", "string"}, {"pattern", "^[+-][0-9]+$"}}},
            {"by_rank", by_rank},
            {"wait", {{"description", "A task by its place in \"tasks\" (those of each_rank counted one by one) or its name; of each_rank, the own rank's or [task, rank], [task, \"+1\"]; or a gate."},
                      {"anyOf", {task_name["anyOf"][0], task_name["anyOf"][1], of_rank, gate}}}},
            {"blocks", {{"description", "Each [buffer, row, column, rows, columns]."}, {"type", "array"}, {"items", block}}}};
}
// clang-format on

}  // namespace

Json to_json(const Plan& plan, bool whole) {
    Json json = written(head_of(plan), plan_head_keys());
    if (plan.placement) {
        json["buffers"] = mapped(plan.placement->buffers,
                                 [](const Buffer& buffer) { return written(buffer, buffer_keys()); });
        json["inputs"] = blocks_json(plan.placement->inputs);
        json["results"] = blocks_json(plan.placement->results);
    }
    json["tasks"] = TaskWriter(plan, whole).lines();
    return json;
}

// clang-format off
Json plan_schema() {
    Json schema = file_of_keys(
        "Plan",
        "What GPUs do: tasks, their streams and their order, with the places of their data (sim/plan/format.md). "
        "'sim --graph FILE' writes it, 'sim --plan FILE' simulates it, 'replay' executes it. Tasks of one (gpu, "
        "stream) run one after another in their order, which is also the order in which the host enqueues. A plan "
        "without places has neither 'buffers', 'inputs' and 'results' nor 'from' and 'to'.",
        plan_head_keys());
    const auto blocks = [](const std::string& doc) { return Json{{"description", doc}, {"$ref", "#/definitions/blocks"}}; };
    Json& keys = schema["properties"];
    keys["buffers"] = list_of("Dense row-major matrices. Blocks name them by their place in this list.", buffer_keys());
    keys["inputs"] = blocks("What is there from the start. Of pairs: own rows of A (all_gather; an element's place in the buffer is that in the gathered A), or all of A, one A a GPU (reduce_scatter); all of B, one B a GPU.");
    keys["results"] = blocks("What has to be there at the end. Of pairs: all of C, or the own rows of the sum of all GPUs' C. The place in the buffer is that in C.");
    Json group = object_schema("Tasks that each rank has: in the order of the list on rank 0, then on rank 1, ...");
    group["properties"]["each_rank"] = list_schema("One rank's tasks.", {{"$ref", "#/definitions/task"}});
    group["required"] = {"each_rank"};
    keys["tasks"] = list_schema("In the order in which hosts enqueue them. A task may wait for a later one of another stream.", {{"anyOf", {{{"$ref", "#/definitions/task"}}, group}}});
    schema["required"].push_back("tasks");
    schema["definitions"] = definitions();
    return schema;
}
// clang-format on

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
