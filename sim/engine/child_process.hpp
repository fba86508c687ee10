#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>

#include <sys/types.h>

namespace overlap {

/// A forked copy of this process that runs `work` and sends bytes back through a pipe.
/// Contract: the caller reads exactly what `work` writes, then calls `finish`. Output of the child is discarded;
/// a Failure tells the caller that the child died. The child is killed at the deadline if it has not written
/// everything, and when the caller's process ends.
class ChildProcess {
public:
    class Writer {
    public:
        explicit Writer(int descriptor) : descriptor_(descriptor) {}
        void write(const void* data, std::size_t size);

    private:
        int descriptor_;
    };

    using Clock = std::chrono::steady_clock;

    ChildProcess(const std::function<void(Writer&)>& work, Clock::time_point deadline);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// The child died, or sent less than was read.
    struct Failure : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    /// The deadline is past.
    struct TimedOut : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    void read(void* data, std::size_t size);
    void finish();

private:
    void wait_for_data();
    [[noreturn]] void fail();

    Clock::time_point deadline_;
    pid_t child_ = -1;
    int descriptor_ = -1;
};

/// Memory that a child process shares with its parent, which can still read it after the child was killed.
class SharedMemory {
public:
    explicit SharedMemory(std::size_t bytes);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    void* get() const { return address_; }

private:
    void* address_;
    std::size_t bytes_;
};

}  // namespace overlap
