#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace overlap::test {

/// A JSON Schema that ships, configs/schema/<name>.schema.json.
class Schema {
public:
    explicit Schema(const std::string& name);
    ~Schema();

    /// One line an error, "<file>: <JSON pointer>: <what is wrong>"; empty where the sample is valid.
    std::string errors(const nlohmann::json& sample, const std::string& file) const;

private:
    struct Parsed;  ///< valijson takes long to compile
    std::unique_ptr<Parsed> parsed_;
};

}  // namespace overlap::test
