#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>

#include <sys/types.h>

namespace overlap {

/// A forked copy of this process that runs `work` and sends bytes back through a pipe.
/// Contract: the caller reads exactly what `work` writes, then calls `finish`. What the child prints is lost:
/// the caller learns by a Failure that it died.
class ChildProcess {
public:
    class Writer {
    public:
        explicit Writer(int descriptor) : descriptor_(descriptor) {}
        void write(const void* data, std::size_t size);

    private:
        int descriptor_;
    };

    explicit ChildProcess(const std::function<void(Writer&)>& work);
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// The child died, or sent less than was read.
    struct Failure : std::runtime_error {
        using std::runtime_error::runtime_error;
    };

    void read(void* data, std::size_t size);
    void finish();

private:
    [[noreturn]] void fail();

    pid_t child_ = -1;
    int descriptor_ = -1;
};

}  // namespace overlap
