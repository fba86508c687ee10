#include "sim/plan/plan_lines.hpp"

#include <algorithm>
#include <map>

#include "sim/core/available_memory.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/plan/task_keys.hpp"

namespace overlap {
namespace {

constexpr double bytes_of_task = 1000;  // measured: 700 with its edges, places and what a graph keeps of it

/// A line of "tasks": one task, or one of each rank.
struct Line {
    ConfigObject object;
    std::string pointer;
    bool each_rank;
    TaskId first;      ///< the task, or that of rank 0
    std::size_t step;  ///< from a rank's task to the next rank's; 0: one task
    int gpu = 0;       ///< of one task
};

/// What a task waits for.
struct Wait {
    std::size_t line;
    std::optional<int> rank;  ///< none: the own
    bool is_offset = false;
    double from = 1, to = 0;
};

/// "+1" or "-1" as a number.
std::optional<int> offset_of(const Json& value) {
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
    const auto number = parsed<int>(std::string_view(text).substr(text[0] == '+' ? 1 : 0));
    constexpr int most = 1'000'000;
    return number && *number >= -most && *number <= most ? number : std::nullopt;
}

const Json* values_by_rank(const Json& value) {
    return value.is_object() && value.size() == 1 && value.contains("ranks") ? &value["ranks"] : nullptr;
}

class LinesReader {
public:
    LinesReader(ConfigObject& plan, const PlanFrame& frame) : frame_(frame) {
        lines_.list.origin = plan.file();
        std::size_t number = 0;
        for (ConfigObject& entry : plan.objects("tasks"))
            add_entry(entry, "/tasks/" + std::to_string(number++));
        if (source_.empty()) plan.fail("tasks", "is empty");
        require_memory_for("the " + std::to_string(tasks_) + " tasks of the plan",
                           Bytes(bytes_of_task * static_cast<double>(tasks_)), available_memory());
    }

    PlanLines read() {
        lines_.list.tasks.resize(tasks_);
        lines_.list.line.resize(tasks_);
        lines_.operands.resize(tasks_);
        std::vector<std::vector<Wait>> waits(source_.size());
        for (std::size_t number = 0; number < source_.size(); ++number) read_line(number, waits[number]);
        for (TaskId id = 0; id < tasks_; ++id)
            for (const Wait& wait : waits[lines_.list.line[id]]) add_edge(id, wait);
        return std::move(lines_);
    }

private:
    int rank_after(int rank, int offset) const {
        return ((rank + offset) % frame_.gpus + frame_.gpus) % frame_.gpus;
    }

    void add_entry(ConfigObject& entry, const std::string& pointer) {
        if (!entry.has("each_rank")) return add_line(entry, pointer, false, tasks_++, 0);
        std::vector<ConfigObject> all = entry.objects("each_rank");
        entry.finish();
        if (all.empty()) entry.fail("each_rank", "is empty");
        for (std::size_t i = 0; i < all.size(); ++i)
            add_line(all[i], pointer + "/each_rank/" + std::to_string(i), true, tasks_ + i, all.size());
        tasks_ += all.size() * static_cast<std::size_t>(frame_.gpus);
    }
    void add_line(ConfigObject& line, const std::string& pointer, bool each_rank, TaskId first,
                  std::size_t step) {
        std::vector<std::string>& names = lines_.list.names;
        names.push_back(line.has("name") ? non_empty_text(line, "name") : "");
        if (!names.back().empty()) named_[names.back()].push_back(source_.size());
        source_.push_back({line, pointer, each_rank, first, step});
    }

    /// The value that the task of `rank` has.
    Json at_rank(const ConfigObject& line, const std::string& key, const Json& value, int rank) const {
        const Json* by_rank = values_by_rank(value);
        if (by_rank == nullptr) return value;
        if (!by_rank->is_array() || by_rank->size() != static_cast<std::size_t>(frame_.gpus))
            line.fail(key + "/ranks",
                      "is " + shown(*by_rank) + ", expected " + std::to_string(frame_.gpus) + " values");
        return (*by_rank)[static_cast<std::size_t>(rank)];
    }

