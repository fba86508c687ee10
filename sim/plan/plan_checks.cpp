#include "sim/plan/plan_checks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// One task beside the one before it on its stream.
class TaskCheck {
public:
    TaskCheck(const TaskList& list, TaskId id, const Task* before) : list_(list), id_(id), before_(before) {}

    void run() const {
        const Task& task = list_.tasks[id_];
        if (task.continues && before_ == nullptr) fail("continues, but is the first of its stream");
        if (task.persistent && task.gemm_cus == 0) fail("is persistent, but has no gemm_cus");
        std::visit([&](const auto& work) { check(task, work); }, task.work);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw UserError(one_line(list_.origin + ": /tasks: " + list_.name_of(id_) + " " + what));
    }

    void check(const Task& task, const CopyWork& copy) const {
        if (copy.src == copy.dst)
            fail("copies from rank " + std::to_string(copy.src) + " to itself (allowed: kind local_copy)");
        const bool pull = copy.direction == Direction::pull;
        if (task.gpu != (pull ? copy.dst : copy.src))
            fail(std::string("is executed by rank ") + std::to_string(task.gpu) +
                 (pull ? ", but dst executes what transfer 'pull' copies"
                       : ", but src executes what transfer 'push' copies"));
        if (copy.agent == Agent::dma && copy.cus > 0) fail("has copy_cus, but agent 'dma' takes no units");
        const bool plain = std::holds_alternative<PlainCopy>(copy.command);
        if (!plain && (copy.agent != Agent::dma || copy.stored))
            fail("has a dma_command, but is no copy by DMA");
        if (const Broadcast* both = copy.broadcast();
            both != nullptr && (both->second == copy.src || both->second == copy.dst))
            fail("broadcasts to src, or to dst twice");
        if (const auto* part = std::get_if<BackToBack>(&copy.command); part != nullptr && part->place > 0)
            require_batch(*part);
    }
    void require_batch(const BackToBack& part) const {
        const auto* copy = before_ == nullptr ? nullptr : std::get_if<CopyWork>(&before_->work);
        const auto* other = copy == nullptr ? nullptr : std::get_if<BackToBack>(&copy->command);
        if (other == nullptr || other->batch != part.batch || other->place + 1 != part.place)
            fail("is command " + std::to_string(part.place) +
                 " of a batch, but the task before it on its stream is not command " +
                 std::to_string(part.place - 1) + " of as many");
    }
    void check(const Task&, const LocalCopyWork& copy) const {
        if (copy.by_runtime && copy.cus > 0) fail("has copy_cus, but agent 'dma' takes no units");
    }
    void check(const Task&, const MemoryBoundWork& work) const {
        if (work.in_this_run && (work.time == Seconds() || work.read + work.written > Bytes()))
            fail("waits, but has bytes or no time_us");
        const AttentionCall& call = work.attention;
        if (call.sequences > 0 && call.heads % call.kv_heads != 0)
            fail("has attention with kv_heads that are no divisor of heads");
    }
    void check(const Task& task, const CollectiveKernelWork& work) const {
        if (work.group.ranks != nullptr && !std::ranges::binary_search(*work.group.ranks, task.gpu))
            fail("is of a rank that is not among its members");
        const bool exchanged = work.kernel == CollectiveKernel::deepep;
        if (exchanged != (work.exchange.tokens > 0))
            fail("has kernel 'deepep' without \"deepep\", or the other way round");
        const CollectiveKind only = exchanged ? CollectiveKind::all_to_all : CollectiveKind::all_reduce;
        if (work.kernel != CollectiveKernel::library && work.kind != only)
            fail("is by kernel '" + name_of(work.kernel) + "', which only does " + name_of(only));
    }
    template <class Other>
    void check(const Task&, const Other&) const {}

    const TaskList& list_;
    TaskId id_;
    const Task* before_;
};

bool same_size(const Block& one, const Block& other) {
    return one.rows == other.rows && one.columns == other.columns;
}

/// The blocks of one task.
class BlockCheck {
public:
    BlockCheck(const PlanLines& lines, TaskId id, const std::vector<Buffer>& buffers)
        : lines_(lines), id_(id), buffers_(buffers), blocks_(lines.operands[id]) {}

