// Measures the energy of work: GEMMs or copies without a pause, and the energy counters of all GPUs.
//
// work=idle    nothing, after half a second of GEMMs that raise the clocks
//      gemm    GEMM after GEMM on every GPU
//      local   copies of `size` within every GPU
//      peer    copies of `size` from every GPU r to r+1: transfer=pull by r+1, push by r
// agent and blocks as in peer_copy. Work runs in groups of about 5 ms; the host enqueues one group ahead.
// The counters are read at the end of a group, `warm_ms` after the start and again `duration_ms` later.
// pause_ms > 0: a pause of that length after each group, which makes bursts that stay below the power limit.
// Samples: time of one operation, µs. More fields: seconds between the readings; busy_seconds of GPU 0
// between them (without pauses); operations of each GPU; energy_J by GPU; power_W, clock_MHz, temperature_C
// of GPU 0 at the second reading.

#include <algorithm>
#include <chrono>
#include <thread>

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/question.hpp"
#include "models/calibration/hip/telemetry.hpp"

namespace overlap::hip {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double group_us = 5000;

/// The operation that every GPU repeats, each on its own stream.
class Work {
public:
    Work(Machine& machine, const Case& c, int gpus) : machine_(machine), gpus_(gpus) {
        const std::string& work = c.word("work");
        if (work == "gemm" || work == "idle") {
            add_gemms(work == "idle" ? GemmShape{4096, 2560, 8192} : gemm_shape(c));
        } else {
            if (work == "peer" && gpus < 2) throw UserError("work=peer needs gpus=2 or more");
            add_copies(c, work == "peer");
        }
        std::vector<Lane> lanes;
        for (int gpu = 0; gpu < gpus; ++gpu)
            lanes.push_back({gpu, std::vector<Operation>(3, operations_[gpu]), false, true});
        double about = 0;
        for (const LaneTimes& times : run_lanes(machine, lanes)) about = std::max(about, times.duration(2));
        count_ = std::max(1, static_cast<int>(group_us / about));
    }

    int operations_a_group() const { return count_; }
    /// Enqueues a group and returns when the group before has ended.
    void group() {
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            check(hipSetDevice(gpu));
            for (int i = 0; i < count_; ++i) operations_[gpu](machine_.stream(gpu, 0));
            check(hipEventRecord(machine_.event(gpu, groups_ % 2), machine_.stream(gpu, 0)));
        }
        if (groups_++ == 0) return;
        for (int gpu = 0; gpu < gpus_; ++gpu) check(hipEventSynchronize(machine_.event(gpu, groups_ % 2)));
    }
    /// Runs a group and pauses after its end.
    void burst(std::chrono::milliseconds pause) {
        const auto record = [&](int gpu, std::size_t event) {
            check(hipEventRecord(machine_.event(gpu, event), machine_.stream(gpu, 0)));
        };
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            check(hipSetDevice(gpu));
            record(gpu, 0);
            for (int i = 0; i < count_; ++i) operations_[gpu](machine_.stream(gpu, 0));
            record(gpu, 1);
        }
        for (int gpu = 0; gpu < gpus_; ++gpu) check(hipEventSynchronize(machine_.event(gpu, 1)));
        float milliseconds = 0;
        check(hipEventElapsedTime(&milliseconds, machine_.event(0, 0), machine_.event(0, 1)));
        busy_seconds_ += milliseconds * 1e-3;
        std::this_thread::sleep_for(pause);
    }
    double busy_seconds() const { return busy_seconds_; }  ///< in bursts
    void expect() const {
        for (const Copied& copied : copied_) {
            check(hipSetDevice(copied.gpu));
            const Rows rows = contiguous(copied.bytes);
            expect_words(copied.memory, rows, rows, 0, copied.seed);
        }
    }

