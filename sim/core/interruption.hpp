#pragma once

namespace overlap {

/// Ends a long call from outside. No std::exception: no handler of errors takes it for one.
struct Interrupted {};

/// Whether the caller of this thread wants its call to end; null: it never does.
inline thread_local bool (*interruption_wanted)() = nullptr;

/// Called before each simulation and now and then within it. Throws Interrupted.
inline void end_if_interrupted() {
    if (interruption_wanted != nullptr && interruption_wanted()) throw Interrupted{};
}

}  // namespace overlap
