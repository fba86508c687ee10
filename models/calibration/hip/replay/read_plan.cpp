// Reads and checks a plan; no GPU code.

#include "models/calibration/hip/replay/plan.hpp"

#include <algorithm>
#include <map>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/replay/own_places.hpp"
#include "models/calibration/hip/replay/plan_ranks.hpp"

namespace overlap::hip {
namespace {

constexpr std::size_t most_tasks_a_stream = 300;  // with waits and events fewer than a launch queue holds
constexpr std::size_t most_blocks = 16;           // per local copy or sum, which is one kernel

[[noreturn]] void refuse(const JsonValue& value, const std::string& what) {
    throw UserError((value.where().empty() ? "/" : value.where()) + ": " + what);
}
[[noreturn]] void refuse(const PlanLine& line, const std::string& what) {
    refuse(line.json(), what);
}

std::int64_t in_range(const JsonValue& value, std::int64_t from, std::int64_t to) {
    const std::int64_t number = value.whole();
    if (number < from || number > to)
        refuse(value, "is " + std::to_string(number) + ", allowed: " + std::to_string(from) + " to " +
                          std::to_string(to));
    return number;
}

constexpr std::int64_t longest = 1 << 24;

class PlanReader {
public:
    explicit PlanReader(const JsonValue& json) : json_(json) {}

    Plan read() {
        in_range(json_.at("schema"), 1, 2);  // 1: every task by itself, with all keys
        plan_.placed = json_.find("buffers") != nullptr;
        config();
        measure();
        if (const JsonValue* reason = json_.find("not_placed"))
            refuse(json_, "can't be run: " + reason->text());
        if (plan_.placed) {
            if (json_.find("config") == nullptr || json_.at("config").find("workload") == nullptr)
                refuse(json_,
                       "has places, but no config with the workload that its results are compared with");
            for (const JsonValue& buffer : json_.at("buffers").items()) add_buffer(buffer);
            plan_.inputs = blocks(json_.at("inputs"));
            plan_.results = blocks(json_.at("results"));
        } else {
            plan_.gpus = static_cast<int>(in_range(json_.at("gpus"), 1, 64));
        }
        const PlanLines lines(json_.at("tasks"), plan_.gpus);
        for (std::size_t task = 0; task < lines.tasks().size(); ++task) {
            add_task(lines.tasks()[task]);
            plan_.tasks.back().after = lines.waits_of(task);
        }
        for (int gpu = 0; gpu < plan_.gpus; ++gpu) require_release(gpu);
        return std::move(plan_);
    }

private:
    void config() {
        const JsonValue* description = json_.find("description");
        plan_.name = description == nullptr ? "plan" : description->text();
        if (const JsonValue* spans = json_.find("spans")) plan_.spans = spans->boolean();
        const JsonValue* given = json_.find("config");
        const JsonValue* topology = given == nullptr ? nullptr : given->find("topology");
        if (topology != nullptr) plan_.system = topology->text();
        if (plan_.system.ends_with(".json")) plan_.system.resize(plan_.system.size() - 5);
        const JsonValue* schedule = given == nullptr ? nullptr : given->find("schedule");
        // What ran is the plan itself where it is of no schedule, or has lost its places.
        plan_.config = schedule != nullptr && plan_.placed
                           ? given->source()
                           : "{" + (topology == nullptr ? "" : R"("topology":)" + topology->source() + ",") +
                                 R"("plan":)" + json_.source() + "}";
        if (given != nullptr && given->find("workload") != nullptr) workload(*given, schedule);
    }

    void workload(const JsonValue& config, const JsonValue* schedule) {
        const JsonValue* params = config.find("params");
        const JsonValue& workload = config.at("workload");
        const std::string& collective = workload.at("collective").text();
        if (collective != "all_gather" && collective != "reduce_scatter")
            refuse(workload, "collective is " + collective + ", allowed: all_gather, reduce_scatter");
        plan_.gathers = collective == "all_gather";
        const JsonValue* order = workload.find("order");
        if (plan_.gathers && order != nullptr && order->text() == "gemm_first")
            refuse(workload, "order is gemm_first, allowed with all_gather: collective_first");
        const JsonValue& gemm = workload.at("gemm");
        if (gemm.at("dtype").text() != "bf16")
            refuse(gemm, "dtype is " + gemm.at("dtype").text() + ", allowed: bf16");
        plan_.m = in_range(gemm.at("m"), 1, longest);
        plan_.n = in_range(gemm.at("n"), 1, longest);
        plan_.k = in_range(gemm.at("k"), 1, longest);
        if (const JsonValue* chunks = params == nullptr ? nullptr : params->find("chunks"))
            plan_.chunks = static_cast<int>(in_range(*chunks, 1, 65536));
        plan_.name = (schedule == nullptr ? "plan" : schedule->text()) + " " + collective + " " +
                     std::to_string(plan_.m) + "x" + std::to_string(plan_.n) + "x" + std::to_string(plan_.k) +
                     (params == nullptr ? "" : " " + params->source());
    }

