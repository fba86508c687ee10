#include "sim/workload/workload.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/core/fields.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

constexpr Range dimension{1, 1e9}, sizes{1, 1e15}, traffic{0, 1e15};

using OperatorWork = decltype(Operator::work);

// clang-format off
std::span<const Field<GemmShape>> fields_of(const GemmShape&) {
    using G = GemmShape;
    static const std::array rows{
        field<&G::m>("m", "Rows of A and C, after the gather.").plain_in(dimension),
        field<&G::n>("n", "Columns of B and C on one GPU.").plain_in(dimension),
        field<&G::k>("k", "Columns of A, rows of B, after the gather.").plain_in(dimension),
        plain_field<&G::dtype>("dtype", dtype_names, "Number format of the operands."),
        field<&G::groups>("groups", "Above 1: a grouped GEMM, whose m rows are divided among so many matrices B, the experts of one GPU.").plain_in({1, 65536}).optional(),
        field<&G::group_ranks>("group_ranks", "GPUs that have so many groups each (expert parallelism); the busiest is priced.").plain_in({1, 65536}).optional().only_with("groups"),
        field<&G::group_choices>("group_choices", "Groups that each token goes to (top k).").plain_in({1, 65536}).optional().only_with("groups"),
        field<&G::imbalance>("imbalance", "Exponent of the power law by which rows are spread over groups; 0: evenly.").plain_in({0, 10}).optional().only_with("groups"),
        field<&G::batch>("batch", "GEMMs in one kernel, each with its own operands.").plain_in(dimension).optional()};
    return rows;
}

/// A GEMM of a pair has no batch.
std::span<const Field<GemmShape>> fields_of_pair(const GemmShape& gemm) { return fields_of(gemm).first(8); }

std::span<const Field<Pair>> fields_of(const Pair&) {
    static const std::array rows{
        plain_field<&Pair::collective>("collective", collective_names, "The collective operation."),
        plain_field<&Pair::order>("order", order_names,
            "collective_first: the GEMM needs the collective's result; gemm_first: the other way round; independent: "
            "neither needs the other.").or_else("the collective's"),
        plain_field<&Pair::shard_dim>("shard_dim", shard_dim_names,
            "all_gather only: the dimension of A along which it is sharded; k where the tokens are in K. "
            "gemm_first: m.").optional()};
    return rows;
}

std::span<const Field<CollectiveWork>> fields_of(const CollectiveWork&) {
    using C = CollectiveWork;
    static const std::array rows{
        plain_field<&C::kind>("collective", collective_names, "The collective operation."),
        field<&C::operand>("bytes", "The whole operand: gathered (all_gather), before the scatter (reduce_scatter), of "
            "one GPU (all_reduce, all_to_all).").plain_in(sizes),
        plain_field<&C::dtype>("dtype", dtype_names, "Number format of the operands.").optional()};
    return rows;
}

std::span<const Field<RankGroup>> fields_of(const RankGroup&) {
    static const std::array rows{
        field<&RankGroup::size>("size", "GPUs of a group.").plain_in({1, 65536}),
        field<&RankGroup::stride>("stride", "Difference of the ranks of neighbours in a group: 1 for ranks 0, 1, 2, ...; 8 "
            "for ranks 0, 8, 16, ... Default: 1.").plain_in({1, 65536}).optional()};
    return rows;
}

std::span<const Field<StreamingWork>> fields_of(const StreamingWork&) {
    static const std::array rows{
        field<&StreamingWork::read>("read_bytes", "Bytes read on every GPU.").plain_in(traffic),
        field<&StreamingWork::written>("write_bytes", "Bytes written on every GPU.").plain_in(traffic),
        field<&StreamingWork::flops>("flops", "Multiplications and additions on matrix units, as of fused attention. Default: 0.").plain_in({0, 1e21}).optional(),
        plain_field<&StreamingWork::dtype>("dtype", dtype_names, "Number format of these.").optional(),
        field<&StreamingWork::time>("time_us", "As recorded elsewhere, and taken as it is; 0: by bytes and FLOPs.").plain_in({0, 1e12}).optional(),
        plain_field<&StreamingWork::stream>("stream", operator_stream_names,
            "compute: in the order of the list with all that computes; local: in that order with others of this stream, "
            "so that what computes does not wait for it. Default: compute.").optional()};
    return rows;
}

