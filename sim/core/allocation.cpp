#include "sim/core/allocation.hpp"

#include <atomic>
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace overlap {
namespace {

std::atomic<bool> failed{false};

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // larger blocks are mapped separately and returned to the system
#endif
}

void note_failed_allocations() {
    std::set_new_handler([] {
        failed = true;
        throw std::bad_alloc();
    });
}

bool allocation_failed() {
    return failed;
}

}  // namespace overlap