    void measure() {
        const JsonValue* given = json_.find("measure");
        if (given == nullptr) return;
        const auto number = [&](const char* key, int otherwise, int least) {
            const JsonValue* value = given->find(key);
            return value == nullptr ? otherwise : static_cast<int>(in_range(*value, least, 10000));
        };
        const auto flag = [&](const char* key, bool otherwise) {
            const JsonValue* value = given->find(key);
            return value == nullptr ? otherwise : value->boolean();
        };
        plan_.measure = {number("repeats", 0, 1), number("warm_ups", 2, 0), flag("at_peak_clock", true),
                         flag("cold_caches", true), flag("marks", false)};
    }

    /// The release of a GPU's other streams is an event on a stream that does not wait first.
    void require_release(int gpu) const {
        std::map<std::size_t, bool> waits;
        for (const PlanTask& task : plan_.tasks)
            if (task.gpu == gpu) waits.emplace(task.stream, task.kind == PlanKind::wait);
        if (!waits.empty() &&
            std::all_of(waits.begin(), waits.end(), [](const auto& one) { return one.second; }))
            refuse(json_, "can't be run: all streams of rank " + std::to_string(gpu) + " begin with a wait");
    }

    void add_buffer(const JsonValue& json) {
        PlanBuffer buffer{static_cast<int>(in_range(json.at("gpu"), 0, 63)), json.at("name").text(),
                          in_range(json.at("rows"), 0, longest), in_range(json.at("columns"), 1, longest)};
        if (json.at("dtype").text() != "bf16") refuse(json, "dtype: allowed: bf16");
        if (buffer.columns % 8)
            refuse(json, "rows of " + std::to_string(buffer.columns) +
                             " elements, allowed: multiples of 8 (kernels copy 16 bytes at a time)");
        plan_.gpus = std::max(plan_.gpus, buffer.gpu + 1);
        plan_.buffers.push_back(std::move(buffer));
    }

    PlanBlock block(const JsonValue& json) const {
        const auto& numbers = json.items();
        if (numbers.size() != 5 || plan_.buffers.empty())
            refuse(json, "expected [buffer, row, column, rows, columns]");
        const auto buffer = in_range(numbers[0], 0, static_cast<std::int64_t>(plan_.buffers.size()) - 1);
        const PlanBuffer& whole = plan_.buffers[buffer];
        const PlanBlock block{static_cast<std::size_t>(buffer), in_range(numbers[1], 0, whole.rows),
                              in_range(numbers[2], 0, whole.columns), in_range(numbers[3], 1, whole.rows),
                              in_range(numbers[4], 1, whole.columns)};
        if (block.row + block.rows > whole.rows || block.column + block.columns > whole.columns)
            refuse(json, "reaches beyond its buffer");
        if (block.column % 8 || block.columns % 8)
            refuse(json, "columns " + std::to_string(block.column) + " + " + std::to_string(block.columns) +
                             ", allowed: multiples of 8 (kernels copy 16 bytes at a time)");
        return block;
    }
    std::vector<PlanBlock> blocks(const JsonValue& json) const {
        std::vector<PlanBlock> result;
        for (const JsonValue& item : json.items()) result.push_back(block(item));
        return result;
    }

    void add_task(const PlanLine& json) {
        PlanTask task;
        task.name = json.name();
        task.gpu = json.rank();
        if (json.find("gates")) refuse(json, "can't be run: waits for shares of other tasks");
        task.stream = stream({task.gpu, json.stream(), json.whole("priority", 0) > 0});
        if (++tasks_of_stream_[task.stream] > most_tasks_a_stream)
            refuse(json, "can't be run: more than " + std::to_string(most_tasks_a_stream) +
                             " tasks on a stream would fill the launch queue");
        const std::string& kind = json.at("kind").text();
        if (plan_.placed && kind != "memory_bound") {
            task.from = blocks(json.at("from"));
            task.to = blocks(json.at("to"));
        }
        if (kind == "gemm")
            gemm(task, json);
        else if (kind == "copy")
            copy(task, json);
        else if (kind == "local_copy")
            local_copy(task, json);
        else if (kind == "memory_bound")
            wait(task, json);
        else if (kind == "reduce" && plan_.placed)
            reduce(task, json);
        else
            refuse(json, "kind is " + kind + ", allowed: gemm, copy, local_copy, memory_bound that waits" +
                             (plan_.placed ? ", reduce" : "; with places also reduce"));
        plan_.tasks.push_back(std::move(task));
    }

    std::size_t stream(PlanStream wanted) {
        for (std::size_t i = 0; i < plan_.streams.size(); ++i) {
            const PlanStream& known = plan_.streams[i];
            if (known.gpu == wanted.gpu && known.name == wanted.name &&
                known.high_priority == wanted.high_priority)
                return i;
        }
        plan_.streams.push_back(std::move(wanted));
        return plan_.streams.size() - 1;
    }

