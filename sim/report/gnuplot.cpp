#include "sim/report/gnuplot.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <spawn.h>
#include <sys/wait.h>

#include "sim/core/errors.hpp"
#include "sim/core/output_file.hpp"
#include "sim/core/shown.hpp"

extern char** environ;

namespace overlap {
namespace {

[[noreturn]] void fail_with_code(const std::string& what, int error) {
    throw UserError("plots: " + what + ": " + std::strerror(error));
}

/// A nameless file for a program's input or output. Unlike with pipes, neither side can block the other.
class NamelessFile {
public:
    NamelessFile() : file_(std::tmpfile(), &std::fclose) {
        if (!file_) fail_with_code("no temporary file", errno);
    }
    explicit NamelessFile(const std::string& content) : NamelessFile() {
        if (std::fwrite(content.data(), 1, content.size(), file_.get()) != content.size() ||
            std::fflush(file_.get()) != 0)
            fail_with_code("temporary file", errno);
        std::rewind(file_.get());
    }
    int descriptor() const { return fileno(file_.get()); }
    std::string content() {
        std::rewind(file_.get());
        std::string text;
        std::array<char, 65536> part{};
        while (const std::size_t got = std::fread(part.data(), 1, part.size(), file_.get()))
            text.append(part.data(), got);
        return text;
    }

private:
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Output of gnuplot (5.2 or newer) for `script`. Throws UserError if gnuplot is missing or fails.
std::string run_gnuplot(const std::string& script) {
    const NamelessFile input(script);
    NamelessFile output, errors;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.descriptor(), 0);
    posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
    posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
    std::string name = "gnuplot", defaults = "--default-settings", from_input = "-";
    const std::array<char*, 4> arguments{name.data(), defaults.data(), from_input.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT || error == EACCES)
        throw UserError(
            "plots need gnuplot, which is not installed (Debian and Ubuntu: package gnuplot-nox)");
    if (error != 0) fail_with_code("gnuplot can't be started", error);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
        const std::string reason = errors.content();
        throw UserError(
            one_line("plots: gnuplot failed" +
                     (WIFSIGNALED(status) ? std::string(" (") + strsignal(WTERMSIG(status)) + ")"
                                          : " (exit code " + std::to_string(WEXITSTATUS(status)) + ")") +
                     (reason.empty() ? "" : ": " + reason)));
    }
    return output.content();
}

}  // namespace

void require_gnuplot() {
    run_gnuplot("");
}

/// Only the quote itself is special in gnuplot's single quotes. U+2019 replaces it, because gnuplot takes two
/// quotes in a row for the end of the text. Control characters are not allowed in SVG.
std::string gnuplot_quoted(const std::string& text) {
    std::string result = "'";
    for (const char letter : valid_utf8(text)) {
        if (letter == '\'')
            result += "\u2019";
        else
            result += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F ? ' ' : letter;
    }
    return result + "'";
}

void require_picture_name(const std::filesystem::path& file) {
    const std::string extension = file.extension().string();
    if (extension != ".svg" && extension != ".png")
        throw UserError(file.string() + ": a picture ends with '" + extension + "' (allowed: .svg, .png)");
}

void write_picture(const std::filesystem::path& file, const GnuplotScript& script) {
    require_picture_name(file);
    const auto size = [&](int factor) {
        return " size " + std::to_string(factor * script.width) + "," +
               std::to_string(factor * script.height);
    };
    const std::string common = " noenhanced font 'sans-serif,15' background '#FFFFFF'\nset encoding utf8\n";
    const std::string terminal =
        file.extension() == ".svg"
            ? "set terminal svg" + size(1) + common
            : "set terminal pngcairo fontscale 2 linewidth 2 pointscale 2" + size(2) + common;
    write_file_atomically(file, run_gnuplot(terminal + script.text));
}

}  // namespace overlap
