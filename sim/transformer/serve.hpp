#pragma once

#include "sim/transformer/study_report.hpp"

namespace overlap {

/// A steady load: whenever a sequence ends, the next one begins.
struct ServeLoad {
    std::int64_t input = 1024, output = 1024;  ///< tokens of each prompt and of each answer
    std::int64_t concurrency = 1;              ///< sequences at a time
};

/// Memory of a GPU that a server gives to weights, keys and values.
struct ServedMemory {
    double all = 1;   ///< share of the GPU's memory for all of them
    double rest = 1;  ///< share of what weights leave of it for keys and values
    /// Begins sequences while there is room, and pauses some where it ends. Pauses count in the time per token, which is
    /// taken as if all ran; otherwise as many run as fit with their whole answers.
    bool preempts = false;
};

/// The step of all sequences half-way through their answers, and the one of a whole prompt.
StepShape decode_of(const ServeLoad& load, StepShape step);
StepShape prefill_of(const ServeLoad& load, StepShape step);

/// The two steps of a server, which runs prefills between decode steps.
///   running = concurrency, or where fewer fit these (but ServedMemory::preempts); the others wait
///   TPOT = decode / accepted + running / output · prefill: while a sequence makes its answer, the others end `running`
///          times, and each time a prompt is processed
///   TTFT = prefill + decode / 2: a prompt waits for half a step; queues are not modelled
struct Served {
    ServeLoad load;            ///< of the sequences that run
    std::int64_t asked = 0;    ///< concurrency that was asked for
    std::int64_t fitting = 0;  ///< sequences of input + output tokens that the memory of a GPU holds
    ModelReport decode, prefill;
    std::string server = {};  ///< its engine's name; empty: any
};

/// Seconds of a token for a sequence, with nothing cut or by the schedules found.
Seconds time_per_token(const Served& served, bool cut);
Seconds time_to_first_token(const Served& served, bool cut);

/// 0 where not even one fits. `capacity`: memory of a GPU.
std::int64_t fitting_sequences(const ServeLoad& load, const Model& model, StepShape step, Bytes capacity,
                               const ServedMemory& memory);

std::string to_text(const Served& served);
Json to_json(const Served& served);

}  // namespace overlap
