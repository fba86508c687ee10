// Measures copies between GPUs, alone and against each other.
//
// transfer=pull: on a stream of the receiver; push: on a stream of the sender. A kernel copy runs there; for
// DMA the driver chooses the GPU whose engine works (CUDA 13: always the sender's). Below, GPU r has the
// stream and q is its peer.
//   pair          0 with 1
//   both_ways     0 with 1 and 1 with 0
//   one_with_all  0 with every peer, each on a stream of its own
//   all_with_one  every peer with 0: GPU 0's egress (pull) or ingress (push) is shared
//   ring          every r with r+1
//   all_at_once   every r with every q, each on a stream of its own, enqueued in the order r+1, r+2, …
//   rotation      every r with r+1, then r+2, …, one after the other on one stream
// `size`: of one copy; each peer's stream has `chunks` copies one after the other. row > 0: strided,
// rows of that many bytes from a source with `pitch` bytes a row into packed rows (to=packed) or into
// the same pitch (to=strided).
//
// call=peer: hipMemcpyPeerAsync; memcpy: hipMemcpyAsync with the same addresses. enqueue: see lanes.hpp.
// gemms > 0: every GPU also runs that many GEMMs 4096x2560x8192 bf16 on a stream of its own, released with
// the copies; the times are those of the copies.
//
// Samples: from the release of a GPU to the end of its last copy, largest over the GPUs, µs. detail=1 adds
// lanes ([r, q, …] for each stream) and ends_us (for each sample the end of every copy, lane after lane).
// Destinations are poisoned before, and every word is compared after.

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/gemm.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

/// A stream of one GPU and the peers that it serves, in order.
struct Queue {
    int gpu;
    std::vector<int> peers;
};

std::vector<Queue> queues_of(const std::string& pattern, int gpus) {
    std::vector<Queue> queues;
    const auto turn = [&](int gpu, int step) { return (gpu + step) % gpus; };
    if (pattern == "pair") return {{0, {1}}};
    if (pattern == "both_ways") return {{0, {1}}, {1, {0}}};
    for (int gpu = 0; gpu < gpus; ++gpu) {
        if (pattern == "ring") queues.push_back({gpu, {turn(gpu, 1)}});
        if (pattern == "rotation") queues.push_back({gpu, {}});
        for (int step = 1; step < gpus; ++step) {
            const int peer = turn(gpu, step);
            if (pattern == "rotation") queues.back().peers.push_back(peer);
            const bool alone = pattern == "all_at_once" || (pattern == "one_with_all" && gpu == 0) ||
                               (pattern == "all_with_one" && peer == 0);
            if (alone) queues.push_back({gpu, {peer}});
        }
    }
    return queues;
}

Enqueue order_of(const std::string& word) {
    return word == "lanes" ? Enqueue::lanes : word == "steps" ? Enqueue::steps : Enqueue::threads;
}

std::uint64_t seed_of(int gpu) {
    return 1000 + gpu;
}

/// On every GPU one source, and one destination for each peer's bytes.
class Buffers {
public:
    Buffers(Machine& machine, const Case& c, int gpus) : gpus_(gpus) {
        const std::size_t size = c.bytes("size"), row = c.bytes("row"), chunks = c.count("chunks");
        const std::size_t pitch = c.bytes("pitch");
        if (size == 0 || size % 16 || chunks == 0)
            throw UserError("size is a multiple of 16, chunks at least 1");
        if (row && (row % 16 || pitch % 16 || pitch < row || size % row))
            throw UserError("row and pitch are multiples of 16, pitch at least row, size a multiple of row");
        from_ = row ? Rows{size / row, row, pitch} : contiguous(size);
        to_ = row && c.word("to") == "packed" ? Rows{size / row, row, row} : from_;
        chunks_ = chunks;
        for (int gpu = 0; gpu < gpus; ++gpu) {
            check(hipSetDevice(gpu));
            sources_.push_back(static_cast<char*>(machine.take(gpu, extent(from_) * chunks)));
            fill_words(sources_.back(), extent(from_) * chunks, seed_of(gpu));
            for (int peer = 0; peer < gpus; ++peer) {
                destinations_.push_back(nullptr);
                if (peer == gpu) continue;
                destinations_.back() = static_cast<char*>(machine.take(gpu, extent(to_) * chunks));
                poison(destinations_.back(), extent(to_) * chunks);
            }
        }
    }

    Copy copy(int from, int to, std::size_t chunk) const {
        return {sources_[from] + chunk * extent(from_), from, from_, destination(from, to, chunk), to, to_};
    }

