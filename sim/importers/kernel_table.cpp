#include "sim/importers/kernel_table.hpp"

#include <array>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

const std::array<std::string, 6> use_names{"gemm",         "collective", "barrier",
                                           "memory_bound", "reduce",     "local_copy"};
constexpr std::array<KernelUse, 6> uses{{{TaskKind::gemm, false},
                                         {TaskKind::collective, true},
                                         {TaskKind::memory_bound, true},
                                         {TaskKind::memory_bound, false},
                                         {TaskKind::reduce, false},
                                         {TaskKind::local_copy, false}}};

}  // namespace

void KernelTable::add(const std::filesystem::path& path) {
    const Json json = read_json_file(path);
    ConfigObject file(json, path.string());
    file.integer("schema", 1, 1);
    if (file.has("description")) file.text("description");
    std::vector<Entry> added;
    for (ConfigObject& one : file.objects("kernels")) {
        Entry entry;
        entry.use = uses[one.choice("is", use_names)];
        for (const std::string& part : one.texts("names")) {
            if (part.empty()) one.fail("names", "has an empty text, which every name holds");
            entry.parts.push_back(lower_case(part));
        }
        if (one.has("of")) one.text("of");
        one.finish();
        added.push_back(std::move(entry));
    }
    file.finish();
    entries_.insert(entries_.begin(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
}

std::optional<KernelUse> KernelTable::use_of(std::string_view name) const {
    const std::string lower = lower_case(std::string(name));
    for (const Entry& entry : entries_)
        for (const std::string& part : entry.parts)
            if (lower.find(part) != std::string::npos) return entry.use;
    return std::nullopt;
}

}  // namespace overlap
