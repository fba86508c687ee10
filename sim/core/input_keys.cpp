#include "sim/core/input_keys.hpp"

namespace overlap {

std::string non_empty_text(ConfigObject& from, const std::string& key) {
    std::string text = from.text(key);
    if (text.empty()) from.fail(key, "is empty, expected text");
    return text;
}

std::vector<std::string> non_empty_texts(ConfigObject& from, const std::string& key) {
    std::vector<std::string> texts = from.texts(key);
    if (contains(texts, ""))
        from.fail(key + "/" + std::to_string(place_of(texts, "")), "is empty, expected text");
    return texts;
}

}  // namespace overlap