std::span<const Field<AttentionCall>> fields_of(const AttentionCall&) {
    using A = AttentionCall;
    constexpr Range count{1, 1e6}, dims{1, 4096};
    static const std::array rows{
        plain_field<&A::kind>("kind", attention_kind_names, "prefill: as many queries as keys; decode: one query a sequence; backward: of a prefill."),
        field<&A::sequences>("sequences", "Sequences.").plain_in(count),
        field<&A::tokens>("tokens", "Keys of each sequence; of decode the context.").plain_in({1, 1e9}),
        field<&A::heads>("heads", "Query heads of one GPU.").plain_in(dims),
        field<&A::kv_heads>("kv_heads", "Key and value heads of one GPU.").plain_in(dims),
        field<&A::head_dim>("head_dim", "Elements of a query or key of a head.").plain_in(dims),
        field<&A::value_dim>("value_dim", "Elements of a value of a head. Default: head_dim.").plain_in({0, 4096}).optional(),
        field<&A::window>("window", "Keys that a query sees at most. Default: all.").plain_in({0, 1e9}).optional(),
        plain_field<&A::mask>("mask", attention_mask_names, "causal: a query sees no later key.").optional(),
        plain_field<&A::dtype>("dtype", dtype_names, "Number format of the products.").optional(),
        plain_field<&A::kv_dtype>("kv_dtype", dtype_names, "Number format of the cached keys and values.").optional()};
    return rows;
}

std::span<const Field<ReductionWork>> fields_of(const ReductionWork&) {
    static const std::array rows{
        field<&ReductionWork::bytes>("bytes", "Size of one operand.").plain_in(sizes),
        field<&ReductionWork::parts>("parts", "Number of operands.").plain_in({2, 65536})};
    return rows;
}

/// Without the lists of senders and receivers, which read_routes reads.
std::span<const Field<SendWork>> fields_of(const SendWork&) {
    static const std::array rows{field<&SendWork::bytes>("bytes", "Size of each message.").plain_in(sizes)};
    return rows;
}

/// By place in Operator::work.
const std::array<std::string, 5> work_names{"gemm", "collective", "memory_bound", "reduction", "send"};
const std::array<OperatorWork, 5> works{GemmShape(), CollectiveWork(), StreamingWork(), ReductionWork(), SendWork()};
const std::array<const char*, 5> work_docs{"C[M,N] = A[M,K] B[K,N] on every GPU.", "A collective over all GPUs, or over each group of them.",
                                           "An operator limited by memory, or by its FLOPs.", "Sum of several operands of one size.",
                                           "Messages between ranks, all at once."};
constexpr std::int64_t last_rank = 999'999, most_ranks = last_rank + 1;
// clang-format on

Order default_order(CollectiveKind kind) {
    const bool first = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
    return first ? Order::collective_first : Order::gemm_first;
}

Pair read_pair(ConfigObject& config) {
    Pair pair;
    read_fields(config, pair, fields_of(pair));
    if (!config.has("order")) pair.order = default_order(pair.collective);
    ConfigObject gemm = config.object("gemm");
    read_fields(gemm, pair.gemm, fields_of_pair(pair.gemm));
    gemm.finish();
    const bool reduces =
        pair.collective == CollectiveKind::reduce_scatter || pair.collective == CollectiveKind::all_reduce;
    if (reduces && pair.order == Order::collective_first)
        config.fail("order", "is 'collective_first', but " + name_of(pair.collective) +
                                 " sums the GEMM's results (allowed: gemm_first, independent)");
    if (pair.shard_dim == ShardDim::k &&
        (pair.collective != CollectiveKind::all_gather || pair.order != Order::collective_first))
        config.fail("shard_dim", "is 'k', which only all_gather before a GEMM has (allowed here: m)");
    return pair;
}

/// Index of each operator read so far, by name.
using Places = std::unordered_map<std::string, std::size_t>;

[[noreturn]] void fail_as_unknown(const ConfigObject& config, const std::string& need,
                                  const std::vector<Operator>& earlier) {
    config.fail("needs", "names " + in_quotes(need) + ", which no earlier operator has" +
                             suggestion(need, mapped(earlier, &Operator::name)));
}

/// Who sends to whom.
void read_routes(ConfigObject& config, SendWork& send) {
    send.from = config.integers("from", 0, last_rank);
    send.to = config.integers("to", 0, last_rank);
    if (send.from.empty() || send.from.size() != send.to.size())
        config.fail("to", "has " + std::to_string(send.to.size()) + " ranks and \"from\" " +
                              std::to_string(send.from.size()) + ", expected as many, and at least one");
    for (std::size_t i = 0; i < send.to.size(); ++i)
        if (send.from[i] == send.to[i])
            config.fail("to", "has rank " + std::to_string(send.to[i]) + " send to itself");
}

