#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/core/operators.hpp"
#include "sim/core/units.hpp"

namespace overlap {

struct GemmMeasurement {
    GemmShape shape;
    Seconds time;        ///< kernel time
    double weight = 1;   ///< in the fit; 1 for a row of a table
    Seconds busy;        ///< how long the GPU has multiplied without a pause; 0: the length of the kernel
    int campaign = 0;    ///< 0: the table's main campaign; other campaigns have their own compute rate
    int by_library = 0;  ///< kernel library 1, 2, … of the filter; 0: none of them, or not distinguished
    int units = 0;       ///< compute units that a mask left to the kernel; 0: all
    bool warm = false;   ///< B lay in a cache
    Seconds gap = {};    ///< in `time`: the part of a pause between runs of the program that measured it
};

/// Texts in a column that tell rows apart.
struct RowMarks {
    std::string column = "";
    std::vector<std::string> texts = {};  ///< marks of campaigns or libraries 1, 2, …
    std::vector<std::string> names = {};  ///< of the same libraries, as prices show them
};

/// A pause between runs, each of one GEMM on each of 1 to 5 copies of B, as many as exceed `cache`.
struct RunGap {
    Seconds pause;
    Bytes cache;
};

/// Selects rows of a CSV table.
struct GemmTableFilter {
    DType dtype = DType::bf16;                 ///< given to every row
    std::string time_column = "us";            ///< column of the time in microseconds
    std::map<std::string, std::string> where;  ///< column → the only accepted text
    Seconds shortest = microseconds(8);        ///< shorter kernels are mostly launch
    std::int64_t alignment = 1;  ///< N and K must be multiples of it; misaligned sizes use other kernels
    RowMarks campaigns = {};     ///< rows without a mark are campaign 0
    RowMarks libraries = {};
    std::array<std::string, 3> shape_columns{"M", "N", "K"};
    double us = 1;                  ///< microseconds in one of the time column
    std::string units_column = "";  ///< column of the compute units that a mask left
    bool median = false;            ///< of rows of equal shapes, not the fastest
    int campaign = 0;               ///< of all rows
    double weight = 1;              ///< of each row in the fit
    Bytes warm_below = {};  ///< operands B of fewer bytes stayed in a cache from one repetition to the next
    RunGap run_gap = {};
};

/// Rows of a CSV file with a header line and the columns M, N, K and time, sorted by (N, K, M). Of
/// equal shapes (and units) the fastest row is kept, as a tuned library would run it, or the median. Quotes are not
/// supported (the tables have none). Throws UserError "file:line: …" for a missing column, a short row, or a value
/// that is no positive number.
std::vector<GemmMeasurement> read_gemm_table(const std::filesystem::path& path,
                                             const GemmTableFilter& filter);

}  // namespace overlap
