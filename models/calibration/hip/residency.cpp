// Measures which compute units a kernel gets beside GEMMs, and when, and how much the GEMMs lose.
//
// GEMM after GEMM on one stream of GPU 0, `wait_us` after the release. Beside them, `late_us` after the
// release, `count` kernels one after the other, whose thread blocks record begin, end and compute unit:
//   beside=hold        blocks that hold one compute unit each for hold_us and do nothing
//   beside=local_cu    copies of `size` within the GPU, as of `interference`
//   beside=cu_in       copies of `size` that read GPU 1's memory
//   beside=cu_push     copies of `size` that write GPU 1's memory
// Samples: time of the first GEMM, µs. More fields:
//   gemm_alone_us      the same without other kernels
//   gemm_ends_us       [sample][GEMM], µs from the start of the first GEMM, by events
//   begins_us, ends_us [sample × kernel][block], µs from the same time, in the order of the blocks
//   ran_on             [sample × kernel][block], the compute unit
// A kernel of one thread before the first GEMM records the zero of all times.

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/copy_loop.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

struct Stay {
    long long begin = 0, end = 0;  ///< ns
    long long unit = 0;
};

__global__ void note_time(long long* time) {
    *time = nanoseconds();
}

__global__ void hold_unit(Stay* stays, long long duration) {
    const long long begin = nanoseconds();
    while (nanoseconds() - begin < duration) {
    }
    stays[blockIdx.x] = {begin, nanoseconds(), static_cast<long long>(compute_unit())};
}

__global__ void __launch_bounds__(copy_threads)
    copy_noted(const uint4* source, uint4* destination, std::size_t count, Stay* stays) {
    const long long begin = nanoseconds();
    copy_words(source, destination, count);
    __syncthreads();
    if (threadIdx.x == 0) stays[blockIdx.x] = {begin, nanoseconds(), static_cast<long long>(compute_unit())};
}

/// The kernels beside the GEMMs, and what their thread blocks recorded.
class Beside {
public:
    Beside(Machine& machine, const Case& c)
        : word_(c.word("beside")),
          to_(word_ == "cu_push" ? 1 : 0),
          blocks_(c.count("blocks")),
          count_(c.count("count")),
          size_(c.bytes("size")),
          hold_(c.count("hold_us") * 1000),
          late_us_(static_cast<double>(c.count("late_us"))) {
        if (blocks_ == 0) throw UserError("blocks is at least 1");
        const int from = word_ == "cu_in" ? 1 : 0;
        if (from + to_ > 0) need_gpus(machine, 2);
        stays_ = static_cast<Stay*>(machine.take(0, sizeof(Stay) * blocks_ * count_));
        start_ = static_cast<long long*>(machine.take(0, sizeof *start_));
        if (word_ == "hold") {
            allow_shared(hold_unit, whole_unit_shared_bytes);
        } else {
            source_ = machine.take(from, size_);
            check(hipSetDevice(from));
            fill_words(source_, size_, seed);
            check(hipSetDevice(to_));
            destination_ = machine.take(to_, size_);
            poison(destination_, size_);
            check(hipSetDevice(0));
        }
    }
    Lane lane() const {
        Lane lane{0, {}};
        lane.delay_us = late_us_;
        for (int i = 0; i < count_; ++i)
            lane.operations.push_back([this, i](hipStream_t stream) {
                Stay* stays = stays_ + i * blocks_;
                if (word_ == "hold")
                    hold_unit<<<blocks_, 1, whole_unit_shared_bytes, stream>>>(stays, hold_);
                else
                    copy_noted<<<blocks_, copy_threads, 0, stream>>>(static_cast<const uint4*>(source_),
                                                                     static_cast<uint4*>(destination_),
                                                                     size_ / 16, stays);
                check_launch();
            });
        return lane;
    }
    Operation note_start() const {
        return [this](hipStream_t stream) {
            note_time<<<1, 1, 0, stream>>>(start_);
            check_launch();
        };
    }
    void read(std::vector<std::vector<double>>& begins, std::vector<std::vector<double>>& ends,
              std::vector<std::vector<double>>& units) const {
        std::vector<Stay> stays(blocks_ * count_);
        long long start = 0;
        check(hipMemcpy(stays.data(), stays_, sizeof(Stay) * stays.size(), hipMemcpyDeviceToHost));
        check(hipMemcpy(&start, start_, sizeof start, hipMemcpyDeviceToHost));
        for (int i = 0; i < count_; ++i) {
            for (auto* rows : {&begins, &ends, &units}) rows->emplace_back();
            for (int block = 0; block < blocks_; ++block) {
                const Stay& stay = stays[i * blocks_ + block];
                begins.back().push_back(static_cast<double>(stay.begin - start) * 1e-3);
                ends.back().push_back(static_cast<double>(stay.end - start) * 1e-3);
                units.back().push_back(static_cast<double>(stay.unit));
            }
        }
    }
    void expect() const {
        if (!destination_) return;
        check(hipSetDevice(to_));
        expect_words(destination_, contiguous(size_), contiguous(size_), 0, seed);
        check(hipSetDevice(0));
    }

private:
    static constexpr std::uint64_t seed = 77;
    std::string word_;
    int to_;  ///< destination GPU of the copies
    std::int64_t blocks_, count_;
    std::size_t size_;
    long long hold_;
    double late_us_;
    Stay* stays_ = nullptr;
    long long* start_ = nullptr;
    void *source_ = nullptr, *destination_ = nullptr;
};

Result run(Machine& machine, const Case& c) {
    check(hipSetDevice(0));
    const GemmShape shape = gemm_shape(c);
    const auto gemm = make_gemm(shape);
    const GemmOperands operands(machine, 0, shape);
    operands.check_result(*gemm);
    const Beside beside(machine, c);

    std::int64_t next = 0;
    Lane worker{0, {beside.note_start()}};
    for (int i = 0; i < c.count("gemms"); ++i)
        worker.operations.push_back([&](hipStream_t stream) { operands.run(*gemm, next++, stream); });
    worker.delay_us = static_cast<double>(c.count("wait_us"));

    Result result;
    std::vector<double> alone;
    std::vector<std::vector<double>> gemm_ends, begins, ends, units;
    run_lanes(machine, {worker, beside.lane()});
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample) {
        alone.push_back(run_lanes(machine, {worker})[0].duration(1));
        const auto times = run_lanes(machine, {worker, beside.lane()});
        result.samples.push_back(times[0].duration(1));
        gemm_ends.emplace_back();
        for (std::size_t i = 1; i < times[0].ends.size(); ++i)
            gemm_ends.back().push_back(times[0].ends[i] - times[0].ends[0]);
        beside.read(begins, ends, units);
    }
    beside.expect();
    result.more.add("gemm_alone_us", median(alone))
        .add("algorithm", gemm->algorithm())
        .add("gemm_ends_us", gemm_ends)
        .add("begins_us", begins)
        .add("ends_us", ends)
        .add("ran_on", units);
    return result;
}

}  // namespace

Question residency() {
    return {{"residency", gemm_keys({{"beside", Type::word, "", {"hold", "local_cu", "cu_in", "cu_push"}},
                                     {"blocks", Type::count},
                                     {"count", Type::count, "1"},
                                     {"size", Type::bytes, "1MiB"},
                                     {"hold_us", Type::count, "0"},
                                     {"wait_us", Type::count, "0"},
                                     {"late_us", Type::count, "0"},
                                     {"gemms", Type::count, "3"},
                                     {"n_samples", Type::count, "9"}})},
            run};
}

}  // namespace overlap::hip
