// Plans that are drawn: GEMMs, copies by both agents, local copies, sums, gates, tasks of one rank and of each.
#pragma once

#include <random>
#include <string>

#include "sim/core/json.hpp"

namespace overlap::test {

class RandomPlan {
public:
    RandomPlan(unsigned seed, unsigned gpus) : bits_(seed), gpus_(gpus) {}

    Json json() {
        Json entries = Json::array();
        for (unsigned left = 4 + below(8); left > 0; --left) {
            if (below(3) == 0) {
                Json line = task(below(gpus_), false);
                entries.push_back(line);
                ++lines_;
                continue;
            }
            Json group = Json::array();
            for (unsigned i = 1 + below(4); i > 0; --i) {
                group.push_back(task(0, true));
                each_.push_back(lines_++);
            }
            entries.push_back({{"each_rank", group}});
        }
        return {{"schema", 2}, {"gpus", gpus_}, {"streams", {"side"}}, {"tasks", entries}};
    }

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(bits_() % n); }
    std::string offset(unsigned n) { return "+" + std::to_string(n); }
    double bytes() { return 1000.0 * (1 + below(50'000)); }

    Json task(unsigned gpu, bool each_rank) {
        Json line = work(gpu, each_rank);
        if (!each_rank) line["gpu"] = gpu;
        // Only what stands before, so that nothing is a cycle; of tasks of each rank any rank's.
        for (unsigned n = each_.empty() ? 0 : below(3); n > 0; --n) {
            const unsigned before = each_[below(static_cast<unsigned>(each_.size()))];
            const Json wait = below(2) == 0 ? Json(before) : Json{before, offset(below(gpus_))};
            line["after"].push_back(wait);
        }
        return line;
    }

    Json work(unsigned gpu, bool each_rank) {
        const unsigned peer = 1 + below(gpus_ - 1);
        const auto rank = [&](unsigned n) { return each_rank ? Json(offset(n)) : Json((gpu + n) % gpus_); };
        switch (below(5)) {
            case 0:
                return {{"kind", "gemm"},
                        {"stream", "compute"},
                        {"m", 64 * (1 + below(64))},
                        {"n", 64 * (1 + below(32))},
                        {"k", 64 * (1 + below(64))},
                        {"dtype", "bf16"}};
            case 1:
                return {{"kind", "local_copy"}, {"stream", "local"}, {"bytes", bytes()}};
            case 2:
                return {{"kind", "reduce"}, {"stream", "side"}, {"bytes", bytes()}, {"parts", 2 + below(3)}};
            case 3:
                return {{"kind", "copy"},
                        {"stream", "transfer " + offset(peer)},
                        {"src", rank(peer)},
                        {"dst", rank(0)},
                        {"bytes", bytes()}};
            default:
                return {{"kind", "copy"},     {"stream", "transfer " + offset(peer)},
                        {"src", rank(0)},     {"dst", rank(peer)},
                        {"bytes", bytes()},   {"agent", "cu"},
                        {"transfer", "push"}, {"copy_cus", 1 + below(8)}};
        }
    }

    std::mt19937 bits_;
    unsigned gpus_, lines_ = 0;
    std::vector<unsigned> each_;  ///< lines of each rank
};

}  // namespace overlap::test
