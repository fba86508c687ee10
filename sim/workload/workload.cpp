#include "sim/workload/workload.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"
#include "sim/core/task_graph.hpp"
#include "sim/workload/operator_keys.hpp"

namespace overlap {
namespace {

constexpr Range sizes{1, 1e15}, traffic{0, 1e15};
// clang-format off
/// A GEMM of a pair has no batch.
InputKeys<GemmShape> gemm_keys_of_pair() { return gemm_keys().first(8); }

const std::vector<InputKey<Pair>>& pair_keys() {
    static const std::vector<InputKey<Pair>> keys{
        plain_field<&Pair::collective>("collective", collective_names, "The collective operation."),
        plain_field<&Pair::order>("order", order_names,
            "collective_first: the GEMM needs the collective's result; gemm_first: the other way round; independent: "
            "neither needs the other.").or_else("the collective's"),
        plain_field<&Pair::shard_dim>("shard_dim", shard_dim_names,
            "all_gather only: the dimension of A along which it is sharded; k where the tokens are in K. "
            "gemm_first: m.").optional(),
        member_key<Pair>("gemm", &Pair::gemm,
            "The GEMM of one GPU after the gather: C[M,N] = A[M,K] B[K,N]. A is the gathered operand (all_gather) or the "
            "received rows (all_to_all); with gemm_first C is what is sent: of all_gather, the shard of one GPU, which "
            "all others get.", gemm_keys_of_pair())};
    return keys;
}

std::vector<InputKey<CollectiveWork>> work_keys(const CollectiveWork&) {
    using C = CollectiveWork;
    return {
        plain_field<&C::kind>("collective", collective_names, "The collective operation."),
        field<&C::operand>("bytes", "The whole operand: gathered (all_gather), before the scatter (reduce_scatter), of "
            "one GPU (all_reduce, all_to_all).").plain_in(sizes),
        plain_field<&C::dtype>("dtype", dtype_names, "Number format of the operands.").optional(),
        member_key<C>("group", &C::group,
            "Groups of GPUs, each of which exchanges by itself, all at the same time, like the process groups of one "
            "dimension of a device mesh. Size times stride divides the number of GPUs. Default: one group of all.", group_keys())
            .optional().written_if([](const C& work) { return !work.group.is_all() && work.group.ranks == nullptr; }),
        member_key<C>("deepep", &C::exchange, "An all_to_all of experts by DeepEP's kernels, whatever the schedule.", exchange_keys())
            .optional().written_if([](const C& work) { return work.exchange.tokens > 0; })};
}

std::vector<InputKey<StreamingWork>> work_keys(const StreamingWork&) {
    using S = StreamingWork;
    constexpr auto computes = [](const S& work) { return work.flops > Flops(); };
    return {
        field<&S::read>("read_bytes", "Bytes read on every GPU.").plain_in(traffic),
        field<&S::written>("write_bytes", "Bytes written on every GPU.").plain_in(traffic),
        InputKey<S>(field<&S::flops>("flops", "Multiplications and additions on matrix units, as of fused attention. Default: 0.").plain_in({0, 1e21}).optional()).written_if(computes),
        InputKey<S>(plain_field<&S::dtype>("dtype", dtype_names, "Number format of these.").optional()).written_if(computes),
        InputKey<S>(field<&S::time>("time_us", "As recorded elsewhere, and taken as it is; 0: by bytes and FLOPs.").plain_in({0, 1e12}).optional())
            .written_if([](const S& work) { return work.time > Seconds(); }),
        member_key<S>("attention", &S::attention,
            "Shape of the fused attention that this operator is: priced by a fit of such kernels, where the device has one.",
            attention_keys()).optional().written_if([](const S& work) { return work.attention.sequences > 0; })};
}

std::vector<InputKey<ReductionWork>> work_keys(const ReductionWork&) {
    return {
        field<&ReductionWork::bytes>("bytes", "Size of one operand.").plain_in(sizes),
        field<&ReductionWork::parts>("parts", "Number of operands.").plain_in({2, 65536})};
}

constexpr std::int64_t last_rank = 999'999, most_ranks = last_rank + 1;

/// A list of ranks; the writer leaves out an empty one.
template <class T, class Base>
InputKey<T> ranks_key(const std::string& key, std::vector<std::int64_t> Base::*member, const std::string& doc) {
    return {key,
            {{"description", doc}, {"type", "array"}, {"minItems", 1},
             {"items", {{"type", "integer"}, {"minimum", 0}, {"maximum", last_rank}}}},
            [=](ConfigObject& from, const std::string& name, T& to) { to.*member = from.integers(name, 0, last_rank); },
            [=](const T& from) { return (from.*member).empty() ? left_out : Json(from.*member); }};
}

std::vector<InputKey<SendWork>> work_keys(const SendWork&) {
    return {
        field<&SendWork::bytes>("bytes", "Size of each message.").plain_in(sizes),
        ranks_key<SendWork>("from", &SendWork::from, "The sender of each message."),
        ranks_key<SendWork>("to", &SendWork::to, "The receiver of each message.")};
}
std::vector<InputKey<GemmShape>> work_keys(const GemmShape&) { return {gemm_keys().begin(), gemm_keys().end()}; }

/// An operator of a list while it is read or written.
struct ListedOperator : Operator {
    const std::vector<Operator>* earlier = nullptr;
    /// Index of each earlier operator, by name.
    const std::unordered_map<std::string, std::size_t>* places = nullptr;
};

std::vector<std::size_t> read_needs(ConfigObject& from, const std::string& key, const ListedOperator& op) {
    return mapped(from.texts(key), [&](const std::string& need) {
        const auto found = op.places->find(need);
        if (found == op.places->end())
            from.fail(key, "names " + in_quotes(need) + ", which no earlier operator has" + suggestion(need, mapped(*op.earlier, &Operator::name)));
        return found->second;
    });
}

/// `always`: written even if it names none.
template <class Get>
InputKey<ListedOperator> needs_key(const std::string& key, const std::string& doc, Get get, bool always) {
    using L = ListedOperator;
    return InputKey<L>(key, {{"description", doc}, {"type", "array"}, {"uniqueItems", true}, {"items", {{"type", "string"}}}},
        [get](ConfigObject& from, const std::string& name, L& to) { get(to) = read_needs(from, name, to); },
        [get, always](const L& from) {
            const std::vector<std::size_t>& needs = get(from);
            return needs.empty() && !always ? left_out : Json(mapped(needs, [&](std::size_t need) { return (*from.earlier)[need].name; }));
        }).optional();
}

/// One alternative of Operator::work.
struct OperatorKind {
    const char* name;
    const char* doc;
    decltype(Operator::work) work;
    bool names_ranks;  ///< whether the list may say which ranks execute it
    bool computes;
};
const std::array<OperatorKind, 5> kinds{{
    {"gemm", "C[M,N] = A[M,K] B[K,N] on every GPU.", GemmShape(), true, true},
    {"collective", "A collective over all GPUs, or over each group of them.", CollectiveWork(), true, false},
    {"memory_bound", "An operator limited by memory, or by its FLOPs.", StreamingWork(), true, true},
    {"reduction", "Sum of several operands of one size.", ReductionWork(), true, true},
    {"send", "Messages between ranks, all at once.", SendWork(), false, false}}};

const std::array<std::string, 2> priority_names{"normal", "high"};

InputKey<ListedOperator> stream_key(bool computes) {
    using L = ListedOperator;
    const std::string other = " Streams run beside each other; of the operators of one stream one runs at a time. Any other name is a stream of that name. Default: ";
    const std::string doc = computes ? "compute: the stream of what computes; local: one for copies inside the GPU." + other + "compute."
                                     : "compute, local: as for computation." + other + "streams of its own.";
    return InputKey<L>("stream", {{"description", doc}, {"type", "string"}, {"pattern", "^[A-Za-z0-9_.-]+$"}},
        [](ConfigObject& from, const std::string& key, L& to) {
            to.stream = non_empty_text(from, key);
            constexpr auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; };
            if (!std::ranges::all_of(to.stream, is_plain)) from.fail(key, "is " + in_quotes(to.stream) + ", expected a name of letters, digits, '_', '.' and '-'");
        },
        [](const L& from) { return from.stream.empty() ? left_out : Json(from.stream); }).optional();
}

/// What a recording says of any operator, but for Recorded::host_needs, which are names of others.
std::vector<InputKey<Recorded>> recorded_keys() {
    using R = Recorded;
    constexpr Range us{0, 1e12};
    return {
        InputKey<R>(field<&R::time>("recorded_us", "As a trace has it: what the operator took beside all that ran then, and takes where it runs whole; pieces are priced. Default: priced.").plain_in(us).optional())
            .written_if([](const R& recorded) { return recorded.time > Seconds(); }),
        InputKey<R>("gap_us", {{"description", "With recorded_us: from when the operator could begin until it did. Default: a launch of the machine."}, {"type", "number"}, {"minimum", 0}, {"maximum", us.high}},
            [=](ConfigObject& from, const std::string& key, R& to) { to.gap = microseconds(from.number(key, us)); },
            [](const R& from) { return from.gap ? Json(to_microseconds(*from.gap)) : left_out; }).optional(),
        InputKey<R>(field<&R::host>("host_us", "Of the host, from its call before to the one that enqueued the operator. A run with a host of its own leaves it out, and gap_us.").plain_in(us).optional())
            .written_if([](const R& recorded) { return recorded.host > Seconds(); })};
}

std::vector<InputKey<ListedOperator>> keys_of_kind(const OperatorKind& kind) {
    using L = ListedOperator;
    std::vector<InputKey<L>> keys{
        {"name", {{"description", "Unique in the list."}, {"type", "string"}},
            [](ConfigObject& from, const std::string& key, L& to) {
                to.name = from.text(key);
                if (to.places->contains(to.name)) from.fail(key, "is '" + to.name + "', which an earlier operator has");
            }, &L::name},
        {"type", {{"const", kind.name}}, [](ConfigObject& from, const std::string& key, L&) { from.text(key); },
            [name = kind.name](const L&) { return name; }}};
    std::visit([&]<class Work>(const Work& work) {
        for (const InputKey<Work>& key : work_keys(work))
            keys.push_back(lifted<L>(key, [](auto& op) -> auto& { return std::get<Work>(op.work); }));
    }, kind.work);
    if (kind.names_ranks)
        for (const InputKey<Recorded>& key : recorded_keys())
            keys.push_back(lifted<L>(key, [](auto& op) -> auto& { return op.recorded; }));
    if (kind.names_ranks) keys.push_back(ranks_key<L>("ranks", &L::ranks, kind.computes ? "The ranks that execute it. Default: all." : "The ranks that exchange, instead of groups. Default: all.").optional());
    keys.push_back(stream_key(kind.computes));
    keys.push_back(InputKey<L>("priority", choice_of(priority_names, "Of its stream: a kernel of high priority is served first where it waits for compute units. Default: normal."),
        [](ConfigObject& from, const std::string& key, L& to) { to.high_priority = from.choice(key, priority_names) == 1; },
        [](const L& from) { return from.high_priority ? Json(priority_names[1]) : left_out; }).optional());
    keys.push_back(needs_key("needs", "Operators whose results this one needs, earlier in the list. Default: none.", [](auto& op) -> auto& { return op.needs; }, true));
    keys.push_back(needs_key("host_needs", "Operators whose end the host waited for before it enqueued this one. Default: none.", [](auto& op) -> auto& { return op.recorded.host_needs; }, false));
    return keys;
}
// clang-format on

/// In the order of Operator::work.
const std::vector<std::vector<InputKey<ListedOperator>>>& operator_keys() {
    static const auto keys = mapped(kinds, keys_of_kind);
    return keys;
}

Order default_order(CollectiveKind kind) {
    const bool first = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
    return first ? Order::collective_first : Order::gemm_first;
}

/// What no key can check alone.
void check(const ConfigObject& config, const Pair& pair) {
    const bool reduces =
        pair.collective == CollectiveKind::reduce_scatter || pair.collective == CollectiveKind::all_reduce;
    if (reduces && pair.order == Order::collective_first)
        config.fail("order", "is 'collective_first', but " + name_of(pair.collective) +
                                 " sums the GEMM's results (allowed: gemm_first, independent)");
    if (pair.shard_dim == ShardDim::k &&
        (pair.collective != CollectiveKind::all_gather || pair.order != Order::collective_first))
        config.fail("shard_dim", "is 'k', which only all_gather before a GEMM has (allowed here: m)");
}
void check(const ConfigObject& config, const SendWork& send) {
    if (send.from.empty() || send.from.size() != send.to.size())
        config.fail("to", "has " + std::to_string(send.to.size()) + " ranks and \"from\" " +
                              std::to_string(send.from.size()) + ", expected as many, and at least one");
    for (std::size_t i = 0; i < send.to.size(); ++i)
        if (send.from[i] == send.to[i])
            config.fail("to", "has rank " + std::to_string(send.to[i]) + " send to itself");
}

void check(const ConfigObject& config, const StreamingWork& work) {
    const AttentionCall& attention = work.attention;
    if (attention.sequences > 0 && attention.heads % attention.kv_heads != 0)
        config.fail("attention/kv_heads", "is no divisor of heads");
}

void check(const ConfigObject& config, const CollectiveWork& work) {
    if (work.exchange.tokens > 0 && work.kind != CollectiveKind::all_to_all)
        config.fail("deepep", "stands beside collective " + name_of(work.kind) + " (allowed: all_to_all)");
    if (work.exchange.choices > work.exchange.experts) config.fail("deepep/top_k", "is more than experts");
}

void check_streams(const ConfigObject& config, const std::vector<Operator>& operators) {
    std::set<std::string> names;
    for (const Operator& op : operators)
        if (!op.stream.empty()) names.insert(op.stream);
    for (const char* known : {"compute", "local"}) names.erase(known);
    if (names.size() > most_side_streams)
        config.fail("operators", "name " + std::to_string(names.size()) +
                                     " streams beside compute and local (allowed: " +
                                     std::to_string(most_side_streams) + ")");
}

std::vector<Operator> read_operators(ConfigObject& config) {
    static const auto names = mapped(kinds, [](const OperatorKind& kind) { return std::string(kind.name); });
    std::vector<Operator> operators;
    std::unordered_map<std::string, std::size_t> places;
    for (ConfigObject& entry : config.objects("operators")) {
        const std::size_t kind = entry.choice("type", names);
        ListedOperator op = read_keys<ListedOperator>(
            entry, operator_keys()[kind], {Operator{"", kinds[kind].work, {}}, &operators, &places});
        if (const auto* send = std::get_if<SendWork>(&op.work)) check(entry, *send);
        if (const auto* kernel = std::get_if<StreamingWork>(&op.work)) check(entry, *kernel);
        if (const auto* some = std::get_if<CollectiveWork>(&op.work)) check(entry, *some);
        std::ranges::sort(op.ranks);
        if (entry.has("ranks") &&
            (op.ranks.empty() || std::ranges::adjacent_find(op.ranks) != op.ranks.end()))
            entry.fail("ranks", "is empty or names a rank twice (leave it out for all ranks)");
        if (auto* collective = std::get_if<CollectiveWork>(&op.work); collective && !op.ranks.empty()) {
            if (!collective->group.is_all())
                entry.fail("ranks", "stands beside \"group\" (allowed: one of them)");
            collective->group = RankGroup::of({op.ranks.begin(), op.ranks.end()});
        }
        places.emplace(op.name, operators.size());
        operators.push_back(std::move(op));
    }
    if (operators.empty()) config.fail("operators", "is empty, expected at least one operator");
    check_streams(config, operators);
    return operators;
}

Json operators_schema() {
    std::vector<Json> schemas;
    for (const OperatorKind& kind : kinds)
        schemas.push_back(keys_schema(kind.doc, operator_keys()[kind.work.index()]));
    return list_schema("Operators with their data dependencies, instead of the pair collective, order, gemm.",
                       schema_by_type("Kind of operator.", schemas));
}

Json written_operators(const Workload& workload) {
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    return mapped(operators, [&](const Operator& op) {
        return written(ListedOperator{op, &operators}, operator_keys()[op.work.index()]);
    });
}

// clang-format off
std::vector<InputKey<Workload>> common_keys() {
    using W = Workload;
    return {
        version_key<W>("workload").optional().read_only(),
        name_key<W>("name", &W::name, "The file's name without .json.").optional(),
        text_key<W>("description", &W::description, "What this is, in a sentence or two.").optional().read_only()
            .but([](InputKey<W>& key) { key.schema["minLength"] = 10; }),
        text_key<W>("source", "Where the shapes come from.").optional().but([](InputKey<W>& key) { key.schema["minLength"] = 8; }),
        InputKey<W>(field<&W::ranks>("ranks", "Number of GPUs that the workload is for. Default: any.").plain_in({1, most_ranks}))
            .optional().written_if([](const W& workload) { return workload.ranks > 0; })};
}

const std::vector<InputKey<Workload>>& keys_of_pair() {
    using W = Workload;
    static const std::vector<InputKey<W>> keys = [] {
        auto all = common_keys();
        for (const InputKey<Pair>& key : pair_keys())
            all.push_back(lifted<W>(key, [](auto& workload) -> auto& { return std::get<Pair>(workload.content); }));
        return all;
    }();
    return keys;
}

const std::vector<InputKey<Workload>>& keys_of_list() {
    using W = Workload;
    static const std::vector<InputKey<W>> keys = [] {
        auto all = common_keys();
        all.push_back(InputKey<W>(plain_field<&W::list_order>("order", list_order_names,
            "Of a list, when its operators start. program: each stream runs them in the order of the list, in which a program "
            "enqueued them. data: a stream that is free runs, of its operators whose data are there, the first of the list. "
            "A collective or message that names a stream holds it in the order of the list.").or_else("data")));
        all.emplace_back("operators", operators_schema(), [](ConfigObject& from, const std::string&, W& to) { to.content = read_operators(from); }, written_operators);
        return all;
    }();
    return keys;
}

const std::vector<InputKey<Workload>>& workload_keys(bool is_list) {
    return is_list ? keys_of_list() : keys_of_pair();
}
// clang-format on

}  // namespace

