#include "models/calibration/recipes/gemm_recipes.hpp"
#include "models/calibration/recipes/kernel_recipes.hpp"

namespace overlap {
namespace {

Json choice_of_dtype() {
    return {{"description", "Number format of A and B."}, {"enum", dtype_names}};
}

Json with(Json object, const Json& required, const Json& properties) {
    object["required"] = required;
    object["properties"].update(properties);
    return object;
}

Json texts_schema(const std::string& what) {
    return list_schema(what, {{"type", "string"}, {"minLength", 1}});
}

Json number_schema(const std::string& what, double least, double most) {
    return {{"description", what}, {"type", "number"}, {"minimum", least}, {"maximum", most}};
}

Json rows_schema() {
    const Json libraries =
        with(object_schema("Kernel libraries that the table tells apart."), {"column", "texts", "names"},
             {{"column", text_schema("Column that says which.", 1)},
              {"texts", texts_schema("What stands there, one for each library.")},
              {"names", texts_schema("The libraries' names, as prices show them.")}});
    const Json campaigns =
        with(object_schema("Rows measured in campaigns of their own, each with a compute rate of its own."),
             {"column", "texts", "reason"},
             {{"column", text_schema("Column that says which.", 1)},
              {"texts",
               texts_schema("What stands there, one for each campaign; all other rows are the main one.")},
              {"reason", text_schema("How it shows in the table.", 1)}});
    return with(
        object_schema("Rows of the table that count."), Json::array(),
        {{"time_column", text_schema("Column of the time in microseconds; default us.", 1)},
         {"shape_columns", texts_schema("Columns of M, N and K; default these names.")},
         {"us_per_time", number_schema("Microseconds in one of that column; default 1.", 1e-3, 1e6)},
         {"units_column", text_schema("Column of the compute units that a mask left to the kernel.", 1)},
         {"median",
          {{"description", "Of rows of equal shapes the median counts; default the fastest."},
           {"type", "boolean"}}},
         {"campaign",
          {{"description", "All rows have the compute rate of this campaign; default the main one."},
           {"type", "integer"},
           {"minimum", 1},
           {"maximum", 9}}},
         {"weight", number_schema("Of each row in the fit; default 1.", 0.01, 100)},
         {"warm_below_MB",
          number_schema("Operands B of fewer MB stayed in a cache from one repetition to the next. Default: none did.", 0, 1e5)},
         {"shortest_us", number_schema("Shorter kernels are mostly launch; default 8.", 0, 1e6)},
         {"multiples_of",
          {{"description", "N and K must be multiples of it: other sizes use other kernels. Default 1."},
           {"type", "integer"},
           {"minimum", 1},
           {"maximum", 4096}}},
         {"where",
          map_schema("The only accepted text of each column.", {{"minLength", 1}}, {{"type", "string"}})},
         {"campaigns", campaigns},
         {"libraries", libraries}});
}

Json prior_schema() {
    Json prior = object_schema(
        "What the prior of a fit depends on. Everything else is the same for all devices "
        "(models/calibration/recipes/gemm_prior.cpp).");
    prior["required"] = {"source", "tiles"};
    prior["properties"] = {{"source", text_schema("Where these values are from.", 1)},
                           {"tiles", name_schema("A list of macro-tiles in tiles.json.")}};
    add_fields<GemmHardware>(prior, "");
    return prior;
}

Json anchors_schema() {
    const Json size{{"type", "integer"}, {"minimum", 1}, {"maximum", 1'000'000}};
    return list_schema("Published single measurements that are in no table; each weighs four rows.",
                       with(object_schema("One GEMM."), {"M", "N", "K", "TFLOPS", "source"},
                            {{"M", size},
                             {"N", size},
                             {"K", size},
                             {"TFLOPS", number_schema("Its rate.", 0.01, 1e6)},
                             {"source", text_schema("Who published it.", 1)}}));
}

Json deployed_schema() {
    const Json sourced{{"type", "object"},
                       {"additionalProperties", false},
                       {"required", {"value", "source"}},
                       {"properties", {{"value", {{"type", "number"}}}, {"source", {{"type", "string"}}}}}};
    Json schema = with(object_schema("Where the rows are of a sibling of the device."),
                       {"compute_units", "launch_us"}, {{"compute_units", sourced}, {"launch_us", sourced}});
    schema["properties"]["compute_units"]["description"] =
        "Compute units of the device; the rate per unit is kept.";
    schema["properties"]["launch_us"]["description"] =
        "Launch of the device, where the rows' has gaps between launches.";
    return schema;
}

Json table_schema() {
    return with(
        object_schema("A public table of GEMM times."),
        {"dtype", "file", "origin", "licence", "rows", "prior"},
        {{"dtype", choice_of_dtype()},
         {"file", text_schema("CSV file in the folder gemm of the public data, with columns M, N, K.", 1)},
         {"origin", text_schema("Who measured it, where it is published, in which version.", 1)},
         {"licence", text_schema("Licence of the table.", 1)},
         {"rows", rows_schema()},
         {"prior", prior_schema()},
         {"tiles_of_libraries",
          name_schema("Macro-tiles of the fits of single libraries; default the prior's.")},
         {"more_tables",
          list_schema("Further tables of the same fit.",
                      with(object_schema("A table."), {"file", "origin", "rows"},
                           {{"file", text_schema("CSV file in the folder of the public data.", 1)},
                            {"origin", text_schema("Who measured it, where it is published.", 1)},
                            {"rows", rows_schema()}}))},
         {"anchors", anchors_schema()},
         {"library", text_schema("Whose kernels these are; shown with prices.", 1)},
         {"of_library",
          name_schema("Name in gemm_libraries of the one library whose rows these are; the fit goes there "
                      "and not into gemm.")},
         {"note", text_schema("What whoever uses the fit must know.", 1)},
         {"check_only",
          {{"description", "Not fitted: errors of the device's fit on it are printed."},
           {"type", "boolean"}}},
         {"deployed", deployed_schema()}});
}

Json derivation_schema() {
    const auto quotient = [](const std::string& what) {
        return with(object_schema(what), {"here", "there"},
                    {{"here", number_schema("Of this device and number format.", 1e-3, 1e6)},
                     {"there", number_schema("Of the source.", 1e-3, 1e6)}});
    };
    return with(
        object_schema("A number format without a usable table."), {"dtype", "from", "reason"},
        {{"dtype", choice_of_dtype()},
         {"from", with(object_schema("The source."), {"device", "dtype"},
                       {{"device", name_schema("Its device.")}, {"dtype", choice_of_dtype()}})},
         {"rates", quotient("Compute rates; their quotient scales peak_TFLOPS. Default 1.")},
         {"memory_rates", quotient("Memory rates; their quotient scales hbm_GBps and unit_bandwidth_GBps. "
                                   "Default 1.")},
         {"reason", text_schema("Source of the rates.", 1)},
         {"of_library",
          name_schema(
              "Name in gemm_libraries of the library whose kernels these are; default: the device's own.")},
         {"library", text_schema("Whose kernels these are; shown with prices. Default: as the source.", 1)},
         {"note", text_schema("What the derived times were checked against.", 1)}});
}

}  // namespace

Json recipe_schema() {
    Json schema = file_schema("Recipe",
                              "How the GEMMs of one device are calibrated: by tables, by derivation, or by "
                              "measurements of our own.");
    schema["required"] = {"schema", "device"};
    schema["properties"]["device"] = name_schema("The device: this file's name.");
    schema["properties"]["tables"] = list_schema("Public tables.", table_schema());
    schema["properties"]["default_library"] = name_schema(
        "The library of gemm_libraries that a run has unless it names another; default the mix of all.");
    schema["properties"]["derived"] = list_schema("Number formats derived from others.", derivation_schema());
    schema["properties"]["measured"] = with(
        object_schema("Measurements of our own in traces/*/microbench."), {"machine", "prior", "fp8_ratio"},
        {{"machine", text_schema("What the driver calls the device.", 1)},
         {"prior", prior_schema()},
         {"fp8_ratio", number_schema("Rate of fp8 over that of bf16, a prior.", 0.1, 10)}});
    schema["properties"]["kernels"] = kernel_recipe_schema();
    return schema;
}

}  // namespace overlap