private:
    struct Copied {
        int gpu;
        void* memory;
        std::size_t bytes;
        std::uint64_t seed;
    };

    void add_gemms(const GemmShape& shape) {
        for (int gpu = 0; gpu < gpus_; ++gpu) {
            check(hipSetDevice(gpu));
            gemms_.push_back(make_gemm(shape));
            operands_.push_back(std::make_unique<GemmOperands>(machine_, gpu, shape));
            operands_.back()->check_result(*gemms_.back());
            operations_.push_back([gemm = gemms_.back().get(), operands = operands_.back().get(),
                                   next = std::int64_t{0}](hipStream_t stream) mutable {
                operands->run(*gemm, next++, stream);
            });
        }
    }

    void add_copies(const Case& c, bool to_peer) {
        const std::size_t size = c.bytes("size");
        const Agent agent{c.word("agent") == "dma", static_cast<int>(c.count("blocks"))};
        if (size == 0 || size % 16) throw UserError("size is a multiple of 16");
        if (!agent.dma && agent.blocks == 0) throw UserError("agent=cu needs blocks=…");
        const Rows rows = contiguous(size);
        std::vector<Copy> copies;
        for (int from = 0; from < gpus_; ++from) {
            const int to = to_peer ? (from + 1) % gpus_ : from;
            const std::uint64_t seed = 100 + from;
            check(hipSetDevice(from));
            void* source = machine_.take(from, size);
            fill_words(source, size, seed);
            check(hipSetDevice(to));
            void* destination = machine_.take(to, size);
            poison(destination, size);
            copies.push_back({source, from, rows, destination, to, rows});
            copied_.push_back({to, destination, size, seed});
        }
        // The stream of GPU g carries what g sends (push) or receives (pull).
        const int first = to_peer && c.word("transfer") == "pull" ? gpus_ - 1 : 0;
        for (int gpu = 0; gpu < gpus_; ++gpu)
            operations_.push_back(copy_operation(copies[(gpu + first) % gpus_], agent));
    }

    Machine& machine_;
    int gpus_, count_ = 1;
    std::size_t groups_ = 0;
    double busy_seconds_ = 0;
    std::vector<std::unique_ptr<Gemm>> gemms_;
    std::vector<std::unique_ptr<GemmOperands>> operands_;
    std::vector<Operation> operations_;
    std::vector<Copied> copied_;
};

/// The counters of all GPUs, read as close together as calls allow.
struct Counters {
    Clock::time_point time;
    std::vector<double> energy_J;
};

Counters read(const std::vector<std::unique_ptr<Telemetry>>& telemetry) {
    Counters counters{Clock::now(), {}};
    for (const auto& gpu : telemetry) counters.energy_J.push_back(gpu->energy_J());
    return counters;
}

Result run(Machine& machine, const Case& c) {
    const int gpus = static_cast<int>(c.count("gpus"));
    if (gpus == 0) throw UserError("gpus is at least 1");
    need_gpus(machine, gpus);
    std::vector<std::unique_ptr<Telemetry>> telemetry;
    for (int gpu = 0; gpu < machine.gpus(); ++gpu) telemetry.push_back(make_telemetry(gpu));
    const bool idle = c.word("work") == "idle";
    const auto warm = std::chrono::milliseconds(idle ? 500 : c.count("warm_ms"));
    const auto duration = std::chrono::milliseconds(c.count("duration_ms"));
    const auto pause = std::chrono::milliseconds(c.count("pause_ms"));

    Work work(machine, c, gpus);
    const auto group = [&] { pause.count() > 0 ? work.burst(pause) : work.group(); };
    for (const auto end = Clock::now() + warm; Clock::now() < end;) group();
    if (idle) {
        machine.synchronize();
        std::this_thread::sleep_for(std::chrono::milliseconds(c.count("warm_ms")));
    }
    const Counters before = read(telemetry);
    const double busy_before = work.busy_seconds();
    double groups = 0;
    if (idle)
        std::this_thread::sleep_for(duration);
    else
        for (; Clock::now() < before.time + duration; ++groups) group();
    const Counters after = read(telemetry);
    const Reading reading = telemetry[0]->read();
    machine.synchronize();
    work.expect();

    const double seconds = std::chrono::duration<double>(after.time - before.time).count();
    const double busy = idle ? 0 : pause.count() > 0 ? work.busy_seconds() - busy_before : seconds;
    const double operations = groups * work.operations_a_group();
    std::vector<double> energy;
    for (std::size_t gpu = 0; gpu < telemetry.size(); ++gpu)
        energy.push_back(after.energy_J[gpu] - before.energy_J[gpu]);
    Result result;
    if (operations > 0) result.samples.push_back(busy / operations * 1e6);
    result.more.add("seconds", seconds)
        .add("busy_seconds", busy)
        .add("operations", operations)
        .add("energy_J", energy)
        .add("power_W", reading.power_W)
        .add("clock_MHz", reading.clock_MHz)
        .add("temperature_C", reading.temperature_C);
    return result;
}

}  // namespace

Question energy() {
    std::vector<Key> keys = gemm_keys({{"work", Type::word, "idle", {"idle", "gemm", "local", "peer"}},
                                       {"agent", Type::word, "dma", {"dma", "cu"}},
                                       {"transfer", Type::word, "pull", {"pull", "push"}},
                                       {"blocks", Type::count, "0"},
                                       {"size", Type::bytes, "0"},
                                       {"gpus", Type::count, "1"},
                                       {"warm_ms", Type::count, "1000"},
                                       {"duration_ms", Type::count, "3000"},
                                       {"pause_ms", Type::count, "0"}});
    for (Key& key : keys)
        if (key.name == "m" || key.name == "n" || key.name == "k") key.fallback = "8192";
    return {{"energy", keys}, run};
}

}  // namespace overlap::hip
