#pragma once

#include <span>
#include <string>

#include "sim/core/json.hpp"

namespace overlap {

/// A kind of file, or of output, that has a JSON schema.
struct FileFormat {
    std::string kind;
    Json (*schema)();
};

/// All of them, by name.
std::span<const FileFormat> file_formats();

/// The format whose schema has most of the keys of `json`, an object. Throws UserError if none has half of them.
const FileFormat& format_of(const Json& json, const std::string& file);

}  // namespace overlap
