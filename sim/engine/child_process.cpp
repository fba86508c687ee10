#include "sim/engine/child_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overlap {

void ChildProcess::Writer::write(const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::write(descriptor_, at, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(1);  // the reader is gone
        at += written;
        size -= static_cast<std::size_t>(written);
    }
}

ChildProcess::ChildProcess(const std::function<void(Writer&)>& work, Clock::time_point deadline)
    : deadline_(deadline) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    std::fflush(nullptr);  // or buffered output would be written twice
    child_ = fork();
    if (child_ < 0) {
        const int error = errno;
        close(ends[0]);
        close(ends[1]);
        throw std::runtime_error(std::string("fork: ") + std::strerror(error));
    }
    if (child_ == 0) {
        close(ends[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        // The caller reports how the child died: the child has no handlers and no output of this process.
        std::signal(SIGABRT, SIG_DFL);
        for (std::FILE* stream : {stdout, stderr})
            if (std::freopen("/dev/null", "w", stream) == nullptr) _exit(1);
        int status = 1;
        try {
            Writer writer(ends[1]);
            work(writer);
            status = 0;
        } catch (const std::exception&) {
            // The exit status reports the failure.
        }
        // No destructors and no exit handlers: they belong to the parent.
        _exit(status);
    }
    close(ends[1]);
    descriptor_ = ends[0];
}

ChildProcess::~ChildProcess() {
    if (descriptor_ >= 0) close(descriptor_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
}

void ChildProcess::wait_for_data() {
    using std::chrono::milliseconds;
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
        if (left <= milliseconds(0)) {
            kill(child_, SIGKILL);
            waitpid(std::exchange(child_, -1), nullptr, 0);
            throw TimedOut("the simulation process has taken too long");
        }
        pollfd descriptor{descriptor_, POLLIN, 0};
        constexpr milliseconds longest{1'000'000};
        if (poll(&descriptor, 1, static_cast<int>(std::min(left, longest).count())) > 0) return;
    }
}

void ChildProcess::read(void* data, std::size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
        wait_for_data();
        const ssize_t got = ::read(descriptor_, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail();
        at += got;
        size -= static_cast<std::size_t>(got);
    }
}

void ChildProcess::finish() {
    int status = 0;
    const pid_t child = child_;
    child_ = -1;
    if (waitpid(child, &status, 0) != child || status != 0)
        throw Failure("the simulation process failed (status " + std::to_string(status) + ")");
}

void ChildProcess::fail() {
    int status = 0;
    const pid_t child = child_;
    child_ = -1;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        throw Failure(std::string("the simulation process was ended by signal ") +
                      strsignal(WTERMSIG(status)));
    throw Failure("the simulation process gave no result (status " + std::to_string(status) + ")");
}

SharedMemory::SharedMemory(std::size_t bytes)
    : address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
      bytes_(bytes) {
    if (address_ == MAP_FAILED) throw std::runtime_error(std::string("mmap: ") + std::strerror(errno));
}

SharedMemory::~SharedMemory() {
    munmap(address_, bytes_);
}

}  // namespace overlap
