#include "sim/core/archive.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <new>

#include "sim/core/available_memory.hpp"
#include "sim/core/errors.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/notices.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;
constexpr std::size_t block_bytes = 1 << 16;

using Reader = std::unique_ptr<struct archive, decltype(&archive_read_free)>;

[[noreturn]] void fail(const std::filesystem::path& archive, const std::string& what) {
    throw UserError(one_line(archive.string() + ": " + what));
}

la_ssize_t require_good(la_ssize_t result, const Reader& reader, const std::filesystem::path& archive) {
    if (result >= ARCHIVE_WARN || result == ARCHIVE_EOF) return result;
    const char* const said = archive_error_string(reader.get());
    fail(archive, std::string("is damaged or no archive: ") + (said == nullptr ? "unreadable" : said));
}

bool leads_out(const std::filesystem::path& name) {
    if (name.empty() || name.is_absolute()) return true;
    for (const auto& part : name)
        if (part == "..") return true;
    return false;
}

}  // namespace

void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder) {
    const Reader reader(archive_read_new(), archive_read_free);
    archive_read_support_filter_all(reader.get());
    archive_read_support_format_tar(reader.get());
    const auto checked = [&](la_ssize_t result) { return require_good(result, reader, archive); };
    checked(archive_read_open_filename(reader.get(), archive.c_str(), block_bytes));
    std::uint64_t bytes = 0;
    std::array<char, block_bytes> block;
    for (archive_entry* entry = nullptr;
         checked(archive_read_next_header(reader.get(), &entry)) != ARCHIVE_EOF;) {
        if (archive_entry_filetype(entry) != AE_IFREG) continue;
        const char* const name = archive_entry_pathname(entry);
        if (name == nullptr || leads_out(name)) fail(archive, "has a file outside of its folder");
        const std::filesystem::path path = folder / name;
        if (std::filesystem::exists(path)) fail(archive, "has " + in_quotes(name) + " twice");
        std::filesystem::create_directories(path.parent_path());
        std::ofstream out(path, std::ios::binary);
        while (const la_ssize_t size = checked(archive_read_data(reader.get(), block.data(), block.size()))) {
            bytes += static_cast<std::uint64_t>(size);
            if (bytes > most_bytes) fail(archive, "holds more than 4 GiB");
            out.write(block.data(), size);
        }
        if (!out.flush()) fail(path, "can't be written");
    }
}

std::string decompressed(const std::filesystem::path& file, const std::string& expected, std::size_t most) {
    open_input(file, expected);  // a missing file, a folder or a device is refused there
    const std::filesystem::path opened = on_disk(file, expected);
    const Reader reader(archive_read_new(), archive_read_free);
    archive_read_support_filter_gzip(reader.get());
    archive_read_support_filter_xz(reader.get());
    archive_read_support_filter_bzip2(reader.get());
    archive_read_support_filter_zstd(reader.get());
    archive_read_support_format_raw(reader.get());
    archive_read_support_format_empty(reader.get());
    const auto checked = [&](la_ssize_t result) { return require_good(result, reader, file); };
    checked(archive_read_open_filename(reader.get(), opened.c_str(), block_bytes));
    std::string text;
    archive_entry* entry = nullptr;
    if (checked(archive_read_next_header(reader.get(), &entry)) == ARCHIVE_EOF) return text;
    std::array<char, block_bytes> block;
    const Bytes available = available_memory();
    std::size_t reserved = 0;
    SlowNotice slow;
    while (const la_ssize_t size = checked(archive_read_data(reader.get(), block.data(), block.size()))) {
        text.append(block.data(), std::min(static_cast<std::size_t>(size), most - text.size()));
        if (text.size() == most) break;
        // Growing copies the text into one of twice its capacity.
        if (text.capacity() != reserved) {
            reserved = text.capacity();
            require_memory_for(one_line(file.string()) + ": " + memory_text(Bytes(double(text.size()))) +
                                   " of text and more",
                               Bytes(3.0 * static_cast<double>(reserved)), available);
        }
        slow.at([&] {
            return file.string() + ": expanding, " + memory_text(Bytes(double(text.size()))) + " so far";
        });
    }
    return text;
}

std::filesystem::path uncompressed_file(const std::filesystem::path& file, const std::string& expected) {
    using namespace std::string_view_literals;
    constexpr std::array magics{"\x1f\x8b"sv,
                                "\xfd"
                                "7zXZ"sv,
                                "BZh"sv, "\x28\xb5\x2f\xfd"sv};
    std::array<char, 8> begin{};
    open_input(file, expected).read(begin.data(), begin.size());
    const std::string_view head(begin.data(), begin.size());
    if (std::ranges::none_of(magics, [&](std::string_view magic) { return head.starts_with(magic); }))
        return on_disk(file, expected);
    const std::string content = decompressed(file, expected);
    const int kept = ::memfd_create("uncompressed", MFD_CLOEXEC);
    const std::filesystem::path path = "/proc/self/fd/" + std::to_string(kept);
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (kept < 0 || !out.flush()) fail(file, "has no room in memory");
    return path;
}

std::string compressed(std::string_view text) {
    using Writer = std::unique_ptr<struct archive, decltype(&archive_write_free)>;
    std::string result;
    const Writer writer(archive_write_new(), archive_write_free);
    const auto take = [](struct archive*, void* to, const void* bytes, std::size_t size) -> la_ssize_t {
        static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
        return static_cast<la_ssize_t>(size);
    };
    archive_write_add_filter_gzip(writer.get());
    archive_write_set_format_raw(writer.get());
    archive_write_set_options(writer.get(), "gzip:!timestamp,gzip:compression-level=9");
    archive_write_set_bytes_in_last_block(writer.get(), 1);  // no padding
    archive_write_open(writer.get(), &result, nullptr, take, nullptr);
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              archive_entry_free);
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_write_header(writer.get(), entry.get());
    archive_write_data(writer.get(), text.data(), text.size());
    if (archive_write_close(writer.get()) != ARCHIVE_OK) throw std::bad_alloc();  // nothing else can fail
    return result;
}

}  // namespace overlap