    void read_line(std::size_t number, std::vector<Wait>& waits) {
        Line& line = source_[number];
        if (!line.each_rank) line.gpu = static_cast<int>(line.object.integer("gpu", 0, frame_.gpus - 1));
        waits = read_waits(line);
        const int ranks = line.each_rank ? frame_.gpus : 1;
        const bool anew = differs_by_value(line.object);
        const std::vector<std::string> offsets = keys_with_offsets(line.object);
        Task first;
        for (int i = 0; i < ranks; ++i) {
            const int rank = line.each_rank ? i : line.gpu;
            const TaskId id = line.first + static_cast<std::size_t>(i) * line.step;
            Task& task = lines_.list.tasks[id];
            if (i == 0 || anew) first = read_at(line, rank);
            task = i == 0 || anew ? first : turned(first, offsets, rank);
            task.gpu = rank;
            task.stream = stream_of(line.object, rank);
            require_ranks(line.object, task);
            lines_.list.line[id] = number;
            read_operands(line.object, rank, lines_.operands[id]);
        }
    }

    static std::vector<std::string> keys_with_offsets(const ConfigObject& line) {
        ConfigObject copy = line;
        std::vector<std::string> keys;
        for (const std::string& key : rank_keys)
            if (copy.has(key) && offset_of(copy.raw(key))) keys.push_back(key);
        return keys;
    }

    /// Whether a key of the task itself has values by rank.
    static bool differs_by_value(const ConfigObject& line) {
        ConfigObject copy = line;
        const std::vector<std::string> keys = copy.keys();
        return std::ranges::any_of(keys, [&](const std::string& key) {
            return key != "from" && key != "to" && values_by_rank(copy.raw(key)) != nullptr;
        });
    }

    Task read_at(Line& line, int rank) {
        static const std::array<std::string, 6> others{"name", "gpu", "stream", "after", "from", "to"};
        Json values = Json::object();
        ConfigObject copy = line.object;
        for (const std::string& key : copy.keys()) {
            if (contains(others, key)) continue;
            Json value = at_rank(copy, key, copy.raw(key), rank);
            if (const auto offset = contains(rank_keys, key) ? offset_of(value) : std::nullopt)
                value = rank_after(rank, *offset);
            values[key] = std::move(value);
        }
        ConfigObject read(values, copy.file(), line.pointer);
        Task task = read_task(read);
        if (line.each_rank && line.object.has("gpu"))
            line.object.fail("gpu", "stands in each_rank, whose tasks are of every rank");
        read.finish();
        return task;
    }

    /// The task of another rank; `task` is that of rank 0.
    Task turned(Task task, const std::vector<std::string>& offsets, int rank) const {
        const auto turn = [&](const char* key, int& value) {
            if (contains(offsets, key)) value = rank_after(value, rank);
        };
        if (auto* work = std::get_if<CopyWork>(&task.work)) {
            turn("src", work->src);
            turn("dst", work->dst);
            if (auto* both = std::get_if<Broadcast>(&work->command)) turn("second_dst", both->second);
        }
        turn("shard", task.shard);
        return task;
    }

    int stream_of(ConfigObject& line, int rank) const {
        const Json value = at_rank(line, "stream", line.raw("stream"), rank);
        if (!value.is_string()) line.fail("stream", "is " + shown(value) + ", expected text");
        const auto& name = value.get_ref<const std::string&>();
        if (name == stream_name(compute_stream)) return compute_stream;
        if (name == stream_name(local_stream)) return local_stream;
        const std::string transfer = "transfer ";
        if (name.starts_with(transfer)) {
            const std::string peer = name.substr(transfer.size());
            if (const auto offset = offset_of(peer)) return transfer_stream(rank_after(rank, *offset));
            if (const auto number = parsed<int>(peer); number && *number >= 0 && *number < frame_.gpus)
                return transfer_stream(*number);
        }
        if (const std::size_t side = place_of(frame_.streams, name); side < frame_.streams.size())
            return side_stream(static_cast<int>(side));
        std::vector<std::string> known{"compute", "local", "transfer 0", "transfer +1"};
        append(known, frame_.streams);
        line.fail("stream", "is " + in_quotes(name) + ", which is no stream" + suggestion(name, known) +
                                "; others stand in /streams");
    }

    void require_ranks(const ConfigObject& line, const Task& task) const {
        const auto require = [&](const char* key, int rank) {
            if (rank >= frame_.gpus)
                line.fail(key, "is " + std::to_string(rank) + ", but the plan has " +
                                   std::to_string(frame_.gpus) + " GPUs");
        };
        if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
            require("src", copy->src);
            require("dst", copy->dst);
            if (const Broadcast* both = copy->broadcast()) require("second_dst", both->second);
        }
    }

