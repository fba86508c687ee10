#include "sim/core/digest.hpp"

#include <nettle/sha2.h>

#include <array>

namespace overlap {

std::string sha256_of(std::istream& in) {
    sha256_ctx digest;
    sha256_init(&digest);
    std::array<char, 1 << 16> block;
    while (in.read(block.data(), block.size()) || in.gcount() > 0)
        sha256_update(&digest, static_cast<std::size_t>(in.gcount()),
                      reinterpret_cast<const std::uint8_t*>(block.data()));
    std::array<std::uint8_t, SHA256_DIGEST_SIZE> bytes;
    sha256_digest(&digest, bytes.size(), bytes.data());
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

}  // namespace overlap
