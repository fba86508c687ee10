// Lists of operators that are drawn: each computes on one rank, needs earlier ones, and gets their results by messages.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/core/json.hpp"

namespace overlap::test {

/// A generator whose numbers are the same everywhere.
class RandomList {
public:
    explicit RandomList(unsigned seed) : bits_(seed), ranks_(2 + below(7)) {}

    int ranks() const { return static_cast<int>(ranks_); }

    /// 20 to 60 operators of 100 to 2,000 us, each on one rank; a message of 1 MB for each need on another rank, and with
    /// `collectives` an all-reduce now and then.
    Json operators(bool collectives) {
        const unsigned count = 20 + below(41);
        for (unsigned i = 0; i < count; ++i) {
            Json needs = Json::array();
            const unsigned rank = below(ranks_), wanted = own_.empty() ? 0 : below(3);
            for (unsigned n = 0; n < wanted; ++n) {
                const Own& need = own_[below(static_cast<unsigned>(own_.size()))];
                const std::string name = need.rank == rank ? need.name : sent(need, rank);
                if (std::ranges::find(needs, Json(name)) == needs.end()) needs.push_back(name);
            }
            const std::string name = "op" + std::to_string(i);
            operators_.push_back({{"name", name},
                                  {"type", "memory_bound"},
                                  {"read_bytes", 0},
                                  {"write_bytes", 0},
                                  {"time_us", 100 + below(1901)},
                                  {"ranks", {rank}},
                                  {"needs", needs}});
            own_.push_back({name, rank});
            if (collectives && below(12) == 0)
                operators_.push_back({{"name", "sum" + std::to_string(i)},
                                      {"type", "collective"},
                                      {"collective", "all_reduce"},
                                      {"bytes", 1 << 20},
                                      {"needs", {name}}});
        }
        return operators_;
    }

    /// The same in another order in which nothing needs a later one.
    Json reordered(Json operators) {
        Json result = Json::array();
        std::vector<std::string> done;
        while (!operators.empty()) {
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < operators.size(); ++i)
                if (std::ranges::all_of(operators[i]["needs"], [&](const Json& need) {
                        return std::ranges::find(done, need.get<std::string>()) != done.end();
                    }))
                    ready.push_back(i);
            const std::size_t next = ready[below(static_cast<unsigned>(ready.size()))];
            done.push_back(operators[next]["name"]);
            result.push_back(operators[next]);
            operators.erase(next);
        }
        return result;
    }

private:
    struct Own {
        std::string name;
        unsigned rank;
    };
    unsigned below(unsigned n) { return static_cast<unsigned>(bits_() % n); }

    std::string sent(const Own& need, unsigned to) {
        const std::string name = need.name + "_to_" + std::to_string(to);
        const auto is_it = [&](const Json& op) { return op["name"] == name; };
        if (std::ranges::none_of(operators_, is_it))
            operators_.push_back({{"name", name},
                                  {"type", "send"},
                                  {"bytes", 1'000'000},
                                  {"from", {need.rank}},
                                  {"to", {to}},
                                  {"needs", {need.name}}});
        return name;
    }

    std::mt19937 bits_;
    unsigned ranks_;
    std::vector<Own> own_;
    Json operators_ = Json::array();
};

}  // namespace overlap::test
