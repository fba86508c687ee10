#include "sim/core/output_keys.hpp"
#include "sim/report/run/report.hpp"

namespace overlap {
namespace {

using ResultKey = OutputKey<RunResult>;
using Keys = std::span<const ResultKey>;

/// The time at the end of a path of members.
template <auto... Path>
ResultKey time_us(const std::string& key, const std::string& doc) {
    return {key, number_from(0, doc), [](const RunResult& r) { return to_microseconds((r.*....*Path)); }};
}
ResultKey loss(const std::string& key, Seconds Losses::*member, const std::string& doc) {
    return {key, any_number(doc), [=](const RunResult& r) { return to_microseconds(r.losses.*member); }};
}
ResultKey use(const std::string& key, double Utilisation::*member, const std::string& doc) {
    return {key, number_from(0, doc), [=](const RunResult& r) { return r.used.utilisation.*member; }};
}
ResultKey joules(const std::string& key, Joules Energy::*member, const std::string& doc) {
    return {key, any_number(doc), [=](const RunResult& r) { return (r.used.energy.value().*member).si(); }};
}

/// Null where `has` is false.
ResultKey null_unless(bool (*has)(const RunResult&), ResultKey key) {
    key.schema = or_null(key.schema);
    key.value = [=, inner = key.value](const RunResult& r) { return has(r) ? inner(r) : Json(nullptr); };
    return key;
}

bool is_steady(const RunResult& r) {
    return r.steady.has_value();
}

// clang-format off
Keys loss_keys() {
    static const std::vector<ResultKey> keys{
        loss("decomposition", &Losses::decomposition, "Parts of a GEMM slower than the whole."),
        loss("contention", &Losses::contention, "Tasks that slow each other."),
        loss("fill_drain", &Losses::fill_drain, "Waiting for first or last pieces."),
        loss("launch", &Losses::launch, "Launches, DMA commands, completions."),
        loss("packing", &Losses::packing, "Local copies."),
        loss("pattern", &Losses::pattern, "Links idle between transfers."),
        loss("host", &Losses::host, "Only with a host: GPUs wait for their hosts' calls.").only_if([](const RunResult& r) { return r.config.contains("host"); }),
        loss("power", &Losses::power, "Only of a steady state: GEMMs at the clock that the power limit leaves.").only_if(is_steady)};
    return keys;
}

Keys use_keys() {
    static const std::vector<ResultKey> keys{
        use("cu", &Utilisation::cu, "Compute units."), use("hbm", &Utilisation::hbm, "Memory bandwidth."),
        use("link", &Utilisation::link, "Links between GPUs."), use("dma", &Utilisation::dma, "DMA engines.")};
    return keys;
}

Keys energy_keys() {
    static const std::vector<ResultKey> keys{
        {"total", any_number("Sum of the others."), [](const RunResult& r) { return r.used.energy.value().total().si(); }},
        joules("idle", &Energy::idle, "Of GPUs that do nothing."),
        joules("active", &Energy::active, "More, while anything runs."),
        joules("compute", &Energy::compute, "Of GEMMs' operations."),
        joules("hbm", &Energy::hbm, "Of bytes read and written."),
        joules("links", &Energy::links, "Of bytes between GPUs."),
        joules("copy_kernels", &Energy::copy_kernels, "More of those that kernels move."),
        joules("power_limit", &Energy::power_limit, "What the lower clock at the board's limit saves.")};
    return keys;
}

Keys steady_keys() {
    static const std::vector<ResultKey> keys{
        {"gemm_speed", {{"description", "Speed of the arithmetic of GEMMs, of that on a cool GPU."}, {"type", "number"}, {"minimum", 0}, {"maximum", 1}},
            [](const RunResult& r) { return r.steady.value().gemm_speed; }},
        {"power_W", number_from(0, "Mean power of a GPU over one iteration."), [](const RunResult& r) { return r.steady.value().power.si(); }}};
    return keys;
}

Keys result_keys() {
    using R = RunResult;
    static const std::vector<ResultKey> keys{
        {"schema", {{"description", "Version of this format."}, {"const", 1}}, [](const RunResult&) { return 1; }},
        {"config", {{"description", "The run config, every default filled in (run.schema.json)."}, {"type", "object"}}, [](const RunResult& r) { return r.config; }},
        time_us<&R::makespan>("makespan_us", "From the release of all GPUs to the end of the last; median over seeds."),
        time_us<&R::range, &SeedRange::p10>("makespan_p10_us", "First decile over seeds."),
        time_us<&R::range, &SeedRange::p90>("makespan_p90_us", "Last decile over seeds."),
        {"seeds", whole_from(1, "Simulations with orders that the machine leaves unspecified."), [](const RunResult& r) { return r.simulation.seeds; }},
        time_us<&R::phases, &Phases::serial>("serial_us", "Makespan of the serial schedule with this schedule's transfers."),
        time_us<&R::baseline, &BaselineResult::time>("baseline_us", "The fastest execution without overlap: serial by DMA, by copy kernels, or by the vendor's library."),
        {"baseline", text_schema("Which one that is.", 1), [](const RunResult& r) { return r.baseline.name; }},
        time_us<&R::phases, &Phases::gemm>("gemm_us", "The whole GEMM alone."),
        time_us<&R::phases, &Phases::comm>("comm_us", "This schedule's transfers alone; where orders are drawn, in that of the median makespan."),
        time_us<&R::ideal>("ideal_us", "No schedule of these parts is faster: the longest of computation, transfers and, in a list, the chain of operators that need each other, without latencies and contention."),
        {"speedup", number_from(0, "baseline_us / makespan_us."), [](const RunResult& r) { return r.baseline.speedup; }},
        {"overlap_efficiency", or_null(any_number("Share of the ideal gain over the baseline; null where there is none to gain.")),
            [](const RunResult& r) { return or_null(r.baseline.overlap_efficiency); }},
        time_us<&R::phases, &Phases::exposed_comm>("exposed_comm_us", "Time of transfers and reductions while the GPU computes nothing, of the GPU with most of it."),
        group_of("losses_us", "What makespan - ideal is made of.", loss_keys()),
        group_of("utilisation", "Mean share of each kind of resource that is in use.", use_keys()),
        {"own_kernel", flag_schema("Whether the schedule needs a kernel of one's own: its GEMM polls or sets flags, or stores at peers, and no vendor's library has one."), [](const RunResult& r) { return r.own_kernel; }},
        {"comm_cus", number_from(0, "Compute units that communication holds on a GPU."), [](const RunResult& r) { return r.used.comm_cus; }},
        {"staging_bytes", number_from(0, "Memory for stages on a GPU."), [](const RunResult& r) { return r.used.staging.si(); }},
        null_unless([](const RunResult& r) { return r.used.energy.has_value(); }, group_of("energy_J", "Energy of all GPUs; null where the device's constants are not measured.", energy_keys())),
        group_of("steady", "Only of a steady state.", steady_keys()).only_if(is_steady),
        {"gemm_library", or_null({{"description", "Whose kernels the prices of GEMMs were fitted to; null where the calibration does not say."}, {"type", "string"}}),
            [](const RunResult& r) { return or_null(r.confidence.gemm_library()); }},
        {"confidence", confidence_schema(), [](const RunResult& r) { return to_json(r.confidence); }},
        {"tasks", whole_from(1, "Of the graph."), [](const RunResult& r) { return r.simulation.tasks; }},
        {"engine", text_schema("Engine that ran it.", 1), [](const RunResult& r) { return r.simulation.engine; }},
        {"simulated_gpus", whole_from(1, "GPUs that were simulated; each other one is like one of them (sim/quotient)."), [](const RunResult& r) { return r.simulation.simulated_gpus; }},
        {"wall_ms", number_from(0, "Time in the engine."), [](const RunResult& r) { return r.simulation.wall_ms; }}};
    return keys;
}

std::span<const OutputKey<Remarks>> remark_keys() {
    static const std::vector<OutputKey<Remarks>> keys{
        {"notes", {{"description", "What a reader should know about what-ifs of this run, a sentence each."}, {"type", "array"}, {"items", {{"type", "string"}}}},
            [](const Remarks& remarks) { return remarks.notes; }, false}};
    return keys;
}
// clang-format on

}  // namespace

Json to_json(const RunResult& result) {
    return written(result, result_keys());
}

Json to_json(const RunResult& result, const Remarks& remarks) {
    Json json = to_json(result);
    json.update(written(remarks, remark_keys()));
    return json;
}

Json result_schema() {
    Json schema = file_schema("Result",
                              "What 'sim --format json' prints, and 'sim batch' a line: a run, and the same "
                              "graph without each effect.");
    schema["required"] = schema["properties"] = Json();
    add_keys(schema, result_keys());
    add_keys(schema, remark_keys());
    return schema;
}

}  // namespace overlap
