#pragma once

#include <span>
#include <string>

#include "sim/collectives/transfers.hpp"
#include "sim/core/config_reader.hpp"

namespace overlap {

/// Grain of the GEMMs of ring_chunked.
enum class GemmGrain { shard, chunk };
/// 1d: a shard is cut along its sharded dimension (contiguous pieces); 2d: along the other one (strided
/// pieces).
enum class CommShape { one_d, two_d };
/// uniform: the own shard is cut like the others; hetero: it is one GEMM of its own.
enum class Uniformity { uniform, hetero };
/// fused: one GEMM a step over all its pieces; unfused: one GEMM a piece.
enum class Granularity { fused, unfused };

/// Where a schedule of pieces stands in the space of FiCCO schedules (sim/schedules/README.md).
struct PiecePoint {
    CommShape shape = CommShape::one_d;
    Uniformity uniformity = Uniformity::hetero;
    Granularity granularity = Granularity::unfused;

    /// The pieces of a step do not lie in place as one block, but have to be brought together.
    bool staged() const {
        return granularity == Granularity::fused &&
               (uniformity == Uniformity::hetero || shape == CommShape::one_d);
    }
    friend bool operator==(const PiecePoint&, const PiecePoint&) = default;
};

inline const std::array<std::string, 2> gemm_grain_names{"shard", "chunk"};
inline const std::array<std::string, 2> comm_shape_names{"1d", "2d"};
inline const std::array<std::string, 2> uniformity_names{"uniform", "hetero"};
inline const std::array<std::string, 2> granularity_names{"fused", "unfused"};

/// Parameters of schedules, resolved: every field has its value. A schedule reads those that it lists.
struct ScheduleParams {
    int chunks = 1;
    TransferOptions transfers;
    bool scatter = true;
    GemmGrain gemm = GemmGrain::shard;
    PiecePoint point{CommShape::one_d, Uniformity::hetero, Granularity::fused};
    std::string algorithm = "direct";
    int gemm_cus = 0;  ///< compute units that GEMMs may use; 0: all
    CuMask cu_mask = CuMask::even;
    friend bool operator==(const ScheduleParams&, const ScheduleParams&) = default;
};

/// What a parameter is, for `sim explain` and the schema of run configs.
struct ParameterInfo {
    std::string name;
    std::string meaning;
    std::string allowed;
    std::string by_default;
    Json schema;  ///< of its value
};

/// All parameters, in the order in which they are read: a default follows from those before.
std::span<const ParameterInfo> schedule_parameters();

/// JSON schema of the "params" of a run config.
Json parameters_schema();

/// What a schedule takes, as far as its parameters depend on it.
struct ParameterUser {
    std::span<const std::string> accepted;  ///< names that may be given
    bool collective_first = true;  ///< the transfers feed the GEMMs, which decides the default direction
    bool single_stream = false;    ///< as ScheduleEntry::single_stream
};

/// Reads `given` (the "params" object of a run config) strictly: only accepted names. Throws UserError.
ScheduleParams read_parameters(ConfigObject given, const ParameterUser& user, const Topology& topology);

/// `options` for a collective of a group of GPUs: copy kernels with the default number of compute units take
/// the default for the peers of the group, which may be fewer than those of all GPUs.
TransferOptions transfers_in_group(TransferOptions options, const Topology& group);

/// The accepted parameters with their resolved values, as they go into every result.
Json to_json(const ScheduleParams& params, std::span<const std::string> accepted);

}  // namespace overlap
