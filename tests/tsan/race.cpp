// A race on purpose, in the replaced TBB: what ThreadSanitizer must report for its silence about the program
// to mean anything.
#include <tbb/task_arena.h>

int main() {
    long count = 0;
    tbb::on_all_threads([&] { ++count; });
    return count < 0 ? 1 : 0;
}
