#include <spdlog/spdlog.h>
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <sstream>

#include "models/cost_model_registry.hpp"
#include "models/gemm_model.hpp"
#include "models/library_kernel.hpp"
#include "sim/calibrate/measurements/kernel_rows.hpp"
#include "sim/commands/commands.hpp"
#include "sim/commands/scenario_flags.hpp"
#include "sim/confidence/makespan_error.hpp"
#include "sim/core/csv_table.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/report/run/report.hpp"
#include "sim/topology/device_copy_kernel.hpp"
#include "sim/topology/device_dma.hpp"

namespace overlap {
namespace {

struct CostFlags {
    std::string device, topology, gemm, dtype = "bf16", copy, agent = "dma", transfer, from, format = "text";
    std::vector<std::string> cost_models, what_if;
    int cus = 0;
    bool accumulate = false;
};

/// The requested topology, or the one that stands for the device.
std::string topology_for(const CostFlags& flags, const ConfigFolder& folder) {
    if (!flags.topology.empty()) return flags.topology;
    if (flags.device.empty()) throw UserError("command line: --device or --topology is needed");
    return folder.topology_of(flags.device);
}

DType dtype_named(const std::string& name, const std::string& where) {
    return static_cast<DType>(known_place(name, dtype_names, where + ": dtype is " + in_quotes(name)));
}

Task copy_task(const CostFlags& flags, const Machine& machine) {
    if (machine.topology.gpus() < 2) throw UserError("command line: --copy needs a topology with two GPUs");
    const Bytes bytes = parse_size(flags.copy, "command line: --copy");
    CopyWork copy{0, 1, bytes, bytes, Agent::dma, Direction::pull, 0};
    if (flags.agent == "cu") {
        copy.agent = Agent::cu;
        copy.direction = Direction::push;
        const DeviceSpec& device = machine.topology.device();
        copy.cus = flags.cus > 0 ? flags.cus : device.copy_kernel->default_cus;
        if (copy.cus >= device.compute_units)
            throw UserError("command line: --cus is " + std::to_string(copy.cus) + ", but " + device.name +
                            " has " + std::to_string(static_cast<int>(device.compute_units)) +
                            " (allowed: less)");
    } else if (flags.cus > 0) {
        throw UserError("command line: --cus needs --agent cu (DMA engines take no compute units)");
    }
    if (!flags.transfer.empty())
        copy.direction = flags.transfer == "pull" ? Direction::pull : Direction::push;
    return {copy, copy.direction == Direction::pull ? 1 : 0, transfer_stream(1)};
}

Json described(const Task& task, const Machine& machine, const CostModels& models) {
    const Cost cost = models.cost(task, machine);
    Json phases = Json::object();
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (task.by_dma()) {
        const Seconds command = machine.topology.device().dma->phases.command;
        phases["command_us"] = to_microseconds(command);
        phases["schedule_us"] = to_microseconds(cost.launch.time - command);
    } else {
        phases["launch_us"] = to_microseconds(cost.launch.time);
    }
    if (copy != nullptr) phases["start_us"] = to_microseconds(cost.setup);
    const Seconds body = isolated_body(cost, machine.resources);
    phases["body_us"] = to_microseconds(body);
    if (copy != nullptr)
        phases["completion_us"] =
            to_microseconds(isolated_time(cost, machine.resources) - cost.launch.time - cost.setup - body);

    Json json{{"device", machine.topology.device().name},
              {"time_us", to_microseconds(isolated_time(cost, machine.resources))},
              {"phases", phases}};
    if (const auto* shape = std::get_if<GemmShape>(&task.work)) {
        json["TFLOPS"] = to_teraflops(shape->flops() / body);
        const GemmEstimate gemm = estimate_gemm(*shape, machine.calibration.gemm_for(shape->dtype));
        json["gemm"] = {{"tile", std::to_string(gemm.tile_m) + "x" + std::to_string(gemm.tile_n)},
                        {"split_k", gemm.split_k},
                        {"waves", gemm.waves},
                        {"hbm_MB", gemm.hbm_traffic.si() * 1e-6}};
    } else {
        json["GBps"] = to_gigabytes_per_second(copy->bytes / isolated_time(cost, machine.resources));
    }
    return json;
}

std::string text_of(const Json& json) {
    std::ostringstream out;
    const auto line = [&](const std::string& name, const Json& value) {
        out << "  " << std::left << std::setw(16) << name;
        if (value.is_number_float())
            out << std::setprecision(5) << value.get<double>();
        else
            out << unquoted(value);
        out << '\n';
    };
    for (const auto& item : json.items()) {
        if (item.key() == "notes" || item.key() == "what_if") continue;
        if (item.value().is_object()) {
            out << "  " << item.key() << '\n';
            for (const auto& part : item.value().items()) line("  " + part.key(), part.value());
        } else
            line(item.key(), item.value());
    }
    return out.str();
}

/// How sure the price of one task is.
PricedPart confidence_in(const Task& task, const Machine& machine, const CostFlags& flags) {
    TaskGraph graph;
    graph.add(task, {});
    return priced_parts({graph, machine, flags.cost_models}).front();
}

void print_cost(Json json, const PricedPart& price, const std::string& format) {
    json["confidence"] = format == "json" ? to_json(price) : Json(text_of(price));
    if (format == "csv")
        throw UserError("command line: --format csv goes with --from (allowed here: text, json)");
    if (format == "json") return print(json_text(json) + "\n");
    std::string text = text_of(json);
    const Remarks remarks{json.value("notes", std::vector<std::string>()),
                          json.value("what_if", Json::object())};
    for (const std::string& line : lines_of(remarks)) text += line + "\n";
    print(text);
}

// Kernel time alone, as in profilers and GEMM tables: without the launch gap.
double kernel_us(const Work& work, const Machine& machine, const CostModels& models) {
    const Cost cost = models.cost(Task{work}, machine);
    return to_microseconds(isolated_time(cost, machine.resources) - cost.launch.time);
}

struct KernelPrice {
    double us;
    Evidence evidence;
    std::string library;
};

/// A fused MoE layer of a device without a fit: its grouped GEMMs, and bytes of sort, activation and sum.
double derived_moe_us(const MoeShape& moe, const ExpertRows& rows, const Machine& machine,
                      const CostModels& models) {
    const ExpertLoad& load = moe.load;
    const double parts = moe.gated ? 2 : 1;
    GemmShape up{std::max<std::int64_t>(std::llround(load.tokens * static_cast<double>(load.choices) /
                                                     static_cast<double>(load.ranks)),
                                        1),
                 std::llround(parts * moe.inter), std::llround(moe.hidden),
                 moe.format.starts_with("fp8")   ? DType::fp8
                 : moe.format.starts_with("fp4") ? DType::fp4
                                                 : DType::bf16};
    up.groups = static_cast<std::int32_t>(load.experts / load.ranks);
    up.group_ranks = static_cast<std::int32_t>(load.ranks);
    up.group_choices = static_cast<std::int32_t>(load.choices);
    up.imbalance = load.imbalance;
    GemmShape down = up;
    down.n = up.k;
    down.k = std::llround(moe.inter);
    const MemoryBoundWork moved{Bytes(2 * rows.rows * (moe.hidden + parts * moe.inter)),
                                Bytes(2 * rows.rows * (moe.hidden + moe.inter))};
    double us = 0;
    for (const Work& work : {Work(up), Work(down), Work(moved)}) us += kernel_us(work, machine, models);
    return us;
}

/// Kernel time of a row of attention, of grouped GEMMs or of a fused MoE layer.
KernelPrice kernel_price(const KernelRow& row, const Machine& machine, const CostModels& models) {
    // Without a fit attention is a roofline, and an MoE kernel is made of the device's GEMMs.
    const KernelCalibration& fits = machine.calibration.kernels;
    const auto price = [&](double us, KernelTableKind kind, const std::string& fit, Basis otherwise) {
        const std::string key = kernel_groups[kernel_group_of(kind)] + "/" + fit;
        const Evidence* known = value_at(evidence_of(machine).kernels, key);
        return KernelPrice{us, known ? *known : Evidence{.basis = otherwise}, fits.library_of(key)};
    };
    if (const auto* call = std::get_if<ExchangeCall>(&row.work)) {
        const ExchangeParameters& fit = exchange_parameters(call->exchange, machine);
        KernelPrice all = price(to_microseconds(estimate_exchange(call->exchange, call->group, fit)),
                                KernelTableKind::exchange, row.format, Basis::estimate);
        if (call->group.nodes > 2) all.evidence = {};  // more than the tables have
        return all;
    }
    if (const auto* call = std::get_if<AttentionCall>(&row.work))
        return price(kernel_us(attention_work(*call), machine, models),
                     call->kind == AttentionKind::decode ? KernelTableKind::decode : KernelTableKind::prefill,
                     attention_fit(fits, *call), Basis::estimate);
    if (const auto* gemm = std::get_if<GemmShape>(&row.work))
        return price(kernel_us(*gemm, machine, models), KernelTableKind::grouped,
                     grouped_fit(fits, gemm->dtype), Basis::derived);
    const auto& moe = std::get<MoeShape>(row.work);
    const auto* fit = find_fit(fits.moe, row.format);
    return price(fit ? to_microseconds(estimate_moe(moe, row.rows, *fit))
                     : derived_moe_us(moe, row.rows, machine, models),
                 KernelTableKind::moe, row.format, Basis::derived);
}

/// A table with the columns `added`.
struct PricedTable {
    std::vector<std::string> added;
    std::vector<Json> rows;  ///< an object of all columns for each row
};

void print_priced(const CostFlags& flags, const CsvTable& table, PricedTable priced, const Remarks& remarks) {
    if (!remarks.what_if.empty()) {
        priced.added.emplace_back("what_if");
        for (Json& row : priced.rows) row["what_if"] = remarks.what_if;
    }
    if (flags.format == "json") return print(json_text(priced.rows) + "\n");
    const auto cells = [&](const Json& row) {
        return mapped(priced.added, [&](const std::string& column) { return csv_cell(row.at(column)); });
    };
    print(table.with_columns(priced.added, mapped(priced.rows, cells)));
}

/// How sure a price is, for the columns that a table gets.
void add_confidence(const PricedPart& price, Json& entry) {
    const Json sure = to_json(price);
    for (const std::string key : {"basis", "error_pct"}) entry[key] = sure[key];
}

PricedTable priced_kernels(const CsvTable& table, KernelTableKind kind, const Machine& machine,
                           const CostModels& models) {
    PricedTable priced{{"predicted_us", "library", "basis", "error_pct"}, {}};
    KernelRowReader reader;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Json& entry = priced.rows.emplace_back(table.row_as_json(row));
        const KernelPrice price = kernel_price(reader.read(table, row, kind), machine, models);
        entry["predicted_us"] = price.us;
        add_confidence({"", price.evidence, price.library}, entry);
        entry["library"] = or_null(price.library);
    }
    return priced;
}

/// All-to-alls by DeepEP, on the device of each row where the table names it. `machine_of`: of a device, or "".
template <class MachineOf>
PricedTable priced_exchanges(const CsvTable& table, const CostModels& models, const MachineOf& machine_of) {
    PricedTable priced{{"dispatch_us", "combine_us", "basis", "error_pct"}, {}};
    if (table.has("dispatch_us")) throw UserError(table.where(0) + ": the table has dispatch_us already");
    KernelRowReader reader;
    std::map<std::string, Machine> machines;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Json& entry = priced.rows.emplace_back(table.row_as_json(row));
        const std::string device = table.has("device") ? table.cell(row, "device") : "";
        try {
            if (!machines.contains(device)) machines.emplace(device, machine_of(device));
        } catch (const UserError& error) {
            throw UserError(table.where(row) + ": " + error.what());
        }
        KernelRow read = reader.read(table, row, KernelTableKind::exchange);
        ExpertExchange& exchange = std::get<ExchangeCall>(read.work).exchange;
        Evidence weaker;
        for (const ExchangePhase phase : {ExchangePhase::dispatch, ExchangePhase::combine}) {
            exchange.phase = phase;
            exchange.dtype = phase == ExchangePhase::dispatch ? DType::fp8 : DType::bf16;
            read.format = exchange_kernel(exchange);
            const KernelPrice price = kernel_price(read, machines.at(device), models);
            entry[exchange_phase_names[static_cast<std::size_t>(phase)] + "_us"] = price.us;
            if (price.evidence.error >= weaker.error) weaker = price.evidence;
        }
        add_confidence({"", weaker}, entry);
    }
    return priced;
}

