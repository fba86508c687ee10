#include <algorithm>

#include "sim/core/archive.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/file_version.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/plan_checks.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/plan_lines.hpp"

namespace overlap {
namespace {

/// The keys of a plan beside "tasks", and its places.
class PlanReader {
public:
    PlanReader(const Json& json, const std::string& origin) : file_(json, origin) { plan_.origin = origin; }

    Plan read() {
        read_head();
        const std::vector<Buffer> buffers = read_buffers();
        PlanLines lines = read_plan_lines(file_, {plan_.gpus, streams_, buffers.size()});
        require_tasks(lines.list);
        std::vector<TaskId> new_id;
        plan_.graph = graph_of(lines.list, new_id);
        name_streams();
        name_tasks(lines.list, new_id);
        if (file_.has("buffers")) place(buffers, lines, new_id);
        file_.finish();
        return std::move(plan_);
    }

private:
    void read_head() {
        for (const InputKey<PlanHead>& key : plan_head_keys()) read_key(file_, key, head_);
        plan_.gpus = head_.gpus;
        plan_.description = head_.description;
        plan_.spans = head_.spans;
        plan_.measure = head_.measure;
        plan_.config = head_.config;
        plan_.not_placed = head_.not_placed;
        streams_ = head_.streams;
        if (streams_.size() > static_cast<std::size_t>(most_side_streams))
            file_.fail("streams", "has " + std::to_string(streams_.size()) +
                                      " names (allowed: " + std::to_string(most_side_streams) + ")");
        for (const std::string& name : streams_)
            if (std::ranges::count(streams_, name) > 1 || name == "compute" || name == "local" ||
                name.starts_with("transfer "))
                file_.fail("streams", "has " + in_quotes(name) + " twice, or as every plan has it");
    }

    std::vector<Buffer> read_buffers() {
        std::vector<Buffer> buffers;
        if (!file_.has("buffers")) return buffers;
        for (ConfigObject& one : file_.objects("buffers")) {
            buffers.push_back(read_keys<Buffer>(one, buffer_keys()));
            if (buffers.back().gpu >= plan_.gpus)
                one.fail("gpu", "is " + std::to_string(buffers.back().gpu) + ", but the plan has " +
                                    std::to_string(plan_.gpus) + " GPUs");
        }
        return buffers;
    }

    void name_streams() {
        std::map<int, std::string> names;
        for (std::size_t i = 0; i < streams_.size(); ++i)
            names[side_stream(static_cast<int>(i))] = streams_[i];
        plan_.graph.name_streams(std::move(names));
        if (head_.order == ListOrder::data) plan_.graph.run_by_data();
    }

    void name_tasks(const TaskList& list, const std::vector<TaskId>& new_id) {
        if (std::ranges::all_of(list.names, &std::string::empty)) return;
        plan_.names.resize(new_id.size());
        for (TaskId id = 0; id < new_id.size(); ++id) plan_.names[new_id[id]] = list.names[list.line[id]];
    }

    void place(const std::vector<Buffer>& buffers, PlanLines& lines, const std::vector<TaskId>& new_id) {
        Placement& placement = plan_.placement.emplace();
        placement.buffers = buffers;
        placement.inputs = read_blocks(file_, "inputs", file_.raw("inputs"), buffers.size());
        placement.results = read_blocks(file_, "results", file_.raw("results"), buffers.size());
        require_blocks(lines, placement);
        placement.tasks.resize(new_id.size());
        for (TaskId id = 0; id < new_id.size(); ++id)
            placement.tasks[new_id[id]] = std::move(lines.operands[id]);
        require_written(plan_);
    }

    ConfigObject file_;
    PlanHead head_;
    std::vector<std::string> streams_;
    Plan plan_;
};

}  // namespace

Plan read_plan(const Json& json, const std::string& origin) {
    require_kind(json, origin, FileKind::plan);
    const Json newest = upgraded(json, "plan", origin);
    return PlanReader(newest, origin).read();
}

Plan read_plan_file(const std::filesystem::path& path) {
    const std::string text = decompressed(path, "a plan");
    require_memory_to_parse(path, static_cast<double>(text.size()));
    return read_plan(parse_json(text, path.string()), path.string());
}

}  // namespace overlap
