# The commands, for the program and the Python module, and the program sim. Included by the top CMakeLists.txt.
add_library(overlap_commands STATIC
    sim/commands/cli.cpp
    sim/commands/command_line.cpp
    sim/commands/advise_command.cpp
    sim/commands/advise_trace.cpp
    sim/commands/batch.cpp
    sim/calibrate/command/calibrate.cpp
    sim/commands/chakra_command.cpp
    sim/calibrate/command/archive_validation.cpp
    sim/calibrate/command/calibrate_archive.cpp
    sim/calibrate/command/calibration_report.cpp
    sim/commands/compare.cpp
    sim/commands/completion.cpp
    sim/commands/cost.cpp
    sim/commands/import.cpp
    sim/commands/import_scenario.cpp
    sim/commands/import_traces.cpp
    sim/commands/list.cpp
    sim/commands/man_page.cpp
    sim/calibrate/command/measured_archive.cpp
    sim/commands/progress_reporter.cpp
    sim/commands/report.cpp
    sim/commands/reproduce_command.cpp
    sim/commands/model_command.cpp
    sim/commands/model_flags.cpp sim/commands/model_notes.cpp
    sim/commands/new_command.cpp
    sim/commands/new_topology.cpp
    sim/commands/other_runs.cpp
    sim/commands/run_command.cpp
    sim/commands/scenario_flags.cpp
    sim/commands/sensitivity_command.cpp
    sim/commands/schema.cpp
    sim/commands/sweep.cpp
    sim/commands/terminal.cpp
    sim/commands/trace_advice.cpp
    sim/commands/words.cpp
    sim/commands/search_command.cpp)
# What takes time is in the libraries.
target_compile_options(overlap_commands PRIVATE $<$<CONFIG:Release>:-O1>)
target_compile_definitions(overlap_commands PRIVATE OVERLAP_VERSION="${PROJECT_VERSION}")
target_link_libraries(overlap_commands PUBLIC overlap_fits CLI11::CLI11 PRIVATE overlap_options spdlog::spdlog)
# By itself, so that what has no sweep command (the Python module) does not need MPI.
set_source_files_properties(sim/commands/sweep.cpp sim/commands/cli.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

add_executable(sim sim/main.cpp)
target_link_libraries(sim PRIVATE overlap_commands overlap_options)
