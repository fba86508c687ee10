#pragma once

#include <string>

namespace overlap::test {

/// Records that the running test case lacks data or a tool; the caller returns from the test case next. A
/// process whose test cases are all skipped exits with 77, which CTest lists as "Skipped". tests/main.cpp
/// prints a line "skipped: <how many> of <how many>: <why>" for each reason.
void skip_test(const std::string& why);

}  // namespace overlap::test
