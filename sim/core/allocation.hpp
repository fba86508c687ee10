#pragma once

namespace overlap {

/// For a `main` that simulates: freed memory stays with the process, up to 256 MiB. Each simulation allocates
/// and frees the same few hundred kilobytes; by default the C library returns them to the system every time,
/// and page faults then take up to half of the time. Does nothing without glibc.
void keep_freed_memory();

/// For a `main`: from now on allocation_failed() tells whether an allocation has failed. Streams catch
/// std::bad_alloc and drop the text, so later output may be incomplete.
void note_failed_allocations();
bool allocation_failed();

}  // namespace overlap
