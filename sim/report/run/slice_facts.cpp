#include "sim/report/run/slice_facts.hpp"

#include <cmath>

#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

/// Four digits: enough to read, and short files.
double rounded(double value) {
    return std::stod(significant(value));
}

std::int64_t whole(Bytes bytes) {
    return std::llround(bytes.si());
}

std::string gpu_name(int gpu) {
    return "GPU " + std::to_string(gpu);
}

class Facts {
public:
    Facts(const Interval& body, int gpus) : lasted_(body.second - body.first), gpus_(gpus) {}

    void add(const GemmShape& gemm) {
        json_["shape"] = (gemm.batch > 1 ? std::to_string(gemm.batch) + " x " : "") + shape_name(gemm) + " " +
                         name_of(gemm.dtype);
        add_flops(gemm.flops());
    }
    void add(const CopyWork& copy) {
        json_["source"] = gpu_name(copy.src);
        json_["destination"] = gpu_name(copy.dst);
        if (const Broadcast* both = copy.broadcast()) json_["second destination"] = gpu_name(both->second);
        json_["agent"] = agent_names[static_cast<std::size_t>(copy.agent)] + " " +
                         direction_names[static_cast<std::size_t>(copy.direction)];
        add_bytes(copy.bytes);
        if (copy.run < copy.bytes) json_["contiguous bytes"] = whole(copy.run);
    }
    void add(const LocalCopyWork& copy) { add_bytes(copy.bytes); }
    void add(const ReduceWork& reduce) {
        json_["parts"] = reduce.parts;
        add_bytes(reduce.bytes);
    }
    void add(const MemoryBoundWork& work) {
        add_bytes(work.read + work.written);
        if (work.flops > Flops()) add_flops(work.flops);
    }
    /// The rate is the bus bandwidth (sim/README.md).
    void add(const CollectiveKernelWork& work) {
        json_["collective"] = name_of(work.kind);
        json_["bytes"] = whole(work.operand);
        const double ways = work.kind == CollectiveKind::all_reduce ? 2 : 1;
        add_rate(ways * (gpus_ - 1) / gpus_ * work.operand);
    }
    template <class Other>
    void add(const Other&) {}

    Json& json() { return json_; }

private:
    void add_bytes(Bytes bytes) {
        json_["bytes"] = whole(bytes);
        add_rate(bytes);
    }
    void add_rate(Bytes bytes) {
        if (lasted_ > Seconds()) json_["GB/s"] = rounded(to_gigabytes_per_second(bytes / lasted_));
    }
    void add_flops(Flops flops) {
        if (lasted_ > Seconds()) json_["TFLOP/s"] = rounded(to_teraflops(flops / lasted_));
    }

    Json json_ = Json::object();
    Seconds lasted_;
    int gpus_;
};

}  // namespace

Json slice_facts(const Task& task, const Interval& body, const std::vector<std::string>& operators,
                 int gpus) {
    Facts facts(body, gpus);
    std::visit([&](const auto& work) { facts.add(work); }, task.work);
    Json& json = facts.json();
    if (task.shard >= 0) json["shard"] = task.shard;
    if (task.chunk >= 0) json["step"] = task.chunk;
    if (task.op >= 0 && static_cast<std::size_t>(task.op) < operators.size())
        json["operator"] = operators[static_cast<std::size_t>(task.op)];
    return std::move(json);
}

}  // namespace overlap
