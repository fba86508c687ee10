#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace overlap::fuzz {

/// Files of a sweep's output folder as one text: a line "=== NAME" before each. Files that are not in the
/// text are those of a real sweep after two of four points, so that an input of
/// one file is read beside good ones.
std::vector<std::string> sweep_folders();

/// Unpacks such a text and resumes the sweep like `sim sweep --resume`, but runs no point.
void resume_sweep(const std::filesystem::path& packed);
/// Unpacks such a text and makes the page and the plots of `sim report`.
void report_sweep(const std::filesystem::path& packed);

}  // namespace overlap::fuzz
