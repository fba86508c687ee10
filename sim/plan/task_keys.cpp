#include "sim/plan/task_keys.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/ranges.hpp"
#include "sim/workload/operator_keys.hpp"

namespace overlap {
namespace {

constexpr Range any_bytes{0, 1e15}, units_of_gpu{0, 65536};
constexpr std::int64_t last_rank = 999'999;  // as in workloads

/// The key left out where it says what a T without it has.
template <class T>
InputKey<T> short_key(InputKey<T> key) {
    key.required = false;
    key.value = [inner = key.value, normal = key.value(T())](const T& from) {
        Json value = inner(from);
        return value == normal ? left_out : value;
    };
    return key;
}
template <auto Member>
auto number_key(const std::string_view key, const char* doc, Range range) {
    return field<Member>(key, doc).plain_in(range);
}
template <auto Member>
auto flag_key(const std::string_view key, const char* doc) {
    using T = decltype(detail::owner_of(Member));
    return short_key(InputKey<T>(field<Member>(key, doc)));
}

/// A rank of this run.
template <class T>
InputKey<T> rank_key(const std::string& key, int T::*member, std::int64_t least, const std::string& doc) {
    return {key, whole_from(static_cast<int>(least), doc),
            [=](ConfigObject& from, const std::string& name, T& to) {
                to.*member = static_cast<int>(from.integer(name, least, last_rank));
            },
            [=](const T& from) { return from.*member; }};
}

/// Microseconds that are read back as the same time, to the last bit.
double exact_microseconds(Seconds time) {
    double us = to_microseconds(time);
    for (const double toward : {0.0, 1e300})
        for (double near = us; std::abs(near - us) <= 4e-16 * us; near = std::nextafter(near, toward))
            if (microseconds(near) == time) return near;
    return us;
}

void read_command(ConfigObject& from, const std::string& key, CopyWork& to) {
    static const std::array<std::string, 3> names{"broadcast", "swap", "back_to_back"};
    const std::size_t chosen = from.choice(key, names);
    if (chosen == 0) to.command = Broadcast{static_cast<int>(from.integer("second_dst", 0, last_rank))};
    if (chosen == 1) to.command = Swap{};
    if (chosen != 2) return;
    const auto batch = from.integer("batch", 1, 65535);
    to.command = BackToBack{static_cast<std::uint16_t>(from.integer("place", 0, batch - 1)),
                            static_cast<std::uint16_t>(batch)};
}

Json command_name(const CopyWork& copy) {
    if (copy.broadcast() != nullptr) return "broadcast";
    if (copy.is_swap()) return "swap";
    return std::holds_alternative<BackToBack>(copy.command) ? Json("back_to_back") : left_out;
}

/// A key that dma_command reads.
InputKey<CopyWork> part_of_command(const std::string& key, const std::string& doc,
                                   Json (*value)(const CopyWork&)) {
    return InputKey<CopyWork>(
               key, whole_from(0, doc), [](ConfigObject&, const std::string&, CopyWork&) {}, value)
        .optional();
}

template <auto Member>
Json part_of_batch(const CopyWork& copy) {
    const auto* part = std::get_if<BackToBack>(&copy.command);
    return part != nullptr ? Json(part->*Member) : left_out;
}

/// Length of the pieces of a copy, behind its key "bytes", which is the default.
template <class Copy>
InputKey<Copy> run_key() {
    return InputKey<Copy>(
               "run_bytes", number_from(0, "Length of a contiguous piece. Default: bytes."),
               [](ConfigObject& from, const std::string& key, Copy& to) {
                   to.run = Bytes(from.number(key, {1, to.bytes.si()}));
               },
               [](const Copy& copy) { return copy.run == copy.bytes ? left_out : Json(copy.run.si()); })
        .optional();
}

/// Work that takes time and nothing of the GPU.
bool is_wait(const MemoryBoundWork& work) {
    return work.in_this_run && work.gap == Seconds();
}

// clang-format off
InputKeys<CopyWork> copy_keys() {
    using C = CopyWork;
    static const std::vector<InputKey<C>> keys{
        rank_key<C>("src", &C::src, 0, "Rank that the data come from."),
        rank_key<C>("dst", &C::dst, 0, "Rank that they go to."),
        number_key<&C::bytes>("bytes", "Sent.", any_bytes),
        run_key<C>(),
        short_key(InputKey<C>(plain_field<&C::agent>("agent", agent_names, "Who moves the data: a DMA engine, or a kernel. Default: dma."))),
        short_key(InputKey<C>(plain_field<&C::direction>("transfer", direction_names, "pull: the destination executes it; push: the source. Default: pull."))),
        short_key(InputKey<C>(number_key<&C::cus>("copy_cus", "Thread blocks of a copy kernel. Default: 0, as with dma.", units_of_gpu))),
        InputKey<C>("dma_command", choice_of(std::array<std::string, 3>{"broadcast", "swap", "back_to_back"},
            "broadcast: also to second_dst; swap: both ways; back_to_back: one of a batch that an engine is told of at once. Default: a copy."), read_command, command_name).optional(),
        part_of_command("second_dst", "The other rank that a broadcast writes to.", [](const C& copy) { return copy.broadcast() != nullptr ? Json(copy.broadcast()->second) : left_out; }),
        part_of_command("place", "Of back_to_back: which command of the batch it is, from 0.", part_of_batch<&BackToBack::place>),
        part_of_command("batch", "Of back_to_back: commands of the batch. The engine signals the end of the last.", part_of_batch<&BackToBack::batch>),
        flag_key<&C::prelaunched>("prelaunched", "Queued before, behind a poll that a write to memory ends; or by a kernel that runs already."),
        flag_key<&C::stored>("stored", "The kernel that makes the bytes stores them at dst."),
        flag_key<&C::added>("added", "The memory at dst adds the bytes to what it holds."),
        flag_key<&C::all_pairs>("all_pairs", "While src sends to other GPUs of its node, too, and others of them send to dst.")};
    return keys;
}

InputKeys<LocalCopyWork> local_copy_keys() {
    using L = LocalCopyWork;
    static const std::vector<InputKey<L>> keys{
        number_key<&L::bytes>("bytes", "Read and written once.", any_bytes),
        run_key<L>(),
        InputKey<L>("agent", choice_of(agent_names, "dma: the runtime's copy; cu: a kernel of copy_cus thread blocks. Default: a schedule's kernel."),
            [](ConfigObject& from, const std::string& key, L& to) { to.by_runtime = from.choice(key, agent_names) == 0; },
            [](const L& copy) { return copy.is_own_kernel() ? left_out : Json(agent_names[copy.by_runtime ? 0 : 1]); }).optional(),
        short_key(InputKey<L>(number_key<&L::cus>("copy_cus", "Thread blocks of a copy kernel. Default: 0, as with dma.", units_of_gpu)))};
    return keys;
}

InputKeys<ReduceWork> reduce_keys() {
    using R = ReduceWork;
    static const std::vector<InputKey<R>> keys{
        number_key<&R::bytes>("bytes", "Of one part.", any_bytes),
        number_key<&R::parts>("parts", "How many are summed.", {1, 65536}),
        flag_key<&R::by_framework>("by_framework", "By an operator of a framework, not by a kernel made for it.")};
    return keys;
}

InputKeys<MemoryBoundWork> memory_bound_keys() {
    using M = MemoryBoundWork;
    static const std::vector<InputKey<M>> keys{
        number_key<&M::read>("read_bytes", "Bytes read.", any_bytes),
        number_key<&M::written>("write_bytes", "Bytes written.", any_bytes),
        short_key(InputKey<M>(number_key<&M::flops>("flops", "On matrix units. Default: 0.", {0, 1e21}))),
        short_key(InputKey<M>(plain_field<&M::dtype>("dtype", dtype_names, "Number format of these. Default: bf16."))),
        InputKey<M>("time_us", number_from(0, "How long it ran elsewhere, which it takes here, too."),
            [](ConfigObject& from, const std::string& key, M& to) { to.time = microseconds(from.number(key, {0, 1e12})); },
            [](const M& work) { return work.time > Seconds() ? Json(exact_microseconds(work.time)) : left_out; }).optional(),
        InputKey<M>("waits", {{"description", "Nothing runs: the stream waits for time_us."}, {"type", "boolean"}},
            [](ConfigObject& from, const std::string& key, M& to) {
                if (from.boolean(key)) to.in_this_run = true, to.gap = Seconds();
            },
            [](const M& work) { return is_wait(work) ? Json(true) : left_out; }).optional(),
        member_key<M>("attention", &M::attention, "Shape of fused attention.", attention_keys()).optional()
            .written_if([](const M& work) { return work.attention.sequences > 0; })};
    return keys;
}

InputKeys<CollectiveKernelWork> collective_keys() {
    using C = CollectiveKernelWork;
    static const std::vector<InputKey<C>> keys{
        plain_field<&C::kind>("collective", collective_names, "Which collective."),
        number_key<&C::operand>("operand_bytes", "The whole operand: gathered, or sent by each rank.", any_bytes),
        short_key(InputKey<C>(number_key<&C::cus>("channels", "Compute units of the kernel. Default: the library's own choice.", units_of_gpu))),
        short_key(InputKey<C>(plain_field<&C::kernel>("kernel", collective_kernel_names, "Whose kernel. Default: the vendor's library."))),
        member_key<C>("deepep", &C::exchange, "With kernel deepep: an all_to_all of experts.", exchange_keys()).optional()
            .written_if([](const C& work) { return work.exchange.tokens > 0; }),
        member_key<C>("group", &C::group, "Groups of ranks that exchange, each by itself. Default: all.", group_keys()).optional()
            .written_if([](const C& work) { return !work.group.is_all() && work.group.ranks == nullptr; }),
        InputKey<C>("members", {{"description", "Or the ranks that exchange, ascending."}, {"type", "array"}, {"minItems", 1}, {"items", {{"type", "integer"}, {"minimum", 0}}}},
            [](ConfigObject& from, const std::string& key, C& to) {
                if (from.has("group")) from.fail(key, "stands beside group");
                const auto ranks = mapped(from.integers(key, 0, last_rank), [](std::int64_t rank) { return static_cast<int>(rank); });
                if (ranks.empty() || std::ranges::adjacent_find(ranks, std::ranges::greater_equal()) != ranks.end())
                    from.fail(key, "is not ascending, or empty");
                to.group = RankGroup::of(ranks);
            },
            [](const C& work) { return work.group.ranks != nullptr ? Json(*work.group.ranks) : left_out; }).optional()};
    return keys;
}

/// Keys of tasks whose work is a Work.
template <class Work>
std::vector<InputKey<Task>> of_tasks(InputKeys<Work> keys) {
    return mapped(keys, [](const InputKey<Work>& key) {
        return lifted<Task>(key, [](auto& task) -> auto& { return std::get<Work>(task.work); });
    });
}

std::vector<InputKey<Task>> gemm_task_keys() {
    std::vector<InputKey<Task>> keys = of_tasks(gemm_keys());
    append(keys, of_tasks<GemmShape>(std::vector{flag_key<&GemmShape::accumulate>("accumulate", "C += A B; else C = A B.")}));
    append(keys, std::vector{
        short_key(InputKey<Task>(number_key<&Task::gemm_cus>("gemm_cus", "Compute units that its stream may use (a mask). Default: all.", units_of_gpu))),
        flag_key<&Task::persistent>("persistent", "By a kernel of gemm_cus work-groups, instead of a library's under a mask.")});
    return keys;
}
// clang-format on

Work empty_work(TaskKind kind) {
    switch (kind) {
        case TaskKind::gemm:
            return GemmShape();
        case TaskKind::copy:
            return CopyWork();
        case TaskKind::local_copy:
            return LocalCopyWork();
        case TaskKind::reduce:
            return ReduceWork();
        case TaskKind::memory_bound:
            return MemoryBoundWork();
        default:
            return CollectiveKernelWork();
    }
}

}  // namespace

// clang-format off
InputKeys<Task> common_task_keys() {
    static const std::vector<InputKey<Task>> keys{
        short_key(rank_key<Task>("shard", &Task::shard, -1, "Whose data it works on. Default: -1, of several.")),
        short_key(rank_key<Task>("chunk", &Task::chunk, -1, "Which chunk of that shard. Default: -1, the whole.")),
        short_key(InputKey<Task>(number_key<&Task::priority>("priority", "Of its stream; the higher goes first. Default: 0.", {0, 1}))),
        short_key(rank_key<Task>("operator", &Task::op, -1, "Which operator of the config's list it belongs to, from 0. Default: -1, none.")),
        flag_key<&Task::continues>("continues", "Goes on with the kernel of the task before it on its stream.")};
    return keys;
}
// clang-format on

InputKeys<Task> keys_of_kind(TaskKind kind) {
    static const std::array tables{
        gemm_task_keys(),        of_tasks(copy_keys()),         of_tasks(local_copy_keys()),
        of_tasks(reduce_keys()), of_tasks(memory_bound_keys()), of_tasks(collective_keys())};
    return tables[static_cast<std::size_t>(kind)];
}

Task read_task(ConfigObject& from) {
    const auto kinds = std::span(task_kind_names).first(static_cast<std::size_t>(TaskKind::host));
    const auto kind = static_cast<TaskKind>(from.choice("kind", kinds));
    Task task{.work = empty_work(kind)};
    for (const InputKey<Task>& key : keys_of_kind(kind)) read_key(from, key, task);
    for (const InputKey<Task>& key : common_task_keys()) read_key(from, key, task);
    const auto in_one_piece = [](auto* copy) {
        if (copy != nullptr) copy->run = copy->bytes;
    };
    if (!from.has("run_bytes")) {
        in_one_piece(std::get_if<CopyWork>(&task.work));
        in_one_piece(std::get_if<LocalCopyWork>(&task.work));
    }
    return task;
}

Json written_task(const Task& task) {
    Json json{{"kind", task_kind_names[static_cast<std::size_t>(task.kind())]}};
    json.update(written(task, common_task_keys()));
    json.update(written(task, keys_of_kind(task.kind())));
    return json;
}

}  // namespace overlap