/// The ranks that execute an operator, if the list names them.
std::vector<std::int64_t> read_ranks(ConfigObject& config, const OperatorWork& work) {
    if (!config.has("ranks")) return {};
    if (std::holds_alternative<CollectiveWork>(work) || std::holds_alternative<SendWork>(work))
        config.fail("ranks", "is for operators that compute, but this one is a " + work_names[work.index()]);
    std::vector<std::int64_t> ranks = config.integers("ranks", 0, last_rank);
    std::ranges::sort(ranks);
    if (ranks.empty() || std::ranges::adjacent_find(ranks) != ranks.end())
        config.fail("ranks", "is empty or names a rank twice (leave it out for all ranks)");
    return ranks;
}

Operator read_operator(ConfigObject config, const std::vector<Operator>& earlier, Places& places) {
    Operator op;
    op.name = config.text("name");
    if (places.contains(op.name)) config.fail("name", "is '" + op.name + "', which an earlier operator has");
    op.work = works[config.choice("type", work_names)];
    std::visit([&](auto& work) { read_fields(config, work, fields_of(work)); }, op.work);
    if (auto* send = std::get_if<SendWork>(&op.work)) read_routes(config, *send);
    op.ranks = read_ranks(config, op.work);
    if (auto* collective = std::get_if<CollectiveWork>(&op.work);
        collective != nullptr && config.has("group")) {
        ConfigObject group = config.object("group");
        read_fields(group, collective->group, fields_of(collective->group));
        group.finish();
    }
    if (auto* kernel = std::get_if<StreamingWork>(&op.work); kernel != nullptr && config.has("attention")) {
        ConfigObject attention = config.object("attention");
        read_fields(attention, kernel->attention, fields_of(kernel->attention));
        if (kernel->attention.heads % kernel->attention.kv_heads != 0)
            attention.fail("kv_heads", "is no divisor of heads");
        attention.finish();
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

/// Leaves out the keys of a plain GEMM's groups and batch.
void drop_defaults(Json& gemm) {
    if (gemm.value("batch", 0) == 1) gemm.erase("batch");
    if (gemm.value("groups", 0) == 1)
        for (const char* key : {"groups", "group_ranks", "group_choices", "imbalance"}) gemm.erase(key);
}

}  // namespace

Workload read_workload(ConfigObject config) {
    Workload workload;
    if (config.has("schema")) config.integer("schema", 1, 1);
    if (config.has("source")) config.text("source");
    workload.name = config.has("name") ? config.text("name") : "custom";
    if (config.has("description")) workload.description = config.text("description");
    if (config.has("ranks")) workload.ranks = config.integer("ranks", 1, most_ranks);
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
    if (workload.ranks > 0) json["ranks"] = workload.ranks;
    if (const Pair* pair = workload.pair()) {
        write_fields(json, *pair, fields_of(*pair));
        write_fields(json["gemm"], pair->gemm, fields_of_pair(pair->gemm));
        drop_defaults(json["gemm"]);
        return json;
    }
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    for (const Operator& op : operators) {
        Json entry{{"name", op.name}, {"type", work_names[op.work.index()]}};
        std::visit([&](const auto& work) { write_fields(entry, work, fields_of(work)); }, op.work);
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work);
            collective != nullptr && !collective->group.is_all())
            write_fields(entry["group"], collective->group, fields_of(collective->group));
        drop_defaults(entry);
        if (const auto* kernel = std::get_if<StreamingWork>(&op.work);
            kernel != nullptr && kernel->attention.sequences > 0)
            write_fields(entry["attention"], kernel->attention, fields_of(kernel->attention));
        if (entry.value("flops", -1.0) == 0) {
            entry.erase("flops");
            entry.erase("dtype");
        }
        if (entry.value("time_us", -1.0) == 0) entry.erase("time_us");
        if (entry.value("stream", "") == operator_stream_names[0]) entry.erase("stream");
        if (const auto* send = std::get_if<SendWork>(&op.work)) {
            entry["from"] = send->from;
            entry["to"] = send->to;
        }
        if (!op.ranks.empty()) entry["ranks"] = op.ranks;
        entry["needs"] = Json::array();
        for (const std::size_t need : op.needs) entry["needs"].push_back(operators[need].name);
        json["operators"].push_back(std::move(entry));
    }
    return json;
}

std::vector<std::string> pair_paths() {
    std::vector<std::string> paths;
    for (const auto& field : fields_of(Pair())) paths.emplace_back(field.key);
    for (const auto& field : fields_of_pair({})) paths.push_back("gemm." + std::string(field.key));
    return paths;
}

