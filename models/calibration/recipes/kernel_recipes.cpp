#include "models/calibration/recipes/kernel_recipes.hpp"

#include <set>

#include "models/kernel_calibration.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

constexpr Range grouped_heads{1, 1024};

KernelSource read_source(ConfigObject config, const std::string& device, KernelTableKind kind) {
    KernelSource source{device, kind, config.text("file"), config.text("origin"), config.text("licence")};
    if (kind == KernelTableKind::decode) {
        source.grouped_from = config.number("grouped_from", grouped_heads);
        source.grouped_to = config.number("grouped_to", grouped_heads);
        source.grouped_source = config.text("grouped_source");
    }
    config.finish();
    return source;
}

}  // namespace

std::vector<KernelSource> read_kernel_recipes(const std::filesystem::path& folder) {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json" && entry.path().stem() != "tiles") files.insert(entry.path());
    std::vector<KernelSource> sources;
    for (const std::filesystem::path& path : files) {
        const ConfigFile file = read_config_file(path, "recipe");
        ConfigObject root = file.view();
        if (!root.has("kernels")) continue;
        ConfigObject kernels = root.object("kernels");
        for (std::size_t kind = 0; kind < kernel_groups.size(); ++kind)
            if (kernels.has(kernel_groups[kind]))
                sources.push_back(read_source(kernels.object(kernel_groups[kind]), path.stem().string(),
                                              static_cast<KernelTableKind>(kind)));
        kernels.finish();
    }
    return sources;
}

Json kernel_recipe_schema() {
    Json kernels = object_schema("Public tables of attention and MoE kernels.");
    for (std::size_t kind = 0; kind < kernel_groups.size(); ++kind) {
        Json& table = kernels["properties"][kernel_groups[kind]] = object_schema("A table.");
        table["required"] = {"file", "origin", "licence"};
        table["properties"] = {{"file", text_schema("In the folder of the public data.", 1)},
                               {"origin", text_schema("Where it is from, with its version.", 1)},
                               {"licence", text_schema("Its licence.", 1)}};
        if (static_cast<KernelTableKind>(kind) != KernelTableKind::decode) continue;
        for (const char* key : {"grouped_from", "grouped_to", "grouped_source"})
            table["required"].push_back(key);
        const auto heads = [](const char* what) {
            return Json{{"description", what}, {"type", "number"}, {"minimum", 1}, {"maximum", 1024}};
        };
        table["properties"]["grouped_from"] =
            heads("Fewest query heads of a key head that the tensor-core kernel serves.");
        table["properties"]["grouped_to"] =
            heads("Most query heads of a key head that the tensor-core kernel serves.");
        table["properties"]["grouped_source"] = text_schema("How the table shows these.", 1);
    }
    return kernels;
}

}  // namespace overlap
