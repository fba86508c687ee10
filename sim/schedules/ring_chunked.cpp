
#include "sim/schedules/pieces.hpp"

namespace overlap {
namespace {

// A neighbour ring in P−1 steps. A shard travels in C chunks, each forwarded as soon as it arrives. Position
// i of the ring (Topology::ring) sends to i+1. One transfer stream a GPU.
class RingGraph {
public:
    RingGraph(const Pair& pair, const Topology& topology, const ScheduleParams& params, TaskGraph& graph)
        : graph_(graph),
          pieces_(pair, topology.gpus(), params.chunks, CommShape::one_d),
          transfers_(graph_, topology, params.transfers),
          by_chunk_(params.gemm == GemmGrain::chunk && topology.gpus() > 1) {
        graph_.reserve(pieces_.transfers() + ranks(), 0);
    }

    void build() {
        if (pieces_.collective_first()) {
            gather(PositionTasks(ranks(), std::vector<std::vector<TaskId>>(chunks())));
        } else if (pieces_.gathers_results()) {
            gather(own_results());
        } else {
            reduce();
        }
    }

private:
    /// Tasks after which a position's newest shard is complete, for each position in the ring and each chunk.
    using PositionTasks = std::vector<std::vector<std::vector<TaskId>>>;

    // Step s: position i receives the shard of position i−s from i−1. Each rank multiplies its own shard
    // first, then each shard as it arrives. If results are gathered, no further GEMMs are needed.
    void gather(PositionTasks newest) {
        const bool multiplies = pieces_.collective_first();
        std::vector<GemmStream> gemms;
        for (std::size_t i = 0; i < ranks(); ++i) {
            gemms.emplace_back(transfers_, pieces_, rank_at(i));
            if (multiplies) gemms[i].add(rank_at(i), -1, {});
        }
        for (std::size_t step = 1; step < ranks(); ++step) {
            PositionTasks arrived(ranks(), std::vector<std::vector<TaskId>>(chunks()));
            for (std::size_t chunk = 0; chunk < chunks(); ++chunk)
                for (std::size_t i = 0; i < ranks(); ++i)
                    arrived[i][chunk] = {forward(i, shard_behind(i, step), chunk, newest)};
            if (multiplies)
                for (std::size_t i = 0; i < ranks(); ++i)
                    multiply(gemms[i], shard_behind(i, step), arrived[i]);
            newest = std::move(arrived);
        }
    }

    void multiply(GemmStream& gemms, int shard, const std::vector<std::vector<TaskId>>& arrived) {
        if (by_chunk_) {
            for (std::size_t chunk = 0; chunk < chunks(); ++chunk)
                gemms.add(shard, static_cast<int>(chunk), arrived[chunk]);
            return;
        }
        std::vector<TaskId> all;
        for (const auto& chunk : arrived) all.insert(all.end(), chunk.begin(), chunk.end());
        gemms.add(shard, -1, all);
    }

    PositionTasks own_results() {
        PositionTasks results;
        for (std::size_t i = 0; i < ranks(); ++i) {
            GemmStream gemms(transfers_, pieces_, rank_at(i));
            results.push_back(products(gemms, rank_at(i)));
        }
        return results;
    }

    // Position i multiplies the shards of positions i−1, i−2, …, i, in that order. Step s: it receives the
    // partial sum of the shard of position i−s−1 from i−1 and adds its own part.
    void reduce() {
        PositionTasks partial(ranks(), std::vector<std::vector<TaskId>>(chunks()));
        std::vector<PositionTasks> produced(ranks());  // by position and step: tasks by chunk
        for (std::size_t i = 0; i < ranks(); ++i) {
            GemmStream gemms(transfers_, pieces_, rank_at(i));
            for (std::size_t step = 0; step < ranks(); ++step)
                produced[i].push_back(products(gemms, shard_behind(i, step + 1)));
            partial[i] = produced[i][0];
        }
        for (std::size_t step = 1; step < ranks(); ++step) {
            PositionTasks sums(ranks(), std::vector<std::vector<TaskId>>(chunks()));
            for (std::size_t chunk = 0; chunk < chunks(); ++chunk)
                for (std::size_t i = 0; i < ranks(); ++i) {
                    const int shard = shard_behind(i, step + 1);
                    std::vector<TaskId> parts = produced[i][step][chunk];
                    parts.push_back(forward(i, shard, chunk, partial));
                    const Bytes bytes = pieces_.payload(shard, static_cast<int>(chunk)).bytes;
                    sums[i][chunk] = {graph_.add(
                        Task{ReduceWork{bytes, 2}, rank_at(i), local_stream, shard, static_cast<int>(chunk)},
                        parts)};
                }
            partial = std::move(sums);
        }
        if (pieces_.pair().collective == CollectiveKind::all_reduce) gather(std::move(partial));
    }

    std::vector<std::vector<TaskId>> products(GemmStream& gemms, int shard) {
        std::vector<std::vector<TaskId>> by_chunk(chunks());
        if (by_chunk_) {
            for (std::size_t chunk = 0; chunk < chunks(); ++chunk)
                by_chunk[chunk] = {gemms.add(shard, static_cast<int>(chunk), {})};
        } else {
            by_chunk.assign(chunks(), {gemms.add(shard, -1, {})});
        }
        return by_chunk;
    }

    TaskId forward(std::size_t to, int shard, std::size_t chunk, const PositionTasks& newest) {
        const std::size_t from = (to + ranks() - 1) % ranks();
        return transfers_.copy(rank_at(from), rank_at(to), pieces_.payload(shard, static_cast<int>(chunk)),
                               newest[from][chunk]);
    }

    /// The shard (owner rank) that is `steps` positions behind position i.
    int shard_behind(std::size_t i, std::size_t steps) const {
        return rank_at((i + 2 * ranks() - steps) % ranks());
    }
    int rank_at(std::size_t position) const { return transfers_.ring()[position]; }
    std::size_t ranks() const { return static_cast<std::size_t>(pieces_.ranks()); }
    std::size_t chunks() const { return static_cast<std::size_t>(pieces_.chunks()); }

    TaskGraph& graph_;
    Pieces pieces_;
    Transfers transfers_;
    bool by_chunk_;
};

}  // namespace

void add_ring_chunked(const Workload& workload, const Topology& topology, const ScheduleParams& params,
                      TaskGraph& graph) {
    RingGraph(*workload.pair(), topology, params, graph).build();
}

}  // namespace overlap
