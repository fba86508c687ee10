#pragma once

#include <string>
#include <vector>

namespace overlap {

/// The reason for a failure, in one line, and whether it is a fault of the program.
struct Failure {
    std::string reason;
    bool ours = false;                    ///< fault of the program (exit code 1); otherwise of its input (2)
    std::vector<std::string> lines = {};  ///< each of several mistakes that `reason` holds
};

/// Describes the exception being handled. Contract: called in a catch block.
Failure current_failure();

}  // namespace overlap
