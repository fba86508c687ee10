#include "sim/importers/kernel_table.hpp"

#include <array>

#include "sim/core/input_keys.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

const std::array<std::string, 7> use_names{"gemm",   "collective", "barrier",  "memory_bound",
                                           "reduce", "local_copy", "attention"};
constexpr std::array<KernelUse, 7> uses{{{TaskKind::gemm, false},
                                         {TaskKind::collective, true},
                                         {TaskKind::memory_bound, true},
                                         {TaskKind::memory_bound, false},
                                         {TaskKind::reduce, false},
                                         {TaskKind::local_copy, false},
                                         {TaskKind::memory_bound, false, true}}};

// clang-format off
struct KernelFile {
    std::vector<KernelTable::Entry> kernels;
};
InputKeys<KernelFile> kernel_file_keys() {
    using E = KernelTable::Entry;
    static const std::vector<InputKey<E>> entry_keys{
        {"is", choice_of(use_names, "gemm: a matrix product of a library; collective: a whole collective of a library; barrier: waits until all ranks have come, and moves no data; "
            "memory_bound: element-wise kernels, norms, convolutions; reduce: a sum over parts that other ranks have sent; local_copy: a copy inside one GPU's memory; attention: a fused attention."),
            [](ConfigObject& from, const std::string& key, E& to) { to.use = uses[from.choice(key, use_names)]; }},
        texts_key<E>("names", &E::parts, "Texts, one of which the kernel's name holds, whatever the case."),
        text_key<E>("of", "Whose kernels these are.").optional()};
    static const std::vector<InputKey<KernelFile>> keys{
        version_key<KernelFile>("kernels"), text_key<KernelFile>("description", "What this is.").optional(),
        list_key<KernelFile>("kernels", &KernelFile::kernels, "Entries, asked in this order.", entry_keys)};
    return keys;
}
// clang-format on

}  // namespace

void KernelTable::add(const std::filesystem::path& path) {
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    std::vector<Entry> added = read_keys<KernelFile>(file, kernel_file_keys()).kernels;
    for (Entry& entry : added)
        for (std::string& part : entry.parts) part = lower_case(part);
    entries_.insert(entries_.begin(), std::make_move_iterator(added.begin()),
                    std::make_move_iterator(added.end()));
}

Json kernel_table_schema() {
    return file_of_keys(
        "Table of kernels",
        "What kernels of a profiler's trace do, by texts in their names. The first entry that fits counts.",
        kernel_file_keys());
}

std::optional<KernelUse> KernelTable::use_of(std::string_view name) const {
    const std::string lower = lower_case(std::string(name));
    for (const Entry& entry : entries_)
        for (const std::string& part : entry.parts)
            if (lower.find(part) != std::string::npos) return entry.use;
    return std::nullopt;
}

}  // namespace overlap
