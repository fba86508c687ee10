#pragma once

#include "sim/transformer/study_report.hpp"

namespace overlap {

/// A steady load: whenever a sequence ends, the next one begins.
struct ServeLoad {
    std::int64_t input = 1024, output = 1024;  ///< tokens of each prompt and of each answer
    std::int64_t concurrency = 1;              ///< sequences at a time
};

/// The step of all sequences half-way through their answers, and the one of a whole prompt.
StepShape decode_of(const ServeLoad& load, StepShape step);
StepShape prefill_of(const ServeLoad& load, StepShape step);

/// The two steps of a server, which runs prefills between decode steps.
///   TPOT = decode / accepted + concurrency / output · prefill: while a sequence makes its answer, the others end `concurrency`
///          times, and each time a prompt is processed
///   TTFT = prefill + decode / 2: a prompt waits for half a step; queues are not modelled
struct Served {
    ServeLoad load;
    ModelReport decode, prefill;
    std::string server = {};   ///< its engine's name; empty: any
    std::int64_t fitting = 0;  ///< sequences of input + output tokens that the memory of a GPU holds
};

/// Seconds of a token for a sequence, with nothing cut or by the schedules found.
Seconds time_per_token(const Served& served, bool cut);
Seconds time_to_first_token(const Served& served, bool cut);

/// 0 where not even one fits.
std::int64_t fitting_sequences(const ServeLoad& load, const Model& model, StepShape step, Bytes capacity);

std::string to_text(const Served& served);
Json to_json(const Served& served);

}  // namespace overlap
