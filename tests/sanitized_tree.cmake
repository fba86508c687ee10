# Read by CTest in the release tree: the tests of the sanitized tree, in the same summary.
set(sanitized_tree "${CMAKE_CURRENT_LIST_DIR}/../build/sanitize/tests")
if(EXISTS "${sanitized_tree}/unit_tests")
    subdirs("${sanitized_tree}")
else()
    add_test(sanitized_tree "${sanitized_tree}/unit_tests")  # fails: scripts/test builds it
endif()