Workload read_workload(ConfigObject config) {
    const bool is_list = config.has("operators"), has_order = config.has("order");
    Workload workload;
    workload.name = "custom";
    if (is_list) workload.list_order = ListOrder::data;
    workload = read_keys<Workload>(config, workload_keys(is_list), std::move(workload));
    if (auto* pair = std::get_if<Pair>(&workload.content)) {
        if (!has_order) pair->order = default_order(pair->collective);
        check(config, *pair);
    }
    return workload;
}

Json to_json(const Workload& workload) {
    return written(workload, workload_keys(workload.pair() == nullptr));
}

std::vector<std::string> pair_paths() {
    std::vector<std::string> paths;
    for (const auto& key : pair_keys())
        if (key.key != "gemm") paths.push_back(key.key);
    for (const auto& key : gemm_keys_of_pair()) paths.push_back("gemm." + key.key);
    return paths;
}

Json workload_schema(bool in_run_config) {
    std::vector<InputKey<Workload>> keys = workload_keys(false);
    keys.push_back(workload_keys(true).back());
    const std::string doc =
        "One operator pair (collective, order, gemm), or a list of operators. All dimensions are of one GPU.";
    Json schema = in_run_config ? keys_schema(doc, keys) : file_of_keys("Workload", doc, keys);
    const auto of_list = std::ranges::find(workload_keys(true), "order", &InputKey<Workload>::key);
    Json& order = schema["properties"]["order"];
    order["description"] =
        order["description"].get<std::string>() + " " + of_list->schema["description"].get<std::string>();
    for (const std::string& name : list_order_names) order["enum"].push_back(name);
    schema["required"] = {"schema", "name", "description", "source"};
    if (in_run_config) {
        for (const Json& key : schema["required"])
            for (const char* limit : {"pattern", "minLength"})
                schema["properties"][key.get<std::string>()].erase(limit);
        schema["required"] = Json::array();
    }
    // clang-format off
    schema["allOf"] = parse_json(R"([
        {"oneOf": [{"required": ["collective", "gemm"], "not": {"required": ["operators"]},
                    "properties": {"order": {"enum": ["collective_first", "gemm_first", "independent"]}}},
                   {"required": ["operators"], "properties": {"order": {"enum": ["program", "data"]}},
                    "not": {"anyOf": [{"required": ["collective"]}, {"required": ["shard_dim"]}, {"required": ["gemm"]}]}}]},
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
