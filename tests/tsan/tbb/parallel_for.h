#pragma once

#include "task_arena.h"

namespace tbb {

template <class Index, class Body>
void parallel_for(Index first, Index last, Body&& body) {
    std::atomic<Index> next{first};
    on_all_threads([&] {
        for (Index i = next++; i < last; i = next++) body(i);
    });
}

}  // namespace tbb
