#pragma once

#include <cstddef>
#include <functional>

#include <sys/types.h>

namespace overlap {

/// A forked copy of this process that runs `work` and sends bytes back through a pipe.
/// Contract: the caller reads exactly what `work` writes, then calls `finish`. Throws std::runtime_error with what
/// happened where the child died or sent less.
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

    void read(void* data, std::size_t size);
    void finish();

private:
    [[noreturn]] void fail();

    pid_t child_ = -1;
    int descriptor_ = -1;
};

}  // namespace overlap
