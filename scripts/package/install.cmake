# What `cmake --install` and `cpack` take: the program, its modules, configs, manual page, completions, and the library
# with its headers and CMake files. The program finds all by its own place (sim/core/installation.hpp).
foreach(shell bash zsh fish)
    list(APPEND shell_commands COMMAND sim completion ${shell} > completion.${shell})
endforeach()
add_custom_command(OUTPUT sim.1 completion.bash completion.zsh completion.fish
    COMMAND sim man > sim.1 ${shell_commands} DEPENDS sim VERBATIM)
add_custom_target(shell_files ALL DEPENDS sim.1)

set(config_folder lib/cmake/overlap)
install(TARGETS sim RUNTIME DESTINATION bin)
install(TARGETS overlap_simgrid overlap_ceres LIBRARY DESTINATION lib/overlap)
install(DIRECTORY configs DESTINATION share/overlap)
install(FILES LICENSE DESTINATION share/doc/overlap RENAME copyright)
install(FILES sim/report/page/third_party/LICENSE.d3 sim/report/page/third_party/LICENSE.plot DESTINATION share/doc/overlap)
install(FILES ${CMAKE_BINARY_DIR}/sim.1 DESTINATION share/man/man1)
install(FILES ${CMAKE_BINARY_DIR}/completion.bash DESTINATION share/bash-completion/completions RENAME sim)
install(FILES ${CMAKE_BINARY_DIR}/completion.zsh DESTINATION share/zsh/vendor-completions RENAME _sim)
install(FILES ${CMAKE_BINARY_DIR}/completion.fish DESTINATION share/fish/vendor_completions.d RENAME sim.fish)

install(TARGETS overlap EXPORT overlap ARCHIVE DESTINATION lib INCLUDES DESTINATION include/overlap include/overlap/models)
install(DIRECTORY sim models DESTINATION include/overlap FILES_MATCHING PATTERN "*.hpp"
    PATTERN hip EXCLUDE PATTERN commands EXCLUDE PATTERN python EXCLUDE)
install(EXPORT overlap NAMESPACE overlap:: DESTINATION ${config_folder} FILE overlap-targets.cmake)
include(CMakePackageConfigHelpers)
configure_package_config_file(scripts/package/overlap-config.cmake.in overlap-config.cmake
    INSTALL_DESTINATION ${config_folder} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(overlap-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/overlap-config.cmake ${CMAKE_BINARY_DIR}/overlap-config-version.cmake
    DESTINATION ${config_folder})

# cpack makes overlap_<version>_<architecture>.deb, with the dependencies that dpkg-shlibdeps finds.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # without the tests
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the overlap project")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, bash-completion")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ${python_package})
include(CPack)