    std::vector<Wait> read_waits(Line& line) const {
        std::vector<Wait> waits;
        if (!line.object.has("after")) return waits;
        const Json& after = line.object.raw("after");
        const Json* by_rank = values_by_rank(after);
        if (by_rank != nullptr || !after.is_array())
            line.object.fail("after", "is " + shown(after) + ", expected an array");
        for (std::size_t i = 0; i < after.size(); ++i)
            waits.push_back(read_wait(line, after[i], "after/" + std::to_string(i)));
        return waits;
    }

    Wait read_wait(const Line& of, const Json& item, const std::string& key) const {
        const ConfigObject& line = of.object;
        if (item.is_object()) {
            ConfigObject gate(item, line.file(), of.pointer + "/" + key);
            Wait wait = read_wait(of, gate.raw("task"), key + "/task");
            wait.from = gate.has("from") ? gate.number("from", {0x1p-1000, 1}) : 1;
            wait.to = gate.has("to") ? gate.number("to", {0, 1 - 0x1p-53}) : 0;
            gate.finish();
            return wait;
        }
        const bool with_rank = item.is_array() && item.size() == 2;
        Wait wait{line_called(line, with_rank ? item[0] : item, key), {}};
        if (!with_rank) return wait;
        if (!source_[wait.line].each_rank) line.fail(key, "names a rank of one task, expected its number");
        if (const auto offset = offset_of(item[1])) {
            wait.rank = *offset;
            wait.is_offset = true;
        } else {
            if (!item[1].is_number_integer() || item[1] < 0 || item[1] >= frame_.gpus)
                line.fail(key, "is " + shown(item) + ", expected a rank, or \"+1\" for the next one");
            wait.rank = item[1].get<int>();
        }
        return wait;
    }

    std::size_t line_called(const ConfigObject& line, const Json& item, const std::string& key) const {
        if (item.is_string()) {
            const auto& name = item.get_ref<const std::string&>();
            const auto found = named_.find(name);
            if (found == named_.end())
                line.fail(key, "is " + in_quotes(name) + ", which no task is called" +
                                   suggestion(name, keys_of(named_)));
            if (found->second.size() > 1)
                line.fail(key, "is " + in_quotes(name) + ", which " + std::to_string(found->second.size()) +
                                   " tasks are called, expected the number of one");
            return found->second.front();
        }
        if (!item.is_number_integer() || item < 0 || item >= source_.size())
            line.fail(key, "is " + shown(item) + ", expected the name of a task, or its number, 0 to " +
                               std::to_string(source_.size() - 1));
        return item.get<std::size_t>();
    }

    void add_edge(TaskId id, const Wait& wait) {
        const Line& line = source_[wait.line];
        const int own = lines_.list.tasks[id].gpu;
        const int rank = wait.is_offset ? rank_after(own, *wait.rank) : wait.rank.value_or(own);
        const TaskId before = line.first + static_cast<std::size_t>(rank) * line.step;
        lines_.list.edges.push_back({before, id, wait.from, wait.to});
    }

    void read_operands(ConfigObject& line, int rank, Operands& to) const {
        const auto read = [&](const char* key, std::vector<Block>& blocks) {
            if (!line.has(key)) return;
            blocks = read_blocks(line, key, at_rank(line, key, line.raw(key), rank), frame_.buffers);
        };
        read("from", to.from);
        read("to", to.to);
    }

    const PlanFrame& frame_;
    std::vector<Line> source_;
    std::map<std::string, std::vector<std::size_t>> named_;  ///< lines
    std::size_t tasks_ = 0;
    PlanLines lines_;
};

}  // namespace

std::vector<Block> read_blocks(const ConfigObject& from, const std::string& key, const Json& value,
                               std::size_t buffers) {
    constexpr std::int64_t longest = 1'000'000'000'000;
    const auto is_number = [](const Json& number) {
        return number.is_number_integer() && number >= 0 && number <= longest;
    };
    std::vector<Block> blocks;
    if (!value.is_array()) from.fail(key, "is " + shown(value) + ", expected an array of blocks");
    for (const Json& block : value) {
        if (!block.is_array() || block.size() != 5 || !std::ranges::all_of(block, is_number) ||
            block[0] >= buffers)
            from.fail(key, "has " + shown(block) +
                               ", expected [buffer, row, column, rows, columns], buffer 0 to " +
                               std::to_string(buffers) + " less one");
        blocks.push_back({block[0], block[1], block[2], block[3], block[4]});
    }
    return blocks;
}

PlanLines read_plan_lines(ConfigObject& plan, const PlanFrame& frame) {
    return LinesReader(plan, frame).read();
}

}  // namespace overlap