PricedTable priced_gemms(const CsvTable& table, const CostFlags& flags, const Machine& machine,
                         const CostModels& models) {
    for (const char* column : {"m", "n", "k", "dtype"}) table.require(column);
    PricedTable priced{{"predicted_us", "gemm_library", "basis", "error_pct"}, {}};
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Json& entry = priced.rows.emplace_back(table.row_as_json(row));
        GemmShape shape{table.integer(row, "m"), table.integer(row, "n"), table.integer(row, "k"),
                        dtype_named(table.cell(row, "dtype"), table.where(row))};
        const std::string accumulate = table.has("accumulate") ? table.cell(row, "accumulate") : "0";
        if (accumulate != "0" && accumulate != "1")
            throw UserError(table.where(row) + ": accumulate is '" + accumulate + "', expected 0 or 1");
        shape.accumulate = accumulate == "1";
        const PricedPart price = confidence_in(Task{shape, 0, compute_stream}, machine, flags);
        entry["predicted_us"] = kernel_us(shape, machine, models);
        entry["gemm_library"] = to_json(price)["library"];
        add_confidence(price, entry);
    }
    return priced;
}

/// The task that is asked for.
Task task_of(const CostFlags& flags, const Machine& machine) {
    if (!flags.copy.empty()) return copy_task(flags, machine);
    GemmShape shape = parse_shape(flags.gemm, "command line: --gemm");
    shape.dtype = dtype_named(flags.dtype, "command line");
    shape.accumulate = flags.accumulate;
    return {shape, 0, compute_stream};
}

