// LD_PRELOAD: one call of a function of the C library fails. FAIL_CALL is "<function> <number> <errno>": the
// call of that number since the start of main fails with that errno; with "+" after the number all later
// calls fail, too. "malloc" stands for every kind of allocation. When the call has failed, the file that
// FAIL_CALL_REPORT names is there. Standard error never fails: it is where the program says what happened.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
// The allocator of glibc under names that this library does not replace.
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

char function[32];
long failing_call = 0;
char and_later[2];
int reason = 0;
std::atomic<bool> in_main{false};
std::atomic<long> calls{0};

bool fails(const char* name) {
    if (!in_main || std::strcmp(name, function) != 0) return false;
    const long call = ++calls;
    if (call != failing_call && !(call > failing_call && and_later[0] == '+')) return false;
    const char* report = std::getenv("FAIL_CALL_REPORT");
    const long file = syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_WRONLY, 0666);
    if (file >= 0) syscall(SYS_close, file);
    errno = reason;
    return true;
}

template <class Function>
Function next(Function, const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int (*real_main)(int, char**, char**);

int counted_main(int argc, char** argv, char** environment) {
    const char* wanted = std::getenv("FAIL_CALL");
    if (wanted == nullptr ||
        std::sscanf(wanted, "%31s %ld%1[+] %d", function, &failing_call, and_later, &reason) != 4)
        if (wanted == nullptr || std::sscanf(wanted, "%31s %ld %d", function, &failing_call, &reason) != 3)
            std::abort();
    in_main = true;
    return real_main(argc, argv, environment);
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*end)(), void* stack) {
    real_main = main;
    return next(&__libc_start_main, "__libc_start_main")(counted_main, argc, argv, init, fini, end, stack);
}

ssize_t write(int file, const void* data, std::size_t size) {
    if (file != STDERR_FILENO && fails("write")) return -1;
    return syscall(SYS_write, file, data, size);
}

ssize_t pread(int file, void* data, std::size_t size, off_t offset) {
    return fails("pread") ? -1 : syscall(SYS_pread64, file, data, size, offset);
}

int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return fails("open") ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int close(int file) {
    const bool failing = fails("close");
    const int error = errno;
    const int result =
        static_cast<int>(syscall(SYS_close, file));  // like a real failure: closed all the same
    if (failing) errno = error;
    return failing ? -1 : result;
}

int fsync(int file) {
    return fails("fsync") ? -1 : static_cast<int>(syscall(SYS_fsync, file));
}

int ftruncate(int file, off_t size) {
    return fails("ftruncate") ? -1 : static_cast<int>(syscall(SYS_ftruncate, file, size));
}

int fchmod(int file, mode_t mode) {
    return fails("fchmod") ? -1 : static_cast<int>(syscall(SYS_fchmod, file, mode));
}

int rename(const char* from, const char* to) {
    return fails("rename") ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) {
    return fails("mkdir") ? -1 : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

void* malloc(std::size_t size) {
    return fails("malloc") ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    return fails("malloc") ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
    return fails("malloc") ? nullptr : __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return fails("malloc") ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
    if (fails("malloc")) return ENOMEM;
    *result = __libc_memalign(alignment, size);
    return *result == nullptr ? ENOMEM : 0;
}

}  // extern "C"
