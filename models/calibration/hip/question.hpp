#pragma once

#include <string>
#include <vector>

#include "models/calibration/hip/case_list.hpp"
#include "models/calibration/hip/json_line.hpp"
#include "models/calibration/hip/machine.hpp"

namespace overlap::hip {

/// What a case gave: samples, none where nothing could be counted, and more fields as the question's header
/// comment describes.
struct Result {
    std::vector<double> samples;
    JsonLine more = {};
    std::string unit = "us";
};

/// One kind of case, in its own file. `run` is called with the memory of the machine free to take, and throws
/// Skipped, WrongResult or GpuError.
struct Question {
    Kind kind;
    Result (*run)(Machine&, const Case&);
};

/// The machine can't do the case: noted in the results, no error.
struct Skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws Skipped unless there are so many GPUs that reach each other's memory.
void need_gpus(const Machine& machine, std::int64_t count);

double median(std::vector<double> samples);
double percentile_90(std::vector<double> samples);

/// Every question, in the order of the README.
const std::vector<Question>& questions();

}  // namespace overlap::hip
