#include "sim/calibrate/recipes/gemm_recipes.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "sim/calibrate/recipes/kernel_recipes.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/what_if.hpp"

namespace overlap {
namespace {

/// What a recipe's file says, before names of tiles are looked up.
struct RecipeFile {
    struct Measured {
        std::string machine;
        GemmHardware hardware;
        double fp8_ratio = 1;
    };

    std::string device, default_library;
    std::vector<GemmRecipe> tables;
    std::vector<GemmDerivation> derived;
    Measured measured;
};

// clang-format off
InputKeys<GemmTableFilter> row_keys() {
    using F = GemmTableFilter;
    using M = RowMarks;
    static const std::vector<InputKey<M>> campaign_keys{
        text_key<M>("column", &M::column, "Column that says which."),
        texts_key<M>("texts", &M::texts, "What stands there, one for each campaign; all other rows are the main one."),
        text_key<M>("reason", "How it shows in the table.")};
    static const std::vector<InputKey<M>> library_keys{
        text_key<M>("column", &M::column, "Column that says which."),
        texts_key<M>("texts", &M::texts, "What stands there, one for each library."),
        {"names", list_schema("The libraries' names, as prices show them.", {{"type", "string"}, {"minLength", 1}}), [](ConfigObject& from, const std::string& key, M& to) {
            to.names = non_empty_texts(from, key);
            if (to.names.size() != to.texts.size())
                from.fail(key, "has " + std::to_string(to.names.size()) + " names for " + std::to_string(to.texts.size()) + " texts");
        }}};
    static const std::vector<InputKey<RunGap>> gap_keys{
        field<&RunGap::pause>("us", "The pause.").plain_in({0, 100}), field<&RunGap::cache>("cache_MB", "The cache.").plain_in({0.1, 1e5}),
        text_key<RunGap>("source", "How it is known.")};
    static const std::vector<InputKey<F>> keys{
        text_key<F>("time_column", &F::time_column, "Column of the time in microseconds; default us.").optional(),
        InputKey<F>("shape_columns", list_schema("Columns of M, N and K; default these names.", {{"type", "string"}, {"minLength", 1}}), [](ConfigObject& from, const std::string& key, F& to) {
            const std::vector<std::string> names = non_empty_texts(from, key);
            if (names.size() != 3) from.fail(key, "expected three names: those of M, N and K");
            std::ranges::copy(names, to.shape_columns.begin());
        }).optional(),
        field<&F::us>("us_per_time", "Microseconds in one of that column.").plain_in({1e-3, 1e6}).optional(),
        text_key<F>("units_column", &F::units_column, "Column of the compute units that a mask left to the kernel.").optional(),
        field<&F::median>("median", "Of rows of equal shapes the median counts, not the fastest.").optional(),
        field<&F::campaign>("campaign", "All rows have the compute rate of this campaign, not the main one.").plain_in({1, 9}).optional(),
        field<&F::weight>("weight", "Of each row in the fit.").plain_in({0.01, 100}).optional(),
        field<&F::warm_below>("warm_below_MB", "Operands B of fewer MB stayed in a cache from one repetition to the next.").plain_in({0, 1e5}).optional(),
        member_key<F>("run_gap", &F::run_gap, "Pause between runs of the program that measured; a run has one GEMM on each of 1 to 5 copies of B, as many as exceed a cache, "
            "and the row's time is the run's with the pause over them.", gap_keys).optional(),
        field<&F::shortest>("shortest_us", "Shorter kernels are mostly launch.").plain_in({0, 1e6}).optional(),
        field<&F::alignment>("multiples_of", "N and K must be multiples of it: other sizes use other kernels.").plain_in({1, 4096}).optional(),
        InputKey<F>("where", map_schema("The only accepted text of each column.", {{"minLength", 1}}, {{"type", "string"}}), [](ConfigObject& from, const std::string& key, F& to) {
            ConfigObject where = from.object(key);
            for (const std::string& column : where.keys()) to.where[column] = where.text(column);
        }).optional(),
        member_key<F>("campaigns", &F::campaigns, "Rows measured in campaigns of their own, each with a compute rate of its own.", campaign_keys).optional(),
        member_key<F>("libraries", &F::libraries, "Kernel libraries that the table tells apart.", library_keys).optional()};
    return keys;
}

template <class T>
InputKey<T> prior_key(GemmHardware T::*member) {
    return member_key<T>("prior", member, "What the prior of a fit depends on. Everything else is the same for all devices (sim/calibrate/recipes/gemm_prior.cpp).", GemmHardware::keys());
}

/// A key whose source is kept.
InputKey<GemmRecipe::Deployed> sourced_key(const std::string& key, const std::string& doc, InputKey<GemmRecipe::Deployed>::Read read) {
    Json schema = object_schema(doc);
    schema["required"] = {"value", "source"};
    schema["properties"] = {{"value", {{"type", "number"}}}, {"source", {{"type", "string"}}}};
    return {key, schema, std::move(read)};
}

InputKeys<GemmRecipe> table_keys() {
    using R = GemmRecipe;
    using A = GemmAnchor;
    using D = GemmRecipe::Deployed;
    constexpr Range size{1, 1'000'000};
    static const std::vector<InputKey<A>> anchor_keys{
        field<&A::m>("M", "Rows of C.").plain_in(size), field<&A::n>("N", "Columns of C.").plain_in(size), field<&A::k>("K", "Depth.").plain_in(size),
        field<&A::rate>("TFLOPS", "Its rate.").plain_in({0.01, 1e6}), text_key<A>("source", &A::source, "Who published it.")};
    static const std::vector<InputKey<GemmTable>> more_keys{
        text_key<GemmTable>("file", &GemmTable::file, "CSV file in the folder of the public data."),
        text_key<GemmTable>("origin", &GemmTable::origin, "Who measured it, where it is published."),
        member_key<GemmTable>("rows", &GemmTable::filter, "Rows of the table that count.", row_keys())};
    static const std::vector<InputKey<D>> deployed_keys{
        sourced_key("compute_units", "Compute units of the device; the rate per unit is kept.", [](ConfigObject& from, const std::string& key, D& to) {
            to.units = from.sourced(key, {1, 100'000});
        }),
        sourced_key("launch_us", "Launch of the device, where the rows' has gaps between launches.", [](ConfigObject& from, const std::string& key, D& to) {
            to.launch = microseconds(from.sourced(key, {0.01, 1e4}));
            to.launch_source = from.raw(key).at("source");
        })};
    static const std::vector<InputKey<R>> keys{
        plain_field<&R::dtype>("dtype", dtype_names, "Number format of A and B."),
        text_key<R>("file", &R::file, "CSV file in the folder of the public data (it may be compressed), with columns M, N, K."),
        text_key<R>("origin", &R::origin, "Who measured it, where it is published, in which version."),
        text_key<R>("licence", &R::licence, "Licence of the table."),
        member_key<R>("rows", &R::filter, "Rows of the table that count.", row_keys()),
        prior_key(&R::hardware),
        name_key<R>("tiles_of_libraries", &R::tiles_of_libraries, "Macro-tiles of the fits of single libraries; default the prior's.").optional(),
        list_key<R>("more_tables", &R::more_tables, "Further tables of the same fit.", more_keys).optional(),
        list_key<R>("anchors", &R::anchors, "Published single measurements that are in no table; each weighs four rows.", anchor_keys).optional(),
        text_key<R>("library", &R::kernel_library, "Whose kernels these are; shown with prices.").optional(),
        name_key<R>("of_library", &R::of_library, "Name in gemm_libraries of the one library whose rows these are; the fit goes there and not into gemm.").optional(),
        text_key<R>("note", &R::note, "What whoever uses the fit must know.").optional(),
        field<&R::check_only>("check_only", "Not fitted: errors of the device's fit on it are printed.").optional(),
        member_key<R>("deployed", &R::deployed, "Where the rows are of a sibling of the device.", deployed_keys).optional()};
    return keys;
}

InputKeys<GemmDerivation> derivation_keys() {
    using D = GemmDerivation;
    using Q = GemmDerivation::Rates;
    static const std::vector<InputKey<Q>> rate_keys{
        field<&Q::here>("here", "Of this device and number format.").plain_in({1e-3, 1e6}), field<&Q::there>("there", "Of the source.").plain_in({1e-3, 1e6})};
    using S = GemmDerivation::Source;
    static const std::vector<InputKey<S>> from_keys{
        name_key<S>("device", &S::device, "Its device."), plain_field<&S::dtype>("dtype", dtype_names, "Number format of A and B.")};
    static const std::vector<InputKey<D>> keys{
        plain_field<&D::dtype>("dtype", dtype_names, "Number format of A and B."), member_key<D>("from", &D::from, "The source.", from_keys),
        member_key<D>("rates", &D::rates, "Compute rates; their quotient scales peak_TFLOPS. Default 1.", rate_keys).optional(),
        member_key<D>("memory_rates", &D::memory_rates, "Memory rates; their quotient scales hbm_GBps and unit_bandwidth_GBps. Default 1.", rate_keys).optional(),
        text_key<D>("reason", &D::reason, "Source of the rates."),
        name_key<D>("of_library", &D::of_library, "Name in gemm_libraries of the library whose kernels these are; default: the device's own.").optional(),
        text_key<D>("library", &D::kernel_library, "Whose kernels these are; shown with prices. Default: as the source.").optional(),
        text_key<D>("note", &D::note, "What the derived times were checked against.").optional()};
    return keys;
}

InputKeys<RecipeFile> recipe_keys() {
    using F = RecipeFile;
    using M = RecipeFile::Measured;
    static const std::vector<InputKey<M>> measured_keys{
        text_key<M>("machine", &M::machine, "What the driver calls the device."), prior_key(&M::hardware),
        field<&M::fp8_ratio>("fp8_ratio", "Rate of fp8 over that of bf16, a prior.").plain_in({0.1, 10})};
    static const std::vector<InputKey<F>> keys{
        version_key<F>("recipe"), name_key<F>("device", &F::device, "The device: this file's name."),
        list_key<F>("tables", &F::tables, "Public tables.", table_keys()).optional(),
        name_key<F>("default_library", &F::default_library, "The library of gemm_libraries that a run has unless it names another; default the mix of all.").optional(),
        list_key<F>("derived", &F::derived, "Number formats derived from others.", derivation_keys()).optional(),
        member_key<F>("measured", &F::measured, "Measurements of our own in traces/*/microbench.", measured_keys).optional(),
        InputKey<F>("kernels", kernel_recipe_schema(), [](ConfigObject& from, const std::string& key, F&) { from.raw(key); }).optional()};  // read_kernel_recipes
    return keys;
}
// clang-format on

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
    const ConfigFile config = read_config_file(path, "recipe");
    ConfigObject root = config.view();
    RecipeFile file = read_keys<RecipeFile>(root, recipe_keys());
    if (file.device != path.stem().string())
        root.fail("device", "is " + in_quotes(file.device) + ", expected this file's name, " +
                                in_quotes(path.stem().string()));
    if (!file.default_library.empty()) recipes.default_libraries[file.device] = file.default_library;
    const auto prior = [&](GemmHardware hardware, const std::string& tiles, const std::string& place) {
        hardware.tile_list = recipes.tiles.at(tiles, root, place);
        return gemm_prior(hardware);
    };
    for (std::size_t i = 0; i < file.tables.size(); ++i) {
        GemmRecipe& table = file.tables[i];
        const std::string place = "tables/" + std::to_string(i) + '/';
        table.device = file.device;
        table.prior = prior(table.hardware, table.hardware.tiles, place + "prior/tiles");
        if (const std::string& tiles = table.tiles_of_libraries; !tiles.empty())
            table.start_of_libraries = prior(table.hardware, tiles, place + "tiles_of_libraries");
        table.filter.dtype = table.dtype;
        for (GemmTable& more : table.more_tables) more.filter.dtype = table.dtype;
        recipes.tables.push_back(std::move(table));
    }
    for (GemmDerivation& derived : file.derived) {
        derived.device = file.device;
        recipes.derivations.push_back(std::move(derived));
    }
    if (RecipeFile::Measured& own = file.measured; !own.machine.empty()) {
        own.hardware.slow_sustained_clock = true;
        append(
            recipes.measured,
            measured_recipes(file.device, own.machine,
                             prior(own.hardware, own.hardware.tiles, "measured/prior/tiles"), own.fp8_ratio));
    }
}

/// A source before what is derived from it. Throws UserError for a circle.
std::vector<GemmDerivation> in_order(std::vector<GemmDerivation> derivations) {
    const auto same = [](const GemmDerivation& one, const GemmDerivation& of) {
        return one.of_library.empty() && one.device == of.from.device && one.dtype == of.from.dtype;
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

GemmMeasurement GemmAnchor::measurement(DType dtype) const {
    const GemmShape shape{m, n, k, dtype, false};
    return {shape, shape.flops() / rate, 4.0, {}};
}

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

Json recipe_schema() {
    return file_of_keys(
        "Recipe",
        "How the GEMMs of one device are calibrated: by tables, by derivation, or by measurements of our own.",
        recipe_keys());
}

}  // namespace overlap
