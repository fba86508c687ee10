#include "models/calibration/recipes/gemm_recipes.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "sim/core/file_version.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

DType read_dtype(ConfigObject& recipe, const std::string& key = "dtype") {
    return static_cast<DType>(recipe.choice(key, dtype_names));
}

std::string text_or(ConfigObject& object, const std::string& key, const std::string& otherwise) {
    return object.has(key) ? object.text(key) : otherwise;
}

/// Rows of a table: which, and how they differ.
GemmTableFilter read_filter(ConfigObject rows, DType dtype, std::vector<std::string>& kernel_libraries) {
    GemmTableFilter filter{.dtype = dtype, .where = {}};
    filter.time_column = text_or(rows, "time_column", filter.time_column);
    if (rows.has("shortest_us")) filter.shortest_us = rows.number("shortest_us", {0, 1e6});
    if (rows.has("multiples_of")) filter.alignment = rows.integer("multiples_of", 1, 4096);
    if (rows.has("shape_columns")) {
        const std::vector<std::string> names = rows.texts("shape_columns");
        if (names.size() != 3) rows.fail("shape_columns", "expected three names: those of M, N and K");
        std::copy(names.begin(), names.end(), filter.shape_columns.begin());
    }
    if (rows.has("us_per_time")) filter.us = rows.number("us_per_time", {1e-3, 1e6});
    filter.units_column = text_or(rows, "units_column", "");
    filter.median = rows.has("median") && rows.boolean("median");
    if (rows.has("campaign")) filter.campaign = static_cast<int>(rows.integer("campaign", 1, 9));
    if (rows.has("weight")) filter.weight = rows.number("weight", {0.01, 100});
    if (rows.has("warm_below_MB")) filter.warm_below = Bytes(1e6 * rows.number("warm_below_MB", {0, 1e5}));
    if (rows.has("where")) {
        ConfigObject where = rows.object("where");
        for (const std::string& column : where.keys()) filter.where[column] = where.text(column);
        where.finish();
    }
    if (rows.has("campaigns")) {
        ConfigObject campaigns = rows.object("campaigns");
        filter.campaign_column = campaigns.text("column");
        filter.campaigns = campaigns.texts("texts");
        campaigns.text("reason");
        campaigns.finish();
    }
    if (rows.has("libraries")) {
        ConfigObject libraries = rows.object("libraries");
        filter.column_of_libraries = libraries.text("column");
        filter.libraries = libraries.texts("texts");
        kernel_libraries = libraries.texts("names");
        if (kernel_libraries.size() != filter.libraries.size())
            libraries.fail("names", "has " + std::to_string(kernel_libraries.size()) + " names for " +
                                        std::to_string(filter.libraries.size()) + " texts");
        libraries.finish();
    }
    rows.finish();
    return filter;
}

GemmAnchor read_anchor(ConfigObject anchor, DType dtype) {
    const auto size = [&](const std::string& key) { return anchor.integer(key, 1, 1'000'000); };
    const GemmShape shape{size("M"), size("N"), size("K"), dtype, false};
    const double TFLOPS = anchor.number("TFLOPS", {0.01, 1e6});
    GemmAnchor read{{shape, shape.flops() / teraflops(TFLOPS), 4.0, {}}, anchor.text("source")};
    anchor.finish();
    return read;
}

