#pragma once

#include <atomic>

namespace overlap {

/// Ends a long call from outside. No std::exception: no handler of errors takes it for one.
struct Interrupted {};

/// Whether the caller of this thread wants its call to end; null: it never does.
inline thread_local bool (*interruption_wanted)() = nullptr;

/// Whether another thread that works on the same call has ended it; null: none does.
inline thread_local std::atomic<bool>* call_has_ended = nullptr;

/// Called before each simulation and now and then within it. Throws Interrupted.
inline void end_if_interrupted() {
    if (call_has_ended != nullptr && *call_has_ended) throw Interrupted{};
    if (interruption_wanted == nullptr || !interruption_wanted()) return;
    if (call_has_ended != nullptr) *call_has_ended = true;
    throw Interrupted{};
}

}  // namespace overlap
