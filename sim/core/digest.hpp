#pragma once

#include <istream>
#include <string>

namespace overlap {

/// SHA-256 of what is left of a stream, in lower-case hexadecimal.
std::string sha256_of(std::istream& in);

}  // namespace overlap
