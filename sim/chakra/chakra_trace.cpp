#include "sim/chakra/chakra_trace.hpp"

#include <sim/chakra/execution_trace.pb.h>
#include <algorithm>
#include <fstream>
#include <set>
#include <unordered_map>

#include "sim/chakra/chakra_numbers.hpp"
#include "sim/core/available_memory.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/input_file.hpp"
#include "sim/core/ranges.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longest_message = 16 << 20;  // bytes: reading one takes less than 1 GB of memory
constexpr std::size_t bytes_a_node = 1500;           // in memory, with its operator
constexpr std::size_t checked_every = 65536;         // nodes
/// Attributes on which no simulation depends: times and places of the recording, and what the converter made a node
/// from.
const std::set<std::string> harmless{"rf_id",  "fw_parent", "seq_id",      "scope",          "tid",
                                     "fw_tid", "op_schema", "is_cpu_op",   "comm_priority",  "cid",
                                     "pid",    "stream",    "kernel_file", "kernel_backend", "ts",
                                     "dur",    "inputs",    "outputs"};

/// The messages of a file, one after another, each behind its length.
class Messages {
public:
    explicit Messages(const fs::path& path)
        : path_(path),
          in_(open_input(path, "a Chakra execution trace")),
          left_(fs::file_size(on_disk(path, "a Chakra execution trace"))) {}

    /// The next message's bytes; none at the end of the file.
    bool next(std::string& bytes) {
        if (left_ == 0) return false;
        const std::uint64_t length = varint();
        if (length > left_ || length > longest_message)
            fail("says that " + std::to_string(length) + " bytes follow" +
                 (length > left_ ? ", but the file has " + std::to_string(left_) + " more"
                                 : ", more than the 16 MiB that a node may have"));
        bytes.resize(length);
        in_.read(bytes.data(), static_cast<std::streamsize>(length));
        if (static_cast<std::uint64_t>(in_.gcount()) != length) fail("is cut off");
        left_ -= length;
        ++number_;
        return true;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw UserError(
            path_.string() + ": message " + std::to_string(number_) + " " + what +
            " (expected a Chakra execution trace: a GlobalMetadata and Nodes, each behind its length)");
    }

private:
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const int byte = left_ > 0 ? in_.get() : -1;
            if (byte < 0) fail("is cut off");
            --left_;
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if ((byte & 0x80) == 0) return value;
        }
        fail("has a length of more than 64 bits");
    }

    fs::path path_;
    std::ifstream in_;
    std::uint64_t left_;
    std::size_t number_ = 0;
};

/// One node's attributes, and what its errors say.
class NodeReader {
public:
    NodeReader(const chakra::Node& node, const std::string& file, std::int64_t rank, std::int64_t ranks,
               std::size_t place, ChakraTrace& trace)
        : node_(node), file_(file), rank_(rank), ranks_(ranks), place_(place), trace_(trace) {
        for (const auto& attr : node.attr()) attributes_[attr.name()] = &attr;
    }

    ChakraNode read() {
        ChakraNode result;
        result.id = node_.id();
        result.name = node_.name();
        result.place = place_;
        const bool on_cpu = flag("is_cpu_op");
        switch (node_.type()) {
            case chakra::METADATA_NODE:
                return result;  // of process groups and the like
            case chakra::COMP_NODE:
                computation(result, on_cpu);
                break;
            case chakra::COMM_SEND_NODE:
            case chakra::COMM_RECV_NODE:
                message(result);
                break;
            case chakra::COMM_COLL_NODE:
                collective(result);
                break;
            case chakra::MEM_LOAD_NODE:
            case chakra::MEM_STORE_NODE:
                fail(
                    "loads from or stores to remote memory (MEM_LOAD_NODE, MEM_STORE_NODE), which is not modelled");
            default:
                fail("has type " + std::to_string(node_.type()) +
                     ", expected METADATA_NODE (1), COMP_NODE (4), "
                     "COMM_SEND_NODE (5), COMM_RECV_NODE (6) or COMM_COLL_NODE (7)");
        }
        restore(result);
        for (const auto& [name, attr] : attributes_)
            if (!used_.contains(name) && !harmless.contains(name)) ++trace_.ignored[name];
        return result;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw UserError(file_ + ": node " + std::to_string(node_.id()) + " " + in_quotes(node_.name()) + " " +
                        what);
    }

private:
    const chakra::AttributeProto* find(const std::string& name) {
        used_.insert(name);
        const auto* found = value_at(attributes_, name);
        return found == nullptr ? nullptr : *found;
    }

