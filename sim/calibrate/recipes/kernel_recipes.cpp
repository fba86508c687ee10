#include "sim/calibrate/recipes/kernel_recipes.hpp"

#include <set>

#include "models/kernel_calibration.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

/// The key "kernels" of a recipe.
struct Kernels {
    std::string device, like = {}, reason = {}, alone_like = {};
    std::vector<KernelSource> tables = {};
};

// clang-format off
std::vector<InputKey<KernelSource>> keys_of(KernelTableKind kind) {
    using K = KernelSource;
    constexpr Range heads{1, 1024};
    std::vector<InputKey<K>> keys{text_key<K>("file", &K::file, "In the folder of the public data, or in traces/."),
        text_key<K>("origin", &K::origin, "Where it is from, with its version."), text_key<K>("licence", &K::licence, "Its licence."),
        name_key<K>("library", &K::library, "Whose kernels were timed, as --library and --attention name it.").optional()};
    if (kind == KernelTableKind::prefill)
        keys.push_back(field<&K::prior_spread>("prior_spread", "Factor within which priors are correct two times in three.").plain_in({1.1, 100}).optional());
    if (kind == KernelTableKind::decode)
        append(keys, std::vector<InputKey<K>>{
            field<&K::grouped_from>("grouped_from", "Fewest query heads of a key head that the tensor-core kernel serves.").plain_in(heads),
            field<&K::grouped_to>("grouped_to", "Most query heads of a key head that the tensor-core kernel serves.").plain_in(heads),
            text_key<K>("grouped_source", &K::grouped_source, "How the table shows these.")});
    return keys;
}

std::vector<InputKey<Kernels>> kernels_keys() {
    std::vector<InputKey<Kernels>> all{
        name_key<Kernels>("derived_from", &Kernels::like, "The device whose fits are scaled by the ratios of data sheet values.").optional(),
        text_key<Kernels>("reason", &Kernels::reason, "Why that one. Needed with derived_from and alone_from.").optional(),
        name_key<Kernels>("alone_from", &Kernels::alone_like, "The device whose fits of kernels alone are scaled.").optional()};
    const auto add = [&all](KernelTableKind kind, bool alone, const std::string& suffix, const std::string& what) {
        const auto read = [kind, alone](ConfigObject& from, const std::string& key, Kernels& to) {
            ConfigObject table = from.object(key);
            KernelSource source = read_keys<KernelSource>(table, keys_of(kind), {.device = to.device, .kind = kind});
            source.alone = alone;
            to.tables.push_back(std::move(source));
        };
        const std::string name = kernel_groups[static_cast<std::size_t>(kind)] + suffix;
        all.push_back(InputKey<Kernels>(name, keys_schema(what, keys_of(kind)), read).optional());
    };
    for (const KernelTableKind kind : {KernelTableKind::prefill, KernelTableKind::decode, KernelTableKind::moe})
        add(kind, false, "", "A public table.");
    add(KernelTableKind::exchange, false, "", "A public table of DeepEP's normal kernels.");
    add(KernelTableKind::exchange, false, "_low_latency", "A public table of DeepEP's low-latency kernels.");
    for (const KernelTableKind kind : {KernelTableKind::prefill, KernelTableKind::decode, KernelTableKind::moe})
        add(kind, true, "_alone", "Our own measurements of kernels alone; the file is in traces/.");
    return all;
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
        ConfigObject object = root.object("kernels");
        const Kernels kernels = read_keys<Kernels>(object, kernels_keys(), {.device = path.stem().string()});
        if ((kernels.like.empty() && kernels.alone_like.empty()) != kernels.reason.empty())
            object.fail("", "has one of derived_from or alone_from and reason, expected both");
        if (!kernels.like.empty()) recipes.derived.push_back({kernels.device, kernels.like, kernels.reason});
        if (!kernels.alone_like.empty())
            recipes.derived.push_back({kernels.device, kernels.alone_like, kernels.reason, true});
        append(recipes.tables, kernels.tables);
    }
    return recipes;
}

Json kernel_recipe_schema() {
    return keys_schema("Public tables of attention, grouped GEMMs and MoE kernels; or another device's fits.",
                       kernels_keys());
}

}  // namespace overlap
