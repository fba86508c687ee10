#pragma once

#include <string>

namespace overlap {

/// Why something ended, in one line, and whose fault it is.
struct Failure {
    std::string reason;
    bool ours = false;  ///< a fault of the program (exit code 1), else of what it was given (2)
};

/// Of the exception that is being handled. Contract: called in a catch block.
Failure current_failure();

}  // namespace overlap