    std::optional<std::uint64_t> number(const std::string& name) {
        const auto* attr = find(name);
        if (attr == nullptr) return std::nullopt;
        const auto signed_one = [&](std::int64_t value) {
            if (value < 0) fail("has " + name + " " + std::to_string(value) + ", expected 0 or more");
            return static_cast<std::uint64_t>(value);
        };
        using A = chakra::AttributeProto;
        // clang-format off
        switch (attr->value_case()) {
            case A::kInt32Val: return signed_one(attr->int32_val());
            case A::kInt64Val: return signed_one(attr->int64_val());
            case A::kUint32Val: return attr->uint32_val();
            case A::kUint64Val: return attr->uint64_val();
            case A::kSint32Val: return signed_one(attr->sint32_val());
            case A::kSint64Val: return signed_one(attr->sint64_val());
            case A::kFixed32Val: return attr->fixed32_val();
            case A::kFixed64Val: return attr->fixed64_val();
            case A::kSfixed32Val: return signed_one(attr->sfixed32_val());
            case A::kSfixed64Val: return signed_one(attr->sfixed64_val());
            default: fail("has " + name + " that is no whole number");
        }
        // clang-format on
    }
    std::uint64_t required(const std::string& name) {
        const auto value = number(name);
        if (!value) fail("has no " + name);
        return *value;
    }
    bool flag(const std::string& name) {
        const auto* attr = find(name);
        return attr != nullptr && attr->bool_val();
    }

    void computation(ChakraNode& result, bool on_cpu) {
        const std::uint64_t ops = number("num_ops").value_or(0), bytes = number("tensor_size").value_or(0);
        if (on_cpu) {
            ++trace_.cpu_operators;
            trace_.cpu_us += static_cast<double>(node_.duration_micros());
            return;
        }
        if (ops == 0 && bytes == 0 && node_.duration_micros() == 0) return;
        result.kind = ChakraKind::compute;
        result.work = {{"type", "memory_bound"}, {"read_bytes", bytes}, {"write_bytes", 0}};
        if (ops > 0) result.work["flops"] = ops;
        if (ops == 0 && bytes == 0) result.work["time_us"] = node_.duration_micros();
        numbers_ = {ops, bytes, ops > 0 || bytes > 0 ? 0 : node_.duration_micros(), -1, 0};
    }

    void message(ChakraNode& result) {
        const bool sends = node_.type() == chakra::COMM_SEND_NODE;
        for (const char* side : {"comm_src", "comm_dst"}) {
            const auto rank = number(side);
            const bool own = sends == (side == std::string("comm_src"));
            if (!rank && own) continue;
            if (!rank || *rank >= static_cast<std::uint64_t>(ranks_) ||
                (*rank == static_cast<std::uint64_t>(rank_)) != own)
                fail("has " + std::string(side) + " " + (rank ? std::to_string(*rank) : "nowhere") +
                     ", expected " +
                     (own ? "its own rank, " + std::to_string(rank_)
                          : "another of the " + std::to_string(ranks_) + " ranks"));
            if (!own) result.peer = static_cast<std::int64_t>(*rank);
        }
        number("comm_type");  // converters give sends and receives one, too
        result.kind = sends ? ChakraKind::send : ChakraKind::receive;
        result.bytes = required("comm_size");
        result.tag = number("comm_tag").value_or(0);
    }

