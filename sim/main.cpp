#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <new>

#include "sim/commands/cli.hpp"
#include "sim/core/allocation.hpp"
#include "sim/core/failure.hpp"

namespace {

constexpr char out_of_memory[] =
    "sim: out of memory: what was printed may lack a part, files that were written do not\n";

/// Destructors may allocate (nlohmann::json's do) and may not throw: no memory there ends the program here.
[[noreturn]] void end_at_once() {
    if (!overlap::allocation_failed() || ::write(STDERR_FILENO, out_of_memory, sizeof out_of_memory - 1) < 0)
        std::abort();
    ::_exit(2);
}

/// A file of ours must not get the number of a standard stream that the caller has closed: a summary, or a warning,
/// would be written into it.
void open_closed_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
        const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
        if (opened != stream) ::_exit(2);  // a system without /dev/null, and nowhere to say so
    }
}

}  // namespace

int main(int argc, char** argv) {
    open_closed_streams();
    overlap::keep_freed_memory();
    overlap::note_failed_allocations();
    std::set_terminate(end_at_once);
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of write(), like a full disk
    try {
        const int status = overlap::run_command_line(argc, argv);
        if (overlap::allocation_failed()) throw std::bad_alloc();  // a stream may have lost text
        return status;
    } catch (const std::bad_alloc&) {
        std::cerr << out_of_memory;
        return 2;
    } catch (...) {
        const overlap::Failure failure = overlap::current_failure();
        if (failure.lines.empty()) std::cerr << "sim: " << failure.reason << '\n';
        for (const std::string& line : failure.lines) std::cerr << "sim: " << line << '\n';
        return failure.ours ? 1 : 2;
    }
}