    void expect(int from, int to) const {
        check(hipSetDevice(to));
        for (std::size_t chunk = 0; chunk < chunks_; ++chunk)
            expect_words(destination(from, to, chunk), to_, from_, chunk * extent(from_), seed_of(from));
    }

private:
    static std::size_t extent(const Rows& rows) { return rows.rows * rows.pitch; }
    char* destination(int from, int to, std::size_t chunk) const {
        return destinations_[to * gpus_ + from] + chunk * extent(to_);
    }

    int gpus_;
    Rows from_, to_;
    std::size_t chunks_ = 1;
    std::vector<char*> sources_, destinations_;
};

/// Adds a lane of GEMMs on every GPU.
class Gemms {
public:
    Gemms(Machine& machine, int gpus) {
        const GemmShape shape{4096, 2560, 8192};
        for (int gpu = 0; gpu < gpus; ++gpu) {
            check(hipSetDevice(gpu));
            gemms_.push_back(make_gemm(shape));
            operands_.emplace_back(machine, gpu, shape);
            operands_.back().check_result(*gemms_.back());
        }
    }
    Lane lane(int gpu, std::int64_t count) {
        const Operation one = [this, gpu](hipStream_t stream) {
            operands_[gpu].run(*gemms_[gpu], next_++, stream);
        };
        return {gpu, std::vector<Operation>(count, one), false, false};
    }

private:
    std::vector<std::unique_ptr<Gemm>> gemms_;
    std::vector<GemmOperands> operands_;
    std::int64_t next_ = 0;
};

Result run(Machine& machine, const Case& c) {
    const int gpus = static_cast<int>(c.count("gpus"));
    if (gpus < 2) throw UserError("gpus is at least 2");
    need_gpus(machine, gpus);
    const bool pull = c.word("transfer") == "pull", detail = c.word("detail") == "1";
    const Agent agent{c.word("agent") == "dma", static_cast<int>(c.count("blocks")),
                      c.word("call") == "peer"};
    const Enqueue order = order_of(c.word("enqueue"));
    if (!agent.dma && agent.blocks == 0) throw UserError("agent=cu needs blocks=…");
    const Buffers buffers(machine, c, gpus);
    const auto queues = queues_of(c.word("pattern"), gpus);

    std::vector<Lane> lanes;
    std::vector<std::vector<double>> named;
    for (const Queue& queue : queues) {
        Lane lane{queue.gpu, {}, false, detail};
        named.push_back({static_cast<double>(queue.gpu)});
        for (const int peer : queue.peers) {
            named.back().push_back(peer);
            for (std::int64_t chunk = 0; chunk < c.count("chunks"); ++chunk)
                lane.operations.push_back(copy_operation(
                    pull ? buffers.copy(peer, queue.gpu, chunk) : buffers.copy(queue.gpu, peer, chunk),
                    agent));
        }
        lanes.push_back(std::move(lane));
    }

    Gemms gemms(machine, c.count("gemms") ? gpus : 0);
    if (c.count("gemms"))
        for (int gpu = 0; gpu < gpus; ++gpu) lanes.push_back(gemms.lane(gpu, c.count("gemms")));

    for (int warm = 0; warm < 2; ++warm) run_lanes(machine, lanes, order);
    Result result;
    std::vector<std::vector<double>> ends;
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample) {
        auto times = run_lanes(machine, lanes, order);
        times.resize(queues.size());
        result.samples.push_back(makespan(times));
        ends.emplace_back();
        for (const LaneTimes& lane : times)
            ends.back().insert(ends.back().end(), lane.ends.begin(), lane.ends.end());
    }
    for (const Queue& queue : queues)
        for (const int peer : queue.peers)
            pull ? buffers.expect(peer, queue.gpu) : buffers.expect(queue.gpu, peer);
    if (detail) result.more.add("lanes", named).add("ends_us", ends);
    return result;
}

}  // namespace

Question peer_copy() {
    return {{"peer_copy",
             {{"agent", Type::word, "dma", {"dma", "cu"}},
              {"transfer", Type::word, "pull", {"pull", "push"}},
              {"pattern",
               Type::word,
               "pair",
               {"pair", "both_ways", "one_with_all", "all_with_one", "ring", "all_at_once", "rotation"}},
              {"gpus", Type::count, "2"},
              {"blocks", Type::count, "0"},
              {"chunks", Type::count, "1"},
              {"row", Type::bytes, "0"},
              {"pitch", Type::bytes, "0"},
              {"to", Type::word, "packed", {"packed", "strided"}},
              {"size", Type::bytes},
              {"call", Type::word, "peer", {"peer", "memcpy"}},
              {"enqueue", Type::word, "lanes", {"lanes", "steps", "threads"}},
              {"gemms", Type::count, "0"},
              {"detail", Type::word, "0", {"0", "1"}},
              {"n_samples", Type::count, "12"}}},
            run};
}

}  // namespace overlap::hip