    int gpu_of(const PlanBlock& block) const { return plan_.buffers[block.buffer].gpu; }
    void need(bool fits, const PlanLine& json, const char* what) const {
        if (!fits) refuse(json, std::string("expected ") + what);
    }
    void need_here(const PlanTask& task, const std::vector<PlanBlock>& blocks, const PlanLine& json) const {
        for (const PlanBlock& block : blocks)
            need(gpu_of(block) == task.gpu, json, "blocks in the memory of the task's GPU");
    }

    void wait(PlanTask& task, const PlanLine& json) const {
        task.kind = PlanKind::wait;
        const JsonValue* waits = json.find("waits");
        need(waits != nullptr && waits->boolean() && json.find("time_us") &&
                 json.whole("read_bytes", 0) == 0 && json.whole("write_bytes", 0) == 0,
             json, "waits, time_us and no bytes");
        task.wait_us = static_cast<double>(in_range(json.at("time_us"), 1, 1000000));
    }

    void gemm(PlanTask& task, const PlanLine& json) {
        task.kind = PlanKind::gemm;
        task.units = static_cast<int>(json.whole("gemm_cus", 0));
        const JsonValue* accumulate = json.find("accumulate");
        task.accumulate = accumulate != nullptr && accumulate->boolean();
        need(json.at("stream").text() == "compute", json, "stream compute, whose GEMMs share a workspace");
        if (!plan_.placed) return own_.of_gemm(json, task);
        need(task.from.size() == 2 && task.to.size() == 1, json, "from: A, B; to: C");
        const PlanBlock &a = task.from[0], &b = task.from[1], &c = task.to[0];
        need(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows, json, "A, B and C that fit");
        need(a.rows == json.at("m").whole() && b.columns == json.at("n").whole() &&
                 a.columns == json.at("k").whole(),
             json, "blocks of m, n, k");
        need_here(task, task.from, json);
        need_here(task, task.to, json);
    }

    void read_agent(PlanTask& task, const PlanLine& json, bool otherwise) const {
        const JsonValue *agent = json.find("agent"), *units = json.find("copy_cus");
        task.dma = agent == nullptr ? otherwise : agent->text() == "dma";
        if (units != nullptr) task.blocks = static_cast<int>(in_range(*units, task.dma ? 0 : 1, 4096));
    }

    void copy(PlanTask& task, const PlanLine& json) {
        task.kind = PlanKind::copy;
        read_agent(task, json, true);
        if (!task.dma && task.blocks == 0) refuse(json, "has no 'copy_cus'");
        for (const char* key : {"dma_command", "stored", "added", "prelaunched"})
            if (json.find(key))
                refuse(json, std::string("can't be run: ") + key + ", which only a simulation does");
        const int src = json.rank_at("src"), dst = json.rank_at("dst");
        if (!plan_.placed) own_.of_copy(json, src, dst, task);
        need(task.from.size() == 1 && task.to.size() == 1 && same_size(task.from[0], task.to[0]), json,
             "one block from, one of the same size to");
        need(gpu_of(task.from[0]) == src && gpu_of(task.to[0]) == dst, json,
             "blocks in the memory of src and dst");
        const JsonValue* transfer = json.find("transfer");
        const bool pulls = transfer == nullptr || transfer->text() == "pull";
        need(task.gpu == (pulls ? dst : src), json, "the GPU that executes it: dst pulls, src pushes");
    }

    void local_copy(PlanTask& task, const PlanLine& json) {
        task.kind = PlanKind::local_copy;
        read_agent(task, json, false);
        if (!plan_.placed) own_.of_copy(json, task.gpu, task.gpu, task);
        need(task.from.size() == 1 || !(task.dma || task.blocks), json, "one block, where an agent is given");
        need(!task.from.empty() && task.from.size() == task.to.size() && task.from.size() <= most_blocks,
             json, "1 to 16 blocks, as many from as to");
        for (std::size_t i = 0; i < task.from.size(); ++i)
            need(same_size(task.from[i], task.to[i]), json, "blocks of the same size");
        need_here(task, task.from, json);
        need_here(task, task.to, json);
    }

    void reduce(PlanTask& task, const PlanLine& json) const {
        task.kind = PlanKind::reduce;
        need(task.from.size() >= 2 && task.from.size() <= most_blocks && task.to.size() == 1, json,
             "2 to 16 blocks from, one to");
        for (const PlanBlock& part : task.from)
            need(same_size(part, task.to[0]), json, "blocks of the same size");
        need_here(task, task.from, json);
        need_here(task, task.to, json);
    }

    static bool same_size(const PlanBlock& one, const PlanBlock& other) {
        return one.rows == other.rows && one.columns == other.columns;
    }

    const JsonValue& json_;
    Plan plan_;
    OwnPlaces own_{plan_.buffers};
    std::map<std::size_t, std::size_t> tasks_of_stream_;
};

}  // namespace

std::vector<Plan> read_plans(const std::string& text) {
    const JsonValue json = JsonValue::read(text);
    if (!json.is_array()) return {PlanReader(json).read()};
    std::vector<Plan> plans;
    for (const JsonValue& one : json.items()) plans.push_back(PlanReader(one).read());
    if (plans.empty()) refuse(json, "is an empty list of plans");
    return plans;
}

}  // namespace overlap::hip