    void collective(ChakraNode& result) {
        static const std::map<std::uint64_t, const char*> names{{chakra::ALL_REDUCE, "all_reduce"},
                                                                {chakra::ALL_GATHER, "all_gather"},
                                                                {chakra::ALL_TO_ALL, "all_to_all"},
                                                                {chakra::REDUCE_SCATTER, "reduce_scatter"}};
        const std::uint64_t type = required("comm_type"), size = required("comm_size");
        const auto name = names.find(type);
        if (name == names.end())
            fail("is a " +
                 (chakra::CollectiveCommType_IsValid(static_cast<int>(std::min<std::uint64_t>(type, 99)))
                      ? chakra::CollectiveCommType_Name(static_cast<chakra::CollectiveCommType>(type))
                      : "collective of type " + std::to_string(type)) +
                 ", expected ALL_REDUCE, ALL_GATHER, ALL_TO_ALL or REDUCE_SCATTER");
        if (const auto* dims = find("involved_dim"))
            for (const bool involved : dims->bool_list().values())
                if (!involved)
                    fail("is a collective of some of the ranks (involved_dim), expected one of all ranks");
        for (const char* key : {"pg_name", "comm_group"})
            if (const auto* group = find(key))
                result.group = group->has_string_val() ? group->string_val() : std::to_string(*number(key));
        result.kind = ChakraKind::collective;
        result.of_one_rank = type == chakra::ALL_GATHER;
        result.work = {{"type", "collective"}, {"collective", name->second}, {"bytes", size}};
        numbers_ = {0, 0, 0, static_cast<std::int64_t>(type), size};
    }

    /// The operator as our writer described it, if the node's own numbers are still those that it wrote.
    void restore(ChakraNode& result) {
        const auto* attr = find("overlap_operator");
        const auto place = number("overlap_place");
        if (attr == nullptr) {
            trace_.typeless =
                trace_.typeless || result.kind == ChakraKind::collective || result.work.contains("flops");
            return;
        }
        const std::string where = file_ + ": node " + std::to_string(node_.id()) + ": overlap_operator";
        Json op = parse_json(attr->string_val(), where);
        Json list{{"operators", Json::array({op})}};
        const Workload read = read_workload({list, where});
        const Operator& one = std::get<std::vector<Operator>>(read.content).front();
        const bool message = result.kind == ChakraKind::send || result.kind == ChakraKind::receive;
        const auto* send = std::get_if<SendWork>(&one.work);
        if (message != (send != nullptr) || !one.is_on(rank_)) return;
        if (message ? static_cast<double>(result.bytes) != send->bytes.si()
                    : chakra_numbers(one, ranks_) != numbers_)
            return;
        result.ours = true;
        result.place = place.value_or(place_);
        result.name = one.name;
        for (const char* key : {"name", "ranks"}) op.erase(key);
        if (message) return;
        result.work = std::move(op);
        result.of_one_rank = false;
    }

    const chakra::Node& node_;
    const std::string& file_;
    std::int64_t rank_, ranks_;
    std::size_t place_;
    ChakraTrace& trace_;
    std::map<std::string, const chakra::AttributeProto*> attributes_;
    std::set<std::string> used_;
    ChakraNumbers numbers_;
};

/// Replaces identifiers by places.
void resolve_dependencies(ChakraRank& rank, const std::vector<std::vector<std::uint64_t>>& after) {
    std::unordered_map<std::uint64_t, std::size_t> places;
    const auto fail = [&](std::size_t node, const std::string& what) {
        throw UserError(rank.file + ": node " + std::to_string(rank.nodes[node].id) + " " +
                        in_quotes(rank.nodes[node].name) + " " + what);
    };
    for (std::size_t i = 0; i < rank.nodes.size(); ++i)
        if (!places.emplace(rank.nodes[i].id, i).second) fail(i, "has the id of an earlier node");
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
        for (const std::uint64_t id : after[i]) {
            const auto found = places.find(id);
            if (found == places.end())
                fail(i, "waits for node " + std::to_string(id) + ", which is not in the file");
            rank.nodes[i].after.push_back(found->second);
        }
        auto& places_of = rank.nodes[i].after;
        std::ranges::sort(places_of);
        places_of.erase(std::unique(places_of.begin(), places_of.end()), places_of.end());
    }
}

void read_metadata(const std::string& bytes, const Messages& messages, ChakraTrace& trace) {
    chakra::GlobalMetadata metadata;
    if (!metadata.ParseFromString(bytes)) messages.fail("is no GlobalMetadata");
    for (const auto& attr : metadata.attr()) {
        if (attr.name() == "overlap_workload") trace.name = attr.string_val();
        if (attr.name() == "overlap_description") trace.description = attr.string_val();
        if (attr.name() == "overlap_order") trace.order = attr.string_val();
    }
}

