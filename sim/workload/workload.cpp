#include "sim/workload/workload.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr std::int64_t largest_dimension = 1'000'000'000;
constexpr Range bytes_range{1.0, 1e15};

GemmShape read_gemm(ConfigObject& config) {
    GemmShape shape;
    shape.m = config.integer("m", 1, largest_dimension);
    shape.n = config.integer("n", 1, largest_dimension);
    shape.k = config.integer("k", 1, largest_dimension);
    shape.dtype = static_cast<DType>(config.choice("dtype", dtype_names));
    return shape;
}

Order default_order(CollectiveKind kind) {
    const bool first = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
    return first ? Order::collective_first : Order::gemm_first;
}

Pair read_pair(ConfigObject& config) {
    Pair pair;
    pair.collective = static_cast<CollectiveKind>(config.choice("collective", collective_names));
    ConfigObject gemm = config.object("gemm");
    pair.gemm = read_gemm(gemm);
    gemm.finish();
    pair.order = config.has("order") ? static_cast<Order>(config.choice("order", order_names))
                                     : default_order(pair.collective);
    if (config.has("shard_dim"))
        pair.shard_dim = static_cast<ShardDim>(config.choice("shard_dim", shard_dim_names));
    const bool reduces =
        pair.collective == CollectiveKind::reduce_scatter || pair.collective == CollectiveKind::all_reduce;
    if (reduces && pair.order == Order::collective_first)
        config.fail("order", "is 'collective_first', but " + name_of(pair.collective) +
                                 " takes what the GEMM produces (allowed: gemm_first, independent)");
    if (pair.shard_dim == ShardDim::k &&
        (pair.collective != CollectiveKind::all_gather || pair.order != Order::collective_first))
        config.fail("shard_dim", "is 'k', which only all_gather before a GEMM has (allowed here: m)");
    return pair;
}

/// Index of each operator read so far, by name.
using Places = std::unordered_map<std::string, std::size_t>;

[[noreturn]] void fail_as_unknown(const ConfigObject& config, const std::string& need,
                                  const std::vector<Operator>& earlier) {
    std::vector<std::string> names;
    for (const Operator& other : earlier) names.push_back(other.name);
    config.fail("needs",
                "names " + in_quotes(need) + ", which no earlier operator has" + suggestion(need, names));
}

Operator read_operator(ConfigObject config, const std::vector<Operator>& earlier, Places& places) {
    static const std::vector<std::string> types{"gemm", "collective", "memory_bound", "reduction"};
    Operator op;
    op.name = config.text("name");
    if (places.contains(op.name)) config.fail("name", "is '" + op.name + "', which an earlier operator has");
    switch (config.choice("type", types)) {
        case 0:
            op.work = read_gemm(config);
            if (config.has("batch"))
                std::get<GemmShape>(op.work).batch = config.integer("batch", 1, largest_dimension);
            break;
        case 1: {
            CollectiveWork work;
            work.kind = static_cast<CollectiveKind>(config.choice("collective", collective_names));
            work.operand = Bytes(config.number("bytes", bytes_range));
            if (config.has("dtype")) work.dtype = static_cast<DType>(config.choice("dtype", dtype_names));
            op.work = work;
            break;
        }
        case 2:
            op.work = StreamingWork{Bytes(config.number("read_bytes", {0, 1e15})),
                                    Bytes(config.number("write_bytes", {0, 1e15}))};
            break;
        default:
            op.work = ReductionWork{Bytes(config.number("bytes", bytes_range)),
                                    static_cast<int>(config.integer("parts", 2, 65536))};
    }
    if (config.has("needs")) {
        for (const std::string& need : config.texts("needs")) {
            const auto found = places.find(need);
            if (found == places.end()) fail_as_unknown(config, need, earlier);
            op.needs.push_back(found->second);
        }
    }
    config.finish();
    places.emplace(op.name, earlier.size());
    return op;
}

}  // namespace

bool Pair::sends_c() const {
    return order == Order::gemm_first || collective == CollectiveKind::reduce_scatter ||
           collective == CollectiveKind::all_reduce;
}

DType Pair::operand_type() const {
    return sends_c() ? output_type(gemm.dtype) : gemm.dtype;
}

Bytes Pair::operand(int ranks) const {
    const std::int64_t rows = gathers_results() ? ranks * gemm.m : gemm.m;
    return matrix_size(rows, sends_c() ? gemm.n : gemm.k, operand_type());
}

std::string Workload::form() const {
    const Pair* both = pair();
    if (both == nullptr) return "operators";
    const std::string& collective = name_of(both->collective);
    switch (both->order) {
        case Order::collective_first:
            return collective + " > gemm";
        case Order::gemm_first:
            return "gemm > " + collective;
        case Order::independent:
            return "gemm | " + collective;
    }
    return {};
}

Workload read_workload(ConfigObject config) {
    Workload workload;
    if (config.has("schema")) config.integer("schema", 1, 1);
    if (config.has("source")) config.text("source");
    workload.name = config.has("name") ? config.text("name") : "custom";
    if (config.has("description")) workload.description = config.text("description");
    if (config.has("operators")) {
        std::vector<Operator> operators;
        Places places;
        for (ConfigObject& entry : config.objects("operators"))
            operators.push_back(read_operator(entry, operators, places));
        if (operators.empty()) config.fail("operators", "is empty, expected at least one operator");
        workload.content = std::move(operators);
    } else {
        workload.content = read_pair(config);
    }
    config.finish();
    return workload;
}

Json to_json(const Workload& workload) {
    Json json{{"name", workload.name}};
    const auto put_gemm = [](Json& into, const GemmShape& shape) {
        into["m"] = shape.m;
        into["n"] = shape.n;
        into["k"] = shape.k;
        into["dtype"] = name_of(shape.dtype);
    };
    if (const Pair* pair = workload.pair()) {
        json["collective"] = name_of(pair->collective);
        json["order"] = order_names[static_cast<std::size_t>(pair->order)];
        json["shard_dim"] = shard_dim_names[static_cast<std::size_t>(pair->shard_dim)];
        put_gemm(json["gemm"], pair->gemm);
        return json;
    }
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    for (const Operator& op : operators) {
        Json entry{{"name", op.name}};
        if (const auto* shape = std::get_if<GemmShape>(&op.work)) {
            entry["type"] = "gemm";
            put_gemm(entry, *shape);
            if (shape->batch > 1) entry["batch"] = shape->batch;
        } else if (const auto* collective = std::get_if<CollectiveWork>(&op.work)) {
            entry["type"] = "collective";
            entry["collective"] = name_of(collective->kind);
            entry["bytes"] = collective->operand.si();
            entry["dtype"] = name_of(collective->dtype);
        } else if (const auto* streaming = std::get_if<StreamingWork>(&op.work)) {
            entry["type"] = "memory_bound";
            entry["read_bytes"] = streaming->read.si();
            entry["write_bytes"] = streaming->written.si();
        } else {
            const auto& reduction = std::get<ReductionWork>(op.work);
            entry["type"] = "reduction";
            entry["bytes"] = reduction.bytes.si();
            entry["parts"] = reduction.parts;
        }
        entry["needs"] = Json::array();
        for (const std::size_t need : op.needs) entry["needs"].push_back(operators[need].name);
        json["operators"].push_back(std::move(entry));
    }
    return json;
}

}  // namespace overlap
