#pragma once

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
    Seconds busy;        ///< how long the GPU has multiplied without a pause; 0: as long as the kernel lasts
    int campaign = 0;    ///< 0 is the table's main one; others have a compute rate of their own
    int by_library = 0;  ///< of the filter's kernel libraries: 1, 2, …; 0: none of them, or not told apart
};

/// Which rows of a CSV table are taken.
struct GemmTableFilter {
    DType dtype = DType::bf16;                 ///< given to every row
    std::string time_column = "us";            ///< microseconds
    std::map<std::string, std::string> where;  ///< column → the only text accepted
    double shortest_us = 8;                    ///< shorter kernels are launch and little else
    std::int64_t alignment = 1;        ///< N and K must be multiples: misaligned ones use other kernels
    std::string campaign_column = "";  ///< of the texts below; all other rows are campaign 0
    std::vector<std::string> campaigns = {};  ///< texts that mark campaigns 1, 2, …
    std::string column_of_libraries = "";
    std::vector<std::string> libraries = {};  ///< texts that mark kernel libraries 1, 2, …
};

/// Rows of a CSV file with a header line and columns M, N, K and the time, sorted by (N, K, M); of equal
/// shapes the fastest, as a tuned library would run it. Quotes are not supported (the tables have none).
/// Throws UserError "file:line: …" for a missing column, a short row, or a number that is none or not
/// positive.
std::vector<GemmMeasurement> read_gemm_table(const std::filesystem::path& path,
                                             const GemmTableFilter& filter);

}  // namespace overlap
