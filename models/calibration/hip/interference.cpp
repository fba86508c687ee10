// Measures how much a GPU's work and copies slow each other when both run all the time.
//
// Work on GPU 0, or with everywhere=1 on each of the peers + 1 GPUs: GEMM after GEMM (work=gemm), or kernel
// copies of 256 MiB within the GPU with one thread block a compute unit (work=local_copy; m, n, k do not
// matter). Beside it: streams of copies of `size` (beside.hpp) for about as long. Both run for window_us or
// eight GEMMs, whichever is longer, from a GPU at its peak clock (clock.hpp). first=copy or gemm starts that
// side 100 µs before the other. The fields describe GPU 0. With sizes=spread, copies have half to all of `size`
// (spread_size.hpp), others in each repeat, and copy_us, its spread and copy_alone_us are of as many bytes as `size`.
//
// In each repeat only whole operations count, in the window in which both sides are busy:
//   samples            mean time of a GEMM (or local copy) beside copies, one a repeat, µs
//   deciles_us         smallest, 1st to 9th decile, and largest of all of them
//   alone_us           median of the same lane without copies, measured alternately
//   copy_us            mean interval between ends of copies of one stream beside work; copy_deciles_us;
//                      copy_alone_us: the same without work
//   copy_spread_us     standard deviation of copy_us over repeats
//   copies_in_window   copies that ended while the work ran, of copies_sent; 0: they starved
//   work_total_us, copies_total_us, both_total_us   medians from release to last end: each alone, and both
// Copies' destinations are poisoned before and compared after.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/calibration/hip/beside.hpp"
#include "models/calibration/hip/clock.hpp"
#include "models/calibration/hip/gemm_case.hpp"
#include "models/calibration/hip/question.hpp"
#include "models/calibration/hip/spread_size.hpp"

