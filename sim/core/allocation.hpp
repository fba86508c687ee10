#pragma once

namespace overlap {

/// For a `main` that simulates: memory that is freed stays with the process, up to 256 MiB. Each simulation
/// takes and frees the same some hundred kilobytes; by default the C library gives them back to the system
/// every time, and page faults are then up to a half of the time. Does nothing where the C library is not
/// glibc.
void keep_freed_memory();

}  // namespace overlap