/// Reads the process groups that converters and STAGE write beside the traces: {"0": [0, 1], "1": [2, 3]}, in
/// NAME.json or comm_group.json. Other JSON of that name is none.
void read_groups(const std::vector<fs::path>& files, ChakraTrace& trace) {
    const fs::path stem = fs::path(files.front()).replace_extension().replace_extension();
    for (const fs::path& file : {fs::path(stem.string() + ".json"), stem.parent_path() / "comm_group.json"}) {
        std::error_code ignored;
        if (!fs::is_regular_file(file, ignored)) continue;
        const Json json = read_json_file(file);
        const bool has_groups =
            json.is_object() && !json.empty() && std::ranges::all_of(json, &Json::is_array);
        if (!has_groups && file.filename() != "comm_group.json") continue;
        trace.groups_file = file.string();
        ConfigObject groups(json, trace.groups_file);
        for (const std::string& name : groups.keys()) {
            auto& ranks = trace.groups[name] =
                groups.integers(name, 0, static_cast<std::int64_t>(files.size()) - 1);
            std::ranges::sort(ranks);
            if (ranks.empty() || std::ranges::adjacent_find(ranks) != ranks.end())
                groups.fail(name, "has no rank, or names one twice");
        }
        groups.finish();
        return;
    }
}

/// The common name of the traces in a folder, if they are of one program; else `given`.
std::string common_name(const fs::path& given) {
    static const std::string first = ".0.et";
    std::error_code ignored;
    std::vector<std::string> names;
    if (fs::is_directory(given, ignored))
        for (const auto& entry : fs::directory_iterator(given, ignored))
            if (const std::string name = entry.path().string(); name.ends_with(first))
                names.push_back(name.substr(0, name.size() - first.size()));
    return names.size() == 1 ? names.front() : given.string();
}

}  // namespace

std::vector<fs::path> chakra_files(const fs::path& given) {
    std::string stem = common_name(given);
    std::error_code ignored;
    if (stem.ends_with(".et")) {
        stem.resize(stem.size() - 3);
        const std::size_t dot = stem.find_last_not_of("0123456789");
        if (dot != std::string::npos && stem[dot] == '.' && dot + 1 < stem.size()) stem.resize(dot);
    }
    std::vector<fs::path> files;
    while (true) {
        fs::path file = stem + "." + std::to_string(files.size()) + ".et";
        if (!fs::is_regular_file(file, ignored)) break;
        files.push_back(std::move(file));
    }
    if (files.empty()) return files;
    const fs::path folder = files.front().parent_path().empty() ? "." : files.front().parent_path();
    const std::string begin = fs::path(stem).filename().string() + ".";
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(begin) || !name.ends_with(".et") || name.size() < begin.size() + 4) continue;
        const std::string rank = name.substr(begin.size(), name.size() - begin.size() - 3);
        if (rank.find_first_not_of("0123456789") != std::string::npos) continue;
        const std::string last = std::to_string(files.size() - 1);
        if (rank.size() > last.size() || (rank.size() == last.size() && rank > last))
            throw UserError(stem + "." + std::to_string(files.size()) + ".et: is missing, but " + name +
                            " is there");
    }
    return files;
}

ChakraTrace read_chakra_trace(const std::vector<fs::path>& files) {
    ChakraTrace trace;
    std::size_t nodes = 0;
    for (const fs::path& file : files) {
        ChakraRank& rank = trace.ranks.emplace_back(ChakraRank{file.string(), {}});
        std::vector<std::vector<std::uint64_t>> after;
        Messages messages(file);
        std::string bytes;
        if (!messages.next(bytes)) messages.fail("is missing: the file is empty");
        read_metadata(bytes, messages, trace);
        while (messages.next(bytes)) {
            chakra::Node node;
            if (!node.ParseFromString(bytes)) messages.fail("is no Node");
            rank.nodes.push_back(NodeReader(node, rank.file,
                                            static_cast<std::int64_t>(trace.ranks.size()) - 1,
                                            static_cast<std::int64_t>(files.size()), rank.nodes.size(), trace)
                                     .read());
            after.emplace_back(node.ctrl_deps().begin(), node.ctrl_deps().end());
            after.back().insert(after.back().end(), node.data_deps().begin(), node.data_deps().end());
            if (++nodes % checked_every == 0)
                require_memory_for(
                    "the trace of " + std::to_string(nodes) + " nodes and more in " + rank.file,
                    Bytes(static_cast<double>(nodes * bytes_a_node)), available_memory());
        }
        resolve_dependencies(rank, after);
    }
    read_groups(files, trace);
    return trace;
}

}  // namespace overlap
