// Measures copies within one GPU: contiguous, packing strided rows, scattering packed rows.
//
// operation=copy: contiguous; pack: rows of `row` bytes, `pitch` apart, into packed rows;
// scatter: the reverse. Samples: from release to end, µs. The destination is poisoned before, and
// every word is compared after.

#include "models/calibration/hip/copies.hpp"
#include "models/calibration/hip/question.hpp"

namespace overlap::hip {
namespace {

Result run(Machine& machine, const Case& c) {
    const std::size_t size = c.bytes("size"), row = c.bytes("row"), pitch = c.bytes("pitch");
    const std::string& operation = c.word("operation");
    const Agent agent{c.word("agent") == "dma", static_cast<int>(c.count("blocks"))};
    if (!agent.dma && agent.blocks == 0) throw UserError("agent=cu needs blocks=…");
    if (operation != "copy" && (row == 0 || row % 16 || pitch % 16 || pitch < row || size % row))
        throw UserError("row and pitch are multiples of 16, pitch at least row, size a multiple of row");
    if (size == 0 || size % 16) throw UserError("size is a multiple of 16");
    const Rows packed = operation == "copy" ? contiguous(size) : Rows{size / row, row, row};
    const Rows spread = operation == "copy" ? packed : Rows{size / row, row, pitch};
    const Rows from = operation == "pack" ? spread : packed, to = operation == "scatter" ? spread : packed;

    check(hipSetDevice(0));
    constexpr std::uint64_t seed = 7;
    void* source = machine.take(0, from.rows * from.pitch);
    void* destination = machine.take(0, to.rows * to.pitch);
    fill_words(source, from.rows * from.pitch, seed);
    poison(destination, to.rows * to.pitch);
    const std::vector<Lane> lanes = {{0, {copy_operation({source, 0, from, destination, 0, to}, agent)}}};
    for (int warm = 0; warm < 2; ++warm) run_lanes(machine, lanes);
    Result result;
    for (std::int64_t sample = 0; sample < c.count("n_samples"); ++sample)
        result.samples.push_back(makespan(run_lanes(machine, lanes)));
    expect_words(destination, to, from, 0, seed);
    return result;
}

}  // namespace

Question local_copy() {
    return {{"local_copy",
             {{"agent", Type::word, "dma", {"dma", "cu"}},
              {"operation", Type::word, "copy", {"copy", "pack", "scatter"}},
              {"blocks", Type::count, "0"},
              {"row", Type::bytes, "0"},
              {"pitch", Type::bytes, "0"},
              {"size", Type::bytes},
              {"n_samples", Type::count, "12"}}},
            run};
}

}  // namespace overlap::hip
