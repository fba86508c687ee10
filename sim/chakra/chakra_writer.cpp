#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sim/chakra/execution_trace.pb.h>

#include "sim/chakra/chakra_numbers.hpp"
#include "sim/chakra/chakra_workload.hpp"
#include "sim/core/errors.hpp"

namespace overlap {
namespace {

constexpr const char* version = "0.0.4";  // of the schema, as in ASTRA-sim's samples

/// One rank's file, node by node.
class RankFile {
public:
    RankFile(const Workload& workload, std::int64_t ranks, std::int64_t rank) : ranks_(ranks), rank_(rank) {
        chakra::GlobalMetadata metadata;
        metadata.set_version(version);
        text(*metadata.add_attr(), "overlap_workload", workload.name);
        text(*metadata.add_attr(), "overlap_description", workload.description);
        text(*metadata.add_attr(), "overlap_order",
             list_order_names[static_cast<std::size_t>(workload.list_order)]);
        append(metadata);
    }

    void add(const Operator& op, const Json& json) {
        std::vector<std::uint64_t> after;
        for (const std::size_t need : op.needs)
            after.insert(after.end(), ids_[need].begin(), ids_[need].end());
        ids_.emplace_back();
        if (const auto* send = std::get_if<SendWork>(&op.work)) return add_messages(op, *send, after, json);
        if (!op.is_on(rank_)) return;
        const ChakraNumbers numbers = chakra_numbers(op, ranks_);
        const bool collective = numbers.comm_type >= 0;
        chakra::Node node = started(op.name, collective ? chakra::COMM_COLL_NODE : chakra::COMP_NODE, after);
        node.set_duration_micros(numbers.micros);
        if (collective) {
            integer(node, "comm_type", static_cast<std::uint64_t>(numbers.comm_type));
            integer(node, "comm_size", numbers.comm_bytes);
        } else if (numbers.micros == 0) {
            unsigned_integer(node, "num_ops", numbers.ops);
            unsigned_integer(node, "tensor_size", numbers.tensor_bytes);
        }
        describe(node, json);
        append(node);
    }

    std::string content() && { return std::move(bytes_); }

private:
    void add_messages(const Operator& op, const SendWork& send, const std::vector<std::uint64_t>& after,
                      const Json& json) {
        for (const bool sends : {true, false})
            for (std::size_t i = 0; i < send.from.size(); ++i) {
                if ((sends ? send.from[i] : send.to[i]) != rank_) continue;
                chakra::Node node = started(op.name, sends ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE,
                                            sends ? after : std::vector<std::uint64_t>());
                integer(node, "comm_size", whole_number(send.bytes.si()));
                integer(node, "comm_src", static_cast<std::uint64_t>(send.from[i]));
                integer(node, "comm_dst", static_cast<std::uint64_t>(send.to[i]));
                integer(node, "comm_tag", ids_.size() - 1);
                describe(node, json);
                append(node);
            }
    }

    chakra::Node started(const std::string& name, chakra::NodeType type,
                         const std::vector<std::uint64_t>& after) {
        chakra::Node node;
        node.set_id(next_);
        node.set_name(name);
        node.set_type(type);
        for (const std::uint64_t id : after) node.add_data_deps(id);
        auto* attr = node.add_attr();
        attr->set_name("is_cpu_op");
        attr->set_bool_val(false);
        ids_.back().push_back(next_++);
        return node;
    }

    static void text(chakra::AttributeProto& attr, const char* name, const std::string& value) {
        attr.set_name(name);
        attr.set_string_val(value);
    }
    /// An attribute of the type that ASTRA-sim's samples have.
    static void integer(chakra::Node& node, const char* name, std::uint64_t value) {
        auto* attr = node.add_attr();
        attr->set_name(name);
        attr->set_int64_val(static_cast<std::int64_t>(value));
    }
    static void unsigned_integer(chakra::Node& node, const char* name, std::uint64_t value) {
        auto* attr = node.add_attr();
        attr->set_name(name);
        attr->set_uint64_val(value);
    }

    /// What Chakra has no field for.
    void describe(chakra::Node& node, const Json& json) const {
        text(*node.add_attr(), "overlap_operator", json.dump());
        unsigned_integer(node, "overlap_place", ids_.size() - 1);
    }

    template <class Message>
    void append(const Message& message) {
        google::protobuf::io::StringOutputStream out(&bytes_);
        google::protobuf::io::CodedOutputStream coded(&out);
        coded.WriteVarint64(message.ByteSizeLong());
        message.SerializeToCodedStream(&coded);
    }

    std::int64_t ranks_, rank_;
    std::string bytes_;
    std::uint64_t next_ = 0;
    std::vector<std::vector<std::uint64_t>> ids_;  ///< by operator: its nodes on this rank
};

}  // namespace

std::vector<std::string> to_chakra(const Workload& given, int ranks) {
    if (given.ranks > 0 && given.ranks != ranks)
        throw UserError("workload '" + given.name + "' is for " + std::to_string(given.ranks) +
                        " GPUs, not for " + std::to_string(ranks));
    const Workload workload{given.name, given.description, given.operators(ranks), given.ranks,
                            given.list_order};
    const Json json = to_json(workload).at("operators");
    const auto& operators = std::get<std::vector<Operator>>(workload.content);
    for (const Operator& op : operators)
        if (const auto* collective = std::get_if<CollectiveWork>(&op.work);
            collective != nullptr && !collective->group.is_all())
            throw UserError(
                "workload '" + given.name + "': operator '" + op.name +
                "' is a collective of groups, which cannot be written; expected collectives of all GPUs");
    std::vector<std::string> files;
    for (int rank = 0; rank < ranks; ++rank) {
        RankFile file(workload, ranks, rank);
        for (std::size_t i = 0; i < operators.size(); ++i) {
            Json op = json[i];
            op.erase("needs");
            file.add(operators[i], op);
        }
        files.push_back(std::move(file).content());
    }
    return files;
}

}  // namespace overlap