void execute(const CostFlags& flags) {
    const ConfigFolder folder = ConfigFolder::standard();
    const int asked = !flags.gemm.empty() + !flags.copy.empty() + !flags.from.empty();
    if (asked != 1) throw UserError("command line: give one of --gemm MxNxK, --copy SIZE and --from FILE");
    Remarks remarks;
    assign_what_ifs(remarks.what_if, flags.what_if);
    const auto machine_of = [&](const Json& what_if, const std::string& device) {
        return folder.machine(device.empty() ? topology_for(flags, folder) : folder.topology_of(device),
                              WhatIf(what_if, "command line"));
    };
    const CostModels models(flags.cost_models);
    // `times` with a what-if are what this command prints.
    const auto note_no_effects = [&](const std::string& place, const auto& times) {
        for (const auto& [key, value] : remarks.what_if.items()) {
            Json others = remarks.what_if;
            others.erase(key);
            if (times(others) != times(remarks.what_if)) continue;
            remarks.notes.push_back(no_effect_note(key, value, place));
            spdlog::warn("{}", remarks.notes.back());
        }
    };
    if (!flags.from.empty()) {
        const CsvTable table = read_csv_table(flags.from);
        const auto priced = [&](const Json& what_if) {
            const auto kind = kernel_table_of(table);
            if (kind == KernelTableKind::exchange)
                return priced_exchanges(
                    table, models, [&](const std::string& device) { return machine_of(what_if, device); });
            const Machine on = machine_of(what_if, "");
            return kind ? priced_kernels(table, *kind, on, models) : priced_gemms(table, flags, on, models);
        };
        note_no_effects("these times", [&](const Json& what_if) {
            return mapped(priced(what_if).rows, [](const Json& row) {
                return row.contains("predicted_us") ? row["predicted_us"]
                                                    : Json{row["dispatch_us"], row["combine_us"]};
            });
        });
        return print_priced(flags, table, priced(remarks.what_if), remarks);
    }
    const Machine machine = machine_of(remarks.what_if, "");
    const Task task = task_of(flags, machine);
    note_no_effects("this time", [&](const Json& what_if) {
        const Machine on = machine_of(what_if, "");
        return isolated_time(models.cost(task, on), on.resources);
    });
    const PricedPart price = confidence_in(task, machine, flags);
    Json json = described(task, machine, models);
    if (flags.copy.empty()) json["gemm_library"] = to_json(price)["library"];
    if (!remarks.what_if.empty()) add_remarks(remarks, json);
    print_cost(std::move(json), price, flags.format);
}

}  // namespace

