#pragma once

namespace overlap {

/// Parses the command line and runs the command. Returns the exit code: 0, or 3 if a comparison is outside
/// its tolerance. Mistakes of the user throw UserError.
int run_command_line(int argc, char** argv);

}  // namespace overlap
