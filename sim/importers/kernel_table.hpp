#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/config_reader.hpp"
#include "sim/core/task_graph.hpp"

namespace overlap {

/// What a kernel does, in our terms.
struct KernelUse {
    TaskKind kind = TaskKind::gemm;
    bool waits = false;  ///< for other ranks: a barrier or a collective
    bool attention = false;
};

/// Maps names of kernels to what they do, by a file that users may extend (configs/kernels.json).
class KernelTable {
public:
    /// Entries of a file are asked before those of earlier files. Throws UserError.
    void add(const std::filesystem::path& path);
    /// The use that the first entry has one of whose texts is in `name`, whatever the case; none without such an entry.
    std::optional<KernelUse> use_of(std::string_view name) const;

    struct Entry {
        KernelUse use;
        std::vector<std::string> parts;  ///< in small letters
    };

private:
    std::vector<Entry> entries_;
};
Json kernel_table_schema();

}  // namespace overlap