void add_cost_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("cost", "Print the time of one GEMM or copy alone, or of every row of a CSV");
    auto flags = std::make_shared<CostFlags>();
    command->add_option("--device", flags->device, "Device: a name in configs/devices");
    command->add_option(
        "--topology", flags->topology,
        "Machine instead of DEVICE_8, or of the largest with that device; a copy goes from GPU 0 to 1");
    command->add_option("--gemm", flags->gemm, "MxNxK");
    CLI::Option* dtype = command->add_option("--dtype", flags->dtype, "Data type of --gemm; default bf16");
    CLI::Option* accumulate =
        command->add_flag("--accumulate", flags->accumulate, "--gemm also reads C (beta = 1)");
    CLI::Option* copy =
        command
            ->add_option("--copy", flags->copy, "Size of a copy between two GPUs: 4096, 64KB, 64MB, 1GiB ...")
            ->excludes(dtype, accumulate);
    command->add_option("--agent", flags->agent, "Who copies: dma or cu")
        ->check(CLI::IsMember({"dma", "cu"}))
        ->needs(copy);
    command->add_option("--cus", flags->cus, "Compute units of a copy by cu; default the device's")
        ->check(CLI::Range(1, 100'000))
        ->needs(copy);
    command->add_option("--transfer", flags->transfer, "pull or push")
        ->check(CLI::IsMember({"pull", "push"}))
        ->needs(copy);
    command
        ->add_option(
            "--from", flags->from,
            "CSV with columns m,n,k,dtype (and accumulate: 0 or 1); or those of prefill attention "
            "(dtype,kv_dtype,batch,tokens,heads,kv_heads,head_dim), decode (context instead of tokens, no "
            "dtype), fused MoE (kernel,dtype,tokens,hidden,inter,topk,experts,tp,ep,distribution), grouped "
            "GEMMs (dtype,groups,M_per_group,N,K) or all-to-alls by DeepEP (nodes,hidden,top_k,experts,tokens; sms of "
            "its normal kernels; device instead of --device)")
        ->excludes(dtype, accumulate);
    command->add_option("--format", flags->format, "text, json or csv")
        ->check(CLI::IsMember({"text", "json", "csv"}));
    add_what_if_flag(*command, flags->what_if);
    command->add_option("--cost-model", flags->cost_models, "Cost model instead of the default; repeatable")
        ->take_all();
    command->callback([flags] { execute(*flags); });
}

}  // namespace overlap
