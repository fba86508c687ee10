#pragma once

namespace overlap {

/// Parses the command line and runs the command. Returns the exit code: 0, or 3 where a comparison is outside
/// its tolerance. User mistakes throw UserError.
int run_command_line(int argc, char** argv);

}  // namespace overlap
