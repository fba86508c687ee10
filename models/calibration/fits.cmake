# Included by the top CMakeLists.txt.
# Fits of the models to measurements: a third of the time that all of this takes to build, for sim calibrate alone.
add_library(overlap_fits STATIC
    models/calibration/fits/error_classes.cpp
    models/calibration/fits/fit_device.cpp
    models/calibration/fits/fit_gemm.cpp
    models/calibration/fits/gemm_calibration.cpp
    models/calibration/fits/gemm_classes.cpp
    models/calibration/fits/gemm_contenders.cpp
    models/calibration/fits/gemm_json.cpp
    models/calibration/fits/gemm_libraries_fit.cpp
    models/calibration/fits/gemm_validation.cpp
    models/calibration/fits/measured_calibration.cpp
    models/calibration/fits/robust_fit.cpp
    models/calibration/measurements/measured_links.cpp
    models/calibration/problems/beside_chains.cpp
    models/calibration/problems/device_problems.cpp
    models/calibration/problems/energy_of_work.cpp
    models/calibration/problems/gpu_speeds.cpp
    models/calibration/problems/interference_factors.cpp
    models/calibration/problems/library_beside_gemms.cpp
    models/calibration/problems/local_kernels.cpp
    models/calibration/problems/peer_copies.cpp
    models/calibration/recipes/gemm_prior.cpp
    models/calibration/recipes/gemm_recipes.cpp
    models/calibration/fits/kernel_fit.cpp
    models/calibration/fits/kernel_derivations.cpp
    models/calibration/fits/kernel_priors.cpp
    models/calibration/fits/kernel_tables.cpp
    models/calibration/recipes/kernel_recipes.cpp)
target_link_libraries(overlap_fits PUBLIC overlap PRIVATE overlap_options Threads::Threads)

# Ceres and its libraries take a quarter of the program's start: a fit loads this when it is asked for.
add_library(overlap_ceres MODULE models/calibration/fits/ceres_fit.cpp)
target_include_directories(overlap_ceres PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(overlap_ceres PRIVATE overlap_options Ceres::ceres)
target_link_options(overlap_ceres PRIVATE -Wl,--as-needed)
set_target_properties(overlap_ceres PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(overlap_fits overlap_ceres)
