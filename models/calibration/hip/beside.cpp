// Copies that run beside other work.

#include "models/calibration/hip/beside.hpp"

#include "models/calibration/hip/case_list.hpp"

namespace overlap::hip {
namespace {

std::uint64_t seed_of(int gpu) {
    return 500 + gpu;
}

/// The first `bytes` of rows that are whole, or of a single one.
Rows first_of(const Rows& rows, std::size_t bytes) {
    if (rows.rows == 1) return contiguous(bytes);
    return {bytes / rows.row_bytes, rows.row_bytes, rows.pitch};
}

}  // namespace

Beside::Beside(Machine& machine, const std::string& word, int gpu, int peers, int blocks, std::size_t size)
    : size_(size), agent_{word.find("dma") != std::string::npos, blocks, !word.ends_with("memcpy")} {
    if (size == 0 || size % 4096) throw UserError("size is a multiple of 4096");
    if (!agent_.dma && blocks == 0) throw UserError(word + " needs blocks=…");
    const bool local = word.starts_with("local"), out = word.ends_with("out"), push = word.ends_with("push");
    const bool rows = word.ends_with("rows");
    const Rows spread = rows ? Rows{size / 4096, 4096, 8192} : contiguous(size);
    const Rows packed = rows ? Rows{size / 4096, 4096, 4096} : contiguous(size);
    for (int step = local ? 0 : 1; step <= (local ? 0 : peers); ++step) {
        const int peer = (gpu + step) % (peers + 1);
        const int from = out || push ? gpu : peer, to = out || push ? peer : gpu;
        void* source = machine.take(from, spread.rows * spread.pitch);
        check(hipSetDevice(from));
        fill_words(source, spread.rows * spread.pitch, seed_of(from));
        check(hipSetDevice(to));
        void* destination = machine.take(to, size);
        poison(destination, size);
        copies_.push_back({out ? peer : gpu, {source, from, spread, destination, to, packed}});
    }
}

std::vector<Lane> Beside::lanes(const std::vector<std::size_t>& sizes, bool high_priority) const {
    std::vector<Lane> lanes;
    for (const Stream& stream : copies_) {
        std::vector<Operation> operations;
        for (const std::size_t size : sizes) {
            Copy part = stream.copy;
            part.from = first_of(part.from, size);
            part.to = first_of(part.to, size);
            operations.push_back(copy_operation(part, agent_));
        }
        lanes.push_back({stream.gpu, std::move(operations), high_priority, true});
    }
    return lanes;
}

void Beside::expect() const {
    for (const Stream& stream : copies_) {
        check(hipSetDevice(stream.copy.destination_gpu));
        expect_words(stream.copy.destination, stream.copy.to, stream.copy.from, 0,
                     seed_of(stream.copy.source_gpu));
    }
}

}  // namespace overlap::hip