Json workload_schema(bool in_run_config) {
    Json schema =
        named_file_schema("Workload",
                          "One operator pair (collective, order, gemm), or a list of operators. All "
                          "dimensions are of one GPU.");
    schema["properties"]["source"] = text_schema("Where the shapes come from.", 8);
    schema["required"].push_back("source");
    if (in_run_config) {
        for (const char* key : {"$schema", "title"}) schema.erase(key);
        for (const char* key : {"name", "description", "source"})
            for (const char* limit : {"pattern", "minLength"}) schema["properties"][key].erase(limit);
        schema["required"] = Json::array();
    }
    Json& keys = schema["properties"];
    keys["ranks"] = {{"description", "Number of GPUs that the workload is for. Default: any."},
                     {"type", "integer"},
                     {"minimum", 1},
                     {"maximum", most_ranks}};
    add_fields(schema, "", false, fields_of(Pair()));
    keys["gemm"] = object_schema(
        "The GEMM of one GPU after the gather: C[M,N] = A[M,K] B[K,N]. A is the gathered operand (all_gather) or the "
        "received rows (all_to_all); with gemm_first C is what is sent: of all_gather, the shard of one GPU, which "
        "all others get.");
    add_fields(keys["gemm"], "", true, fields_of_pair({}));
    std::vector<Json> kinds;
    for (const OperatorWork& work : works) {
        Json& kind = kinds.emplace_back(object_schema(work_docs[work.index()]));
        kind["required"] = {"name", "type"};
        kind["properties"] = {{"name", {{"description", "Unique in the list."}, {"type", "string"}}},
                              {"type", {{"const", work_names[work.index()]}}}};
        std::visit([&](const auto& one) { add_fields(kind, "", true, fields_of(one)); }, work);
        if (std::holds_alternative<StreamingWork>(work)) {
            Json& attention = kind["properties"]["attention"] = object_schema(
                "Shape of the fused attention that this operator is: priced by a fit of such kernels, where the "
                "device has one.");
            add_fields(attention, "", true, fields_of(AttentionCall()));
        }
        const Json ranks{{"type", "array"},
                         {"minItems", 1},
                         {"items", {{"type", "integer"}, {"minimum", 0}, {"maximum", last_rank}}}};
        const auto add_ranks = [&](const char* key, const char* doc) {
            kind["properties"][key] = ranks;
            kind["properties"][key]["description"] = doc;
        };
        if (std::holds_alternative<SendWork>(work)) {
            add_ranks("from", "The sender of each message.");
            add_ranks("to", "The receiver of each message.");
            kind["required"].insert(kind["required"].end(), {"from", "to"});
        } else if (!std::holds_alternative<CollectiveWork>(work)) {
            add_ranks("ranks", "The ranks that execute it. Default: all.");
        } else {
            Json& group = kind["properties"]["group"] = object_schema(
                "Groups of GPUs, each of which exchanges by itself, all at the same time, like the process groups of one "
                "dimension of a device mesh. Size times stride divides the number of GPUs. Default: one group of all.");
            add_fields(group, "", true, fields_of(RankGroup()));
        }
        kind["properties"]["needs"] = {
            {"description", "Operators whose results this one needs, earlier in the list. Default: none."},
            {"type", "array"},
            {"uniqueItems", true},
            {"items", {{"type", "string"}}}};
    }
    keys["operators"] =
        list_schema("Operators with their data dependencies, instead of the pair collective, order, gemm.",
                    schema_by_type("Kind of operator.", kinds));
    // clang-format off
    schema["allOf"] = parse_json(R"([
        {"oneOf": [{"required": ["collective", "gemm"], "not": {"required": ["operators"]}},
                   {"required": ["operators"], "not": {"anyOf": [{"required": ["collective"]}, {"required": ["order"]},
                                                                 {"required": ["shard_dim"]}, {"required": ["gemm"]}]}}]},
        {"if": {"properties": {"collective": {"enum": ["reduce_scatter", "all_reduce"]}}, "required": ["collective"]},
         "then": {"properties": {"order": {"enum": ["gemm_first", "independent"]}}}},
        {"if": {"properties": {"shard_dim": {"const": "k"}}, "required": ["shard_dim"]},
         "then": {"properties": {"collective": {"const": "all_gather"}, "order": {"const": "collective_first"}}}}
        ])", "rules");
    if (!in_run_config) schema["allOf"].push_back(parse_json(R"(
        {"if": {"required": ["collective"]},
         "then": {"required": ["order"],
                  "if": {"properties": {"collective": {"const": "all_gather"}}}, "then": {"required": ["shard_dim"]},
                  "else": {"not": {"required": ["shard_dim"]}}}})", "rule of files"));
    // clang-format on
    return schema;
}

}  // namespace overlap
