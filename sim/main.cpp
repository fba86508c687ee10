#include <iostream>

#include "sim/cli.hpp"
#include "sim/core/allocation.hpp"
#include "sim/core/errors.hpp"

int main(int argc, char** argv) {
    overlap::keep_freed_memory();
    try {
        return overlap::run_command_line(argc, argv);
    } catch (const overlap::UserError& error) {
        std::cerr << "sim: " << error.what() << '\n';
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "sim: internal error: " << error.what()
                  << " (please report the command line and this text)\n";
        return 1;
    }
}
