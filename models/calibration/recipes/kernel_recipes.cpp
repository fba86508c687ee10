#include "models/calibration/recipes/kernel_recipes.hpp"

#include <set>

#include "models/kernel_calibration.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

constexpr Range grouped_heads{1, 1024}, prior_spreads{1.1, 100};

KernelSource read_source(ConfigObject config, const std::string& device, KernelTableKind kind) {
    KernelSource source{device, kind, config.text("file"), config.text("origin"), config.text("licence")};
    if (kind == KernelTableKind::decode) {
        source.grouped_from = config.number("grouped_from", grouped_heads);
        source.grouped_to = config.number("grouped_to", grouped_heads);
        source.grouped_source = config.text("grouped_source");
    }
    if (kind == KernelTableKind::prefill && config.has("prior_spread"))
        source.prior_spread = config.number("prior_spread", prior_spreads);
    config.finish();
    return source;
}

}  // namespace

KernelRecipes read_kernel_recipes(const std::filesystem::path& folder) {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json" && entry.path().stem() != "tiles") files.insert(entry.path());
    KernelRecipes recipes;
    for (const std::filesystem::path& path : files) {
        const ConfigFile file = read_config_file(path, "recipe");
        ConfigObject root = file.view();
        if (!root.has("kernels")) continue;
        ConfigObject kernels = root.object("kernels");
        const std::string device = path.stem().string();
        if (kernels.has("derived_from"))
            recipes.derived.push_back({device, kernels.text("derived_from"), kernels.text("reason")});
        for (std::size_t kind = 0; kind < kernel_groups.size(); ++kind)
            if (kernels.has(kernel_groups[kind]))
                recipes.tables.push_back(read_source(kernels.object(kernel_groups[kind]), device,
                                                     static_cast<KernelTableKind>(kind)));
        kernels.finish();
    }
    return recipes;
}

Json kernel_recipe_schema() {
    Json kernels =
        object_schema("Public tables of attention, grouped GEMMs and MoE kernels; or another device's fits.");
    kernels["properties"]["derived_from"] =
        name_schema("The device whose fits are scaled by the ratios of data sheet values.");
    kernels["properties"]["reason"] = text_schema("Why that one. Needed with derived_from.", 1);
    for (std::size_t kind = 0; kind < kernel_groups.size(); ++kind) {
        Json& table = kernels["properties"][kernel_groups[kind]] = object_schema("A table.");
        table["required"] = {"file", "origin", "licence"};
        table["properties"] = {{"file", text_schema("In the folder of the public data.", 1)},
                               {"origin", text_schema("Where it is from, with its version.", 1)},
                               {"licence", text_schema("Its licence.", 1)}};
        if (static_cast<KernelTableKind>(kind) == KernelTableKind::prefill)
            table["properties"]["prior_spread"] = {
                {"description", "Factor within which priors are correct two times in three. Default 2."},
                {"type", "number"},
                {"minimum", prior_spreads.low},
                {"maximum", prior_spreads.high}};
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
