#pragma once

#include <string>
#include <string_view>

namespace overlap::fuzz {

/// JSON text with one to three of its values replaced, removed, doubled, nested or renamed: byte by byte, a
/// fuzzer would seldom keep it JSON. Empty where `text` is no JSON. The same seed, the same result.
std::string mutated_json(std::string_view text, unsigned seed);

/// `text` with a few bytes changed, left out, repeated or put in.
std::string mutated_bytes(std::string_view text, unsigned seed);

}  // namespace overlap::fuzz