GemmRecipe read_table(ConfigObject table, const std::string& device, const TileLists& tiles) {
    GemmRecipe recipe;
    recipe.device = device;
    recipe.dtype = read_dtype(table);
    recipe.file = table.text("file");
    recipe.origin = table.text("origin");
    recipe.licence = table.text("licence");
    recipe.filter = read_filter(table.object("rows"), recipe.dtype, recipe.kernel_libraries);
    GemmHardware hardware = read_gemm_hardware(table.object("prior"), tiles);
    recipe.prior = gemm_prior(hardware);
    if (table.has("tiles_of_libraries")) {
        hardware.tile_list = tiles.at(table.text("tiles_of_libraries"), table, "tiles_of_libraries");
        recipe.start_of_libraries = gemm_prior(hardware);
    }
    if (table.has("more_tables"))
        for (ConfigObject more : table.objects("more_tables")) {
            std::vector<std::string> none;
            recipe.more_tables.push_back({more.text("file"), more.text("origin"),
                                          read_filter(more.object("rows"), recipe.dtype, none)});
            more.finish();
        }
    if (table.has("anchors"))
        for (const ConfigObject& anchor : table.objects("anchors"))
            recipe.anchors.push_back(read_anchor(anchor, recipe.dtype));
    recipe.kernel_library = text_or(table, "library", "");
    recipe.note = text_or(table, "note", "");
    recipe.of_library = text_or(table, "of_library", "");
    recipe.check_only = table.has("check_only") && table.boolean("check_only");
    if (table.has("deployed")) {
        ConfigObject deployed = table.object("deployed");
        recipe.deployed_units = deployed.sourced("compute_units", {1, 100'000});
        recipe.deployed_launch_us = deployed.sourced("launch_us", {0.01, 1e4});
        recipe.launch_source = table.raw("deployed").at("launch_us").at("source");
        deployed.finish();
    }
    table.finish();
    return recipe;
}

GemmDerivation read_derivation(ConfigObject derived, const std::string& device) {
    GemmDerivation derivation;
    derivation.device = device;
    derivation.dtype = read_dtype(derived);
    ConfigObject from = derived.object("from");
    derivation.from_device = from.text("device");
    derivation.from_dtype = read_dtype(from);
    from.finish();
    const auto ratio = [&](const std::string& key) {
        ConfigObject quotient = derived.object(key);
        const double here = quotient.number("here", {1e-3, 1e6}),
                     there = quotient.number("there", {1e-3, 1e6});
        quotient.finish();
        return here / there;
    };
    if (derived.has("rates")) derivation.rate_ratio = ratio("rates");
    if (derived.has("memory_rates")) derivation.hbm_ratio = ratio("memory_rates");
    derivation.reason = derived.text("reason");
    derivation.of_library = text_or(derived, "of_library", "");
    derivation.kernel_library = text_or(derived, "library", "");
    derivation.note = text_or(derived, "note", derivation.note);
    derived.finish();
    return derivation;
}

/// bf16 has a prior of its own; the rate of fp8 is `fp8_ratio` times as high.
std::vector<MeasuredGemmRecipe> measured_recipes(const std::string& device, const std::string& machine,
                                                 const GemmPrior& prior, double fp8_ratio) {
    std::ostringstream ratio;
    ratio << fp8_ratio;
    return {
        {.device = device,
         .machine = machine,
         .dtype = DType::bf16,
         .prior_dtype = DType::bf16,
         .prior = prior,
         .note = "time: chain_us, GEMMs back to back without an event between"},
        {.device = device,
         .machine = machine,
         .dtype = DType::fp16,
         .prior_dtype = DType::bf16,
         .prior = {},
         .note = "few rows: the prior is the fit of bf16"},
        // Tiles have the same depth in bytes, so twice the depth in K.
        {.device = device,
         .machine = machine,
         .dtype = DType::fp8,
         .prior_dtype = DType::bf16,
         .rate_ratio = fp8_ratio,
         .rate_spread = 1.3,
         .spread = 1.3,
         .k_step = 128,
         .prior = {},
         .note = "few rows: the prior is the fit of bf16, with its rate times " + ratio.str()},
    };
}

void read_recipe(const std::filesystem::path& path, GemmRecipes& recipes) {
    const ConfigFile file = read_config_file(path, "recipe");
    ConfigObject root = file.view();
    root.integer("schema", 1, newest_version("recipe"));
    const std::string device = root.text("device");
    if (device != path.stem().string())
        root.fail("device", "is " + in_quotes(device) + ", expected this file's name, " +
                                in_quotes(path.stem().string()));
    if (root.has("tables"))
        for (const ConfigObject& table : root.objects("tables"))
            recipes.tables.push_back(read_table(table, device, recipes.tiles));
    if (root.has("default_library")) recipes.default_libraries[device] = root.text("default_library");
    if (root.has("derived"))
        for (const ConfigObject& derived : root.objects("derived"))
            recipes.derivations.push_back(read_derivation(derived, device));
    if (root.has("kernels")) root.raw("kernels");  // read_kernel_recipes
    if (root.has("measured")) {
        ConfigObject measured = root.object("measured");
        GemmHardware hardware = read_gemm_hardware(measured.object("prior"), recipes.tiles);
        hardware.slow_sustained_clock = true;
        const auto own = measured_recipes(device, measured.text("machine"), gemm_prior(hardware),
                                          measured.number("fp8_ratio", {0.1, 10}));
        recipes.measured.insert(recipes.measured.end(), own.begin(), own.end());
        measured.finish();
    }
    root.finish();
}

/// A source before what is derived from it. Throws UserError for a circle.
std::vector<GemmDerivation> in_order(std::vector<GemmDerivation> derivations) {
    const auto same = [](const GemmDerivation& one, const GemmDerivation& of) {
        return one.of_library.empty() && one.device == of.from_device && one.dtype == of.from_dtype;
    };
    std::vector<GemmDerivation> ordered;
    while (!derivations.empty()) {
        const auto next =
            std::find_if(derivations.begin(), derivations.end(), [&](const GemmDerivation& wanted) {
                return std::none_of(derivations.begin(), derivations.end(),
                                    [&](const GemmDerivation& other) { return same(other, wanted); });
            });
        if (next == derivations.end())
            throw UserError("recipes: GEMMs of '" + derivations.front().device +
                            "' are derived from one another in a circle");
        ordered.push_back(*next);
        derivations.erase(next);
    }
    return ordered;
}

}  // namespace

std::vector<MeasuredGemmRecipe> GemmRecipes::of_machine(const DeviceSpec& device, const std::string& machine,
                                                        const std::string& platform) const {
    const auto peak = [&](DType dtype) {
        const auto found = device.peak.find(dtype);
        return found == device.peak.end() ? 0.0 : to_teraflops(found->second);
    };
    // fp8 reaches a smaller part of its rate: on H200 1.8 times bf16, whose rate is half.
    const double fp8 = peak(DType::fp8) > 0 ? 0.9 * peak(DType::fp8) / peak(DType::bf16) : 1;
    return measured_recipes(device.name, machine, gemm_prior(gemm_hardware_of(device, platform, tiles)), fp8);
}

GemmRecipes read_gemm_recipes(const std::filesystem::path& folder) {
    const std::filesystem::path tiles = folder / "tiles.json";
    GemmRecipes recipes{.tables = {}, .measured = {}, .derivations = {}, .tiles = TileLists(tiles)};
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".json" && entry.path() != tiles) files.insert(entry.path());
    for (const std::filesystem::path& file : files) read_recipe(file, recipes);
    recipes.derivations = in_order(std::move(recipes.derivations));
    return recipes;
}

}  // namespace overlap
