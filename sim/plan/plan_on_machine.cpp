#include <algorithm>
#include <cmath>

#include "sim/core/available_memory.hpp"
#include "sim/core/shown.hpp"
#include "sim/plan/plan.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

class OnMachine {
public:
    OnMachine(const Plan& plan, const Topology& topology) : plan_(plan), topology_(topology) {}

    void check() const {
        if (plan_.gpus > topology_.gpus())
            throw UserError(one_line(plan_.origin + ": /gpus: is " + std::to_string(plan_.gpus) +
                                     ", but the topology has " + std::to_string(topology_.gpus())));
        std::vector<Bytes> held(static_cast<std::size_t>(plan_.gpus));
        if (plan_.placement)
            for (const Buffer& buffer : plan_.placement->buffers)
                held[static_cast<std::size_t>(buffer.gpu)] +=
                    matrix_size(buffer.rows, buffer.columns, buffer.dtype);
        for (std::size_t gpu = 0; gpu < held.size(); ++gpu)
            if (held[gpu] > device().hbm_capacity)
                throw UserError(one_line(plan_.origin + ": /buffers: take " + memory_text(held[gpu]) +
                                         " on rank " + std::to_string(gpu) + ", but " + device().name +
                                         " has " + memory_text(device().hbm_capacity)));
        for (TaskId id = 0; id < plan_.graph.size(); ++id)
            std::visit([&](const auto& work) { check(id, work); }, plan_.graph[id].work);
    }

private:
    const DeviceSpec& device() const { return topology_.device(); }
    [[noreturn]] void fail(TaskId id, const std::string& what) const {
        throw UserError(one_line(plan_.origin + ": /tasks: " + in_quotes(plan_.name_of(id)) + " of rank " +
                                 std::to_string(plan_.graph[id].gpu) + " " + what));
    }
    void require_units(TaskId id, int units) const {
        if (units > device().compute_units)
            fail(id, "takes " + std::to_string(units) + " compute units, but " + device().name + " has " +
                         std::to_string(static_cast<int>(device().compute_units)));
    }
    void require_memory(TaskId id, Bytes bytes) const {
        if (bytes > device().hbm_capacity)
            fail(id, "takes " + memory_text(bytes) + " of one GPU, but " + device().name + " has " +
                         memory_text(device().hbm_capacity));
    }

    void check(TaskId id, const GemmShape& gemm) const {
        require_units(id, plan_.graph[id].gemm_cus);
        require_memory(
            id, static_cast<double>(gemm.batch) *
                    (matrix_size(gemm.m, gemm.k, gemm.dtype) + matrix_size(gemm.k, gemm.n, gemm.dtype) +
                     matrix_size(gemm.m, gemm.n, output_type(gemm.dtype))));
    }
    void check(TaskId id, const CopyWork& copy) const {
        require_units(id, copy.cus);
        require_memory(id, copy.bytes);
        if (copy.agent != Agent::dma) return;
        const bool plain = std::holds_alternative<PlainCopy>(copy.command) && !copy.prelaunched;
        if (plain || copy.stored) return;
        if (!device().dma->commands)
            fail(id, "has a command that DMA engines of " + device().name +
                         " were not measured with (allowed: plain copies)");
        int last = std::max(copy.src, copy.dst), first = std::min(copy.src, copy.dst);
        if (const Broadcast* both = copy.broadcast()) {
            last = std::max(last, both->second);
            first = std::min(first, both->second);
        }
        if (topology_.node_of(first) != topology_.node_of(last) &&
            !std::holds_alternative<PlainCopy>(copy.command))
            fail(id, "has a DMA command between nodes (allowed: plain copies)");
    }
    void check(TaskId id, const LocalCopyWork& copy) const {
        require_units(id, copy.cus);
        require_memory(id, copy.bytes);
    }
    void check(TaskId id, const ReduceWork& sum) const { require_memory(id, sum.bytes); }
    void check(TaskId id, const CollectiveKernelWork& work) const {
        require_units(id, work.cus);
        require_memory(id, work.operand);
        if (work.group.ranks != nullptr && work.group.ranks->back() >= topology_.gpus())
            fail(id, "names member " + std::to_string(work.group.ranks->back()) + ", but the topology has " +
                         std::to_string(topology_.gpus()) + " GPUs");
        if (work.group.members(topology_.gpus()) < 2) fail(id, "is a collective of one rank");
        if (work.group.is_all()) return;
        try {
            topology_.groups(work.group);
        } catch (const UserError& error) {
            fail(id, error.what());
        }
    }
    template <class Other>
    void check(TaskId, const Other&) const {}

    const Plan& plan_;
    const Topology& topology_;
};

}  // namespace

void require_fits(const Plan& plan, const Topology& topology) {
    OnMachine(plan, topology).check();
}

void require_operators(const Plan& plan, const Workload& workload) {
    const auto* operators = std::get_if<std::vector<Operator>>(&workload.content);
    for (TaskId id = 0; id < plan.graph.size(); ++id) {
        const Task& task = plan.graph[id];
        if (task.op < 0) continue;
        const std::size_t count = operators == nullptr ? 0 : operators->size();
        const auto fail = [&](const std::string& what) {
            throw UserError(one_line(plan.origin + ": /tasks: " + in_quotes(plan.name_of(id)) +
                                     " is of operator " + std::to_string(task.op) + what));
        };
        if (static_cast<std::size_t>(task.op) >= count)
            fail(", but the plan's workload has " + std::to_string(count) + " operators");
        const bool is_gemm =
            std::holds_alternative<GemmShape>((*operators)[static_cast<std::size_t>(task.op)].work);
        if (task.kind() == TaskKind::gemm && !is_gemm) fail(", which is no GEMM");
    }
}

}  // namespace overlap