    void run() const {
        const Task& task = lines_.list.tasks[id_];
        for (const auto* blocks : {&blocks_.from, &blocks_.to})
            for (const Block& block : *blocks)
                if (!is_inside(block, buffers_[block.buffer])) fail("reaches beyond a buffer");
        if (blocks_.from.empty() && blocks_.to.empty())
            fail("has no places, which the plan's other data have");
        std::visit([&](const auto& work) { check(task, work); }, task.work);
    }

    static bool is_inside(const Block& block, const Buffer& buffer) {
        return block.row + block.rows <= buffer.rows && block.column + block.columns <= buffer.columns;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw UserError(one_line(lines_.list.origin + ": /tasks: " + lines_.list.name_of(id_) + " " + what));
    }
    void need(bool holds, const char* what) const {
        if (!holds)
            fail(std::string("has other blocks, expected ") + what +
                 " (a plan that is only simulated needs no places)");
    }
    int gpu_of(const Block& block) const { return buffers_[block.buffer].gpu; }
    void need_here(const Task& task) const {
        for (const auto* blocks : {&blocks_.from, &blocks_.to})
            for (const Block& block : *blocks)
                need(gpu_of(block) == task.gpu, "blocks in the memory of its rank");
    }

    void check(const Task& task, const GemmShape& gemm) const {
        need(blocks_.from.size() == 2 && blocks_.to.size() == 1, "from: A, B; to: C");
        const Block &a = blocks_.from[0], &b = blocks_.from[1], &c = blocks_.to[0];
        need(a.rows == gemm.m && c.rows == gemm.m && b.columns == gemm.n && c.columns == gemm.n &&
                 a.columns == gemm.k && b.rows == gemm.k,
             "A of m x k, B of k x n, C of m x n");
        need_here(task);
    }
    void check(const Task&, const CopyWork& copy) const {
        need(blocks_.from.size() == 1 && blocks_.to.size() == 1 && same_size(blocks_.from[0], blocks_.to[0]),
             "one block from, one of the same size to");
        const Block& from = blocks_.from[0];
        need(gpu_of(from) == copy.src && gpu_of(blocks_.to[0]) == copy.dst, "from in src, to in dst");
        const Bytes bytes = matrix_size(from.rows, from.columns, buffers_[from.buffer].dtype);
        // A collective that is not cut sends as many bytes of each shard, whose rows may not divide evenly.
        const Bytes of_a_row = matrix_size(1, from.columns, buffers_[from.buffer].dtype);
        need(std::abs((bytes - copy.bytes).si()) <= of_a_row.si(), "as many bytes as the copy has");
    }
    void check(const Task& task, const LocalCopyWork&) const {
        need(!blocks_.from.empty() && std::ranges::equal(blocks_.from, blocks_.to, same_size),
             "as many blocks to as from, of the same sizes");
        need_here(task);
    }
    void check(const Task& task, const ReduceWork& sum) const {
        need(blocks_.to.size() == 1 && blocks_.from.size() == static_cast<std::size_t>(sum.parts) &&
                 std::ranges::all_of(blocks_.from,
                                     [&](const Block& part) { return same_size(part, blocks_.to[0]); }),
             "a block from for each part, one to, all of one size");
        need_here(task);
    }
    template <class Other>
    void check(const Task& task, const Other&) const {
        need_here(task);
    }

    const PlanLines& lines_;
    TaskId id_;
    const std::vector<Buffer>& buffers_;
    const Operands& blocks_;
};

}  // namespace

void require_tasks(const TaskList& list) {
    std::map<std::pair<int, int>, TaskId> last;
    for (TaskId id = 0; id < list.tasks.size(); ++id) {
        const Task& task = list.tasks[id];
        const auto [found, first] = last.try_emplace({task.gpu, task.stream}, id);
        TaskCheck(list, id, first ? nullptr : &list.tasks[found->second]).run();
        found->second = id;
    }
}

void require_blocks(const PlanLines& lines, const Placement& placement) {
    for (const auto* blocks : {&placement.inputs, &placement.results})
        for (const Block& block : *blocks)
            if (!BlockCheck::is_inside(block, placement.buffers[block.buffer]))
                throw UserError(lines.list.origin +
                                (blocks == &placement.inputs ? ": /inputs" : ": /results") +
                                ": reach beyond buffer " + std::to_string(block.buffer));
    for (TaskId id = 0; id < lines.list.tasks.size(); ++id) BlockCheck(lines, id, placement.buffers).run();
}

}  // namespace overlap
