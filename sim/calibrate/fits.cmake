# Included by the top CMakeLists.txt.
# Fits of the models to measurements: a third of the time that all of this takes to build, for sim calibrate alone.
add_library(overlap_fits STATIC
    sim/calibrate/fits/error_classes.cpp
    sim/calibrate/fits/fit_device.cpp
    sim/calibrate/fits/fit_gemm.cpp
    sim/calibrate/fits/gemm_calibration.cpp
    sim/calibrate/fits/gemm_classes.cpp
    sim/calibrate/fits/gemm_contenders.cpp
    sim/calibrate/fits/gemm_json.cpp
    sim/calibrate/fits/gemm_libraries_fit.cpp
    sim/calibrate/fits/gemm_validation.cpp
    sim/calibrate/fits/measured_calibration.cpp
    sim/calibrate/fits/robust_fit.cpp
    sim/calibrate/measurements/measured_links.cpp
    sim/calibrate/problems/beside_chains.cpp
    sim/calibrate/problems/device_problems.cpp
    sim/calibrate/problems/energy_of_work.cpp
    sim/calibrate/problems/gpu_speeds.cpp
    sim/calibrate/problems/interference_factors.cpp
    sim/calibrate/problems/library_beside_gemms.cpp
    sim/calibrate/problems/local_kernels.cpp
    sim/calibrate/problems/peer_copies.cpp
    sim/calibrate/recipes/gemm_prior.cpp
    sim/calibrate/recipes/gemm_recipes.cpp
    sim/calibrate/fits/kernel_fit.cpp
    sim/calibrate/fits/kernel_derivations.cpp
    sim/calibrate/fits/kernel_priors.cpp
    sim/calibrate/fits/kernel_tables.cpp
    sim/calibrate/recipes/kernel_recipes.cpp)
target_link_libraries(overlap_fits PUBLIC overlap PRIVATE overlap_options Threads::Threads)

# Ceres and its libraries take a quarter of the program's start: a fit loads this when it is asked for.
add_library(overlap_ceres MODULE sim/calibrate/fits/ceres_fit.cpp)
target_include_directories(overlap_ceres PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(overlap_ceres PRIVATE overlap_options Ceres::ceres)
target_link_options(overlap_ceres PRIVATE -Wl,--as-needed)
set_target_properties(overlap_ceres PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(overlap_fits overlap_ceres)
