#pragma once

namespace overlap {

/// For a `main` that simulates: memory that is freed stays with the process, up to 256 MiB. Each simulation
/// takes and frees the same some hundred kilobytes; by default the C library gives them back to the system
/// every time, and page faults are then up to a half of the time. Does nothing where the C library is not
/// glibc.
void keep_freed_memory();

/// For a `main`: from now on an allocation that fails is seen by allocation_failed(). Streams catch
/// std::bad_alloc and go on without the text, so output that was made since may lack a part.
void note_failed_allocations();
bool allocation_failed();

}  // namespace overlap
