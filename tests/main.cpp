// Simulations run in forked processes, which would inherit Catch's signal handlers and report there.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
