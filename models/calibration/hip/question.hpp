#pragma once

#include <string>
#include <vector>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/json_line.hpp"
#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

/// Result of a case: samples (none if nothing could be measured), and more fields, described in the header
/// comment of the question's file.
struct Result {
    std::vector<double> samples;
    JsonLine more = {};
    std::string unit = "us";
};

/// One kind of case, in its own file. `run` may take all of the machine's memory; it throws Skipped,
/// WrongResult or GpuError.
struct Question {
    Kind kind;
    Result (*run)(Machine&, const Case&);
};

/// Throws Skipped unless the machine has that many GPUs with access to each other's memory.
void need_gpus(const Machine& machine, std::int64_t count);

double median(std::vector<double> samples);
double percentile_90(std::vector<double> samples);

/// All questions, in the order of the README.
const std::vector<Question>& questions();

}  // namespace overlap::hip