namespace overlap::hip {
namespace {

constexpr std::size_t local_bytes = std::size_t{256} << 20;
constexpr int most_operations = 150;  // per lane; the launch queue must not fill up behind the gate
constexpr double head_start_us = 100;

/// Launches the work on GPU 0, one run at a time.
class Work {
public:
    Work(Machine& machine, const Case& c, int gpu) : gpu_(gpu) {
        check(hipSetDevice(gpu));
        if (c.word("work") == "gemm") {
            const GemmShape shape = gemm_shape(c);
            gemm_ = make_gemm(shape);
            operands_ = std::make_unique<GemmOperands>(machine, gpu, shape);
            operands_->check_result(*gemm_);
        } else {
            void* source = machine.take(gpu, local_bytes);
            fill_words(source, local_bytes, 9);
            local_ = copy_operation({source, gpu, contiguous(local_bytes), machine.take(gpu, local_bytes),
                                     gpu, contiguous(local_bytes)},
                                    Agent{false, machine.compute_units(gpu)});
        }
    }
    Lane lane(int count) {
        const Operation one = [this](hipStream_t stream) { operands_->run(*gemm_, next_++, stream); };
        return {gpu_, std::vector<Operation>(count, local_ ? local_ : one)};
    }

private:
    int gpu_;
    std::unique_ptr<Gemm> gemm_;
    std::unique_ptr<GemmOperands> operands_;
    Operation local_;
    std::int64_t next_ = 0;
};

/// Median time an operation of lanes that run alone.
double typical(const std::vector<LaneTimes>& times) {
    std::vector<double> durations;
    for (const LaneTimes& lane : times)
        for (std::size_t i = lane.ends.size() > 1; i < lane.ends.size(); ++i)
            durations.push_back(lane.duration(i));
    return median(durations);
}

int operations_for(double window, double each) {
    return std::clamp(static_cast<int>(std::ceil(window / each)), 3, most_operations);
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Times of operations, and their sizes as shares of `size`.
struct Durations {
    std::vector<double> us, shares;
    double each() const { return mean(us) / mean(shares); }
    void add(const Durations& more) {
        us.insert(us.end(), more.us.begin(), more.us.end());
        shares.insert(shares.end(), more.shares.begin(), more.shares.end());
    }
};

/// Adds the operations that lie within the window, without the first of the lane. `shares` are all operations'.
void add_whole(const LaneTimes& lane, const std::vector<double>& shares, double from, double to,
               Durations& durations) {
    for (std::size_t i = 1; i < lane.ends.size(); ++i)
        if (lane.ends[i - 1] >= from && lane.ends[i] <= to) {
            durations.us.push_back(lane.duration(i));
            durations.shares.push_back(shares[i]);
        }
}

struct Collected {
    Durations work, work_alone, copy, copy_alone;
    std::vector<double> work_means, copy_means, in_window, window, work_total, copies_total, both_total;
};

double standard_deviation(const std::vector<double>& values) {
    const double middle = mean(values);
    double sum = 0;
    for (const double value : values) sum += (value - middle) * (value - middle);
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> deciles(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::vector<double> at;
    for (std::size_t tenth = 0; tenth <= 10 && !values.empty(); ++tenth)
        at.push_back(values[(values.size() - 1) * tenth / 10]);
    return at;
}

/// Adds a repeat's durations to `all`, and their mean to `means` if there are any.
void add_repeat(const Durations& repeat, Durations& all, std::vector<double>& means) {
    if (repeat.us.empty()) return;
    all.add(repeat);
    means.push_back(repeat.each());
}

/// The lanes of one repeat, and what share of `size` the operations of each lane have.
struct Repeat {
    std::vector<Lane> workers, copiers, both;
    std::vector<double> work_shares, copy_shares;
};

/// Lanes of `times`: the work of GPU 0 first, then `streams` lanes of copies.
void add_beside(const std::vector<LaneTimes>& times, std::size_t streams, const Repeat& repeat,
                Collected& all) {
    const LaneTimes& work = times[0];
    double from = work.start, to = work.end();
    for (std::size_t i = 1; i <= streams; ++i) {
        from = std::max(from, times[i].start);
        to = std::min(to, times[i].end());
    }
    Durations works, copies;
    add_whole(work, repeat.work_shares, from, to, works);
    double ended = 0;
    for (std::size_t i = 1; i <= streams; ++i) {
        add_whole(times[i], repeat.copy_shares, from, to, copies);
        ended += static_cast<double>(std::count_if(times[i].ends.begin(), times[i].ends.end(),
                                                   [&](double e) { return e <= work.end(); }));
    }
    add_repeat(works, all.work, all.work_means);
    add_repeat(copies, all.copy, all.copy_means);
    all.in_window.push_back(ended);
    all.window.push_back(to - from);
    all.both_total.push_back(makespan(times));
}

/// The first `lanes` lanes are GPU 0's.
void add_alone(const std::vector<LaneTimes>& times, std::size_t lanes, const std::vector<double>& shares,
               Durations& durations, std::vector<double>& totals) {
    for (std::size_t i = 0; i < lanes; ++i)
        add_whole(times[i], shares, times[i].start, times[i].end(), durations);
    totals.push_back(makespan(times));
}

Result run(Machine& machine, const Case& c) {
    const int peers = static_cast<int>(c.count("peers")), blocks = static_cast<int>(c.count("blocks"));
    const std::string &kind = c.word("beside"), &first = c.word("first");
    const bool high = c.word("priority") == "high", spread = c.word("sizes") == "spread";
    if (peers == 0) throw UserError("peers is at least 1");
    const bool alone = kind.starts_with("local") && c.word("everywhere") == "0";
    need_gpus(machine, alone ? 1 : peers + 1);
    std::vector<std::unique_ptr<Work>> works;
    std::vector<Beside> besides;
    for (int gpu = 0; gpu <= (c.word("everywhere") == "1" ? peers : 0); ++gpu) {
        works.push_back(std::make_unique<Work>(machine, c, gpu));
        besides.emplace_back(machine, kind, gpu, peers, blocks, c.bytes("size"));
    }

    const std::size_t size = c.bytes("size");
    const auto sizes = [&](int first, int count) {
        std::vector<std::size_t> all(count, size);
        for (int i = 0; spread && i < count; ++i) all[i] = spread_size(size, first + i);
        return all;
    };
    const double work_us = typical(run_lanes(machine, {works[0]->lane(4)}));
    const double copy_us = typical(run_lanes(machine, besides[0].lanes(sizes(0, 4), high)));
    const double window = std::max(static_cast<double>(c.count("window_us")), 8 * work_us);
    const int work_runs = operations_for(window, work_us), copy_runs = operations_for(window, copy_us);
    const auto repeat_of = [&](int number) {
        Repeat repeat{{}, {}, {}, std::vector(work_runs, 1.0), {}};
        const std::vector<std::size_t> copied = sizes(number * copy_runs, copy_runs);
        for (const std::size_t one : copied)
            repeat.copy_shares.push_back(static_cast<double>(one) / static_cast<double>(size));
        for (std::size_t gpu = 0; gpu < works.size(); ++gpu) {
            repeat.workers.push_back(works[gpu]->lane(work_runs));
            const auto lanes = besides[gpu].lanes(copied, high);
            repeat.copiers.insert(repeat.copiers.end(), lanes.begin(), lanes.end());
            repeat.both.push_back(repeat.workers.back());
            repeat.both.back().delay_us = first == "copy" ? head_start_us : 0;
            for (Lane lane : lanes) {
                lane.delay_us = first == "gemm" ? head_start_us : 0;
                repeat.both.push_back(std::move(lane));
            }
        }
        return repeat;
    };

    std::vector<double*> clocks;
    for (std::size_t gpu = 0; gpu < works.size(); ++gpu)
        clocks.push_back(take_clocks(machine, static_cast<int>(gpu), 1));
    const auto run_rested = [&](const std::vector<Lane>& lanes) {
        for (std::size_t gpu = 0; gpu < works.size(); ++gpu)
            rest(machine, static_cast<int>(gpu), clocks[gpu]);
        return run_lanes(machine, lanes);
    };
    const Repeat warm_up = repeat_of(0);
    const std::size_t streams = warm_up.copiers.size() / works.size();
    run_rested(warm_up.both);
    Collected all;
    for (int number = 0; number < c.count("n_samples"); ++number) {
        const Repeat repeat = repeat_of(number);
        add_alone(run_rested(repeat.workers), 1, repeat.work_shares, all.work_alone, all.work_total);
        add_alone(run_rested(repeat.copiers), streams, repeat.copy_shares, all.copy_alone, all.copies_total);
        add_beside(run_rested(repeat.both), streams, repeat, all);
    }
    for (const Beside& beside : besides) beside.expect();

    Result result;
    result.samples = all.work_means;
    result.more.add("deciles_us", deciles(all.work.us))
        .add("alone_us", median(all.work_alone.us))
        .add("alone_p90_us", percentile_90(all.work_alone.us))
        .add("copy_us", all.copy.each())
        .add("copy_spread_us", standard_deviation(all.copy_means))
        .add("copy_deciles_us", deciles(all.copy.us))
        .add("copy_alone_us", all.copy_alone.each())
        .add("copy_streams", static_cast<std::int64_t>(streams))
        .add("copies_in_window", median(all.in_window))
        .add("copies_sent", static_cast<std::int64_t>(streams) * copy_runs)
        .add("window_measured_us", median(all.window))
        .add("work_runs", work_runs)
        .add("work_total_us", median(all.work_total))
        .add("copies_total_us", median(all.copies_total))
        .add("both_total_us", median(all.both_total));
    return result;
}

}  // namespace

Question interference() {
    return {{"interference", gemm_keys({{"work", Type::word, "gemm", {"gemm", "local_copy"}},
                                        {"beside", Type::word, "", beside_words},
                                        {"peers", Type::count, "1"},
                                        {"blocks", Type::count, "0"},
                                        {"size", Type::bytes, "64MiB"},
                                        {"priority", Type::word, "normal", {"normal", "high"}},
                                        {"first", Type::word, "both", {"both", "copy", "gemm"}},
                                        {"sizes", Type::word, "equal", {"equal", "spread"}},
                                        {"everywhere", Type::word, "0", {"0", "1"}},
                                        {"window_us", Type::count, "5000"},
                                        {"n_samples", Type::count, "9"}})},
            run};
}

}  // namespace overlap::hip
