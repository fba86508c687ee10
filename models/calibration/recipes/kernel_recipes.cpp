#include "models/calibration/recipes/kernel_recipes.hpp"

#include <set>

#include "models/kernel_calibration.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

// clang-format off
std::vector<InputKey<KernelSource>> keys_of(KernelTableKind kind) {
    using K = KernelSource;
    constexpr Range heads{1, 1024};
    std::vector<InputKey<K>> keys{text_key<K>("file", &K::file, "In the folder of the public data."),
        text_key<K>("origin", &K::origin, "Where it is from, with its version."), text_key<K>("licence", &K::licence, "Its licence.")};
    if (kind == KernelTableKind::prefill)
        keys.push_back(field<&K::prior_spread>("prior_spread", "Factor within which priors are correct two times in three.").plain_in({1.1, 100}).optional());
    if (kind == KernelTableKind::decode)
        append(keys, std::vector<InputKey<K>>{
            field<&K::grouped_from>("grouped_from", "Fewest query heads of a key head that the tensor-core kernel serves.").plain_in(heads),
            field<&K::grouped_to>("grouped_to", "Most query heads of a key head that the tensor-core kernel serves.").plain_in(heads),
            text_key<K>("grouped_source", &K::grouped_source, "How the table shows these.")});
    return keys;
}
// clang-format on

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
            if (kernels.has(kernel_groups[kind])) {
                ConfigObject table = kernels.object(kernel_groups[kind]);
                const auto of = static_cast<KernelTableKind>(kind);
                recipes.tables.push_back(
                    read_keys<KernelSource>(table, keys_of(of), {.device = device, .kind = of}));
            }
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
    for (std::size_t kind = 0; kind < kernel_groups.size(); ++kind)
        kernels["properties"][kernel_groups[kind]] =
            keys_schema("A table.", keys_of(static_cast<KernelTableKind>(kind)));
    return kernels;
}

}  // namespace overlap
