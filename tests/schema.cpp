#include "tests/schema.hpp"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "tests/test_support.hpp"

namespace overlap::test {
namespace {

/// valijson says {"<root>", "[\"dma\"]", "[0]"}; a user reads /dma/0.
std::string json_pointer(const std::vector<std::string>& context) {
    std::string pointer;
    for (std::size_t i = 1; i < context.size(); ++i) {
        std::string part = context[i];
        for (const char c : {'[', ']', '"'}) part.erase(std::remove(part.begin(), part.end(), c), part.end());
        pointer += '/' + part;
    }
    return pointer.empty() ? "(whole file)" : pointer;
}

}  // namespace

struct Schema::Parsed {
    nlohmann::json text;
    valijson::Schema schema;
};

Schema::Schema(const std::string& name) : parsed_(std::make_unique<Parsed>()) {
    parsed_->text = read_json_file(source_folder / "configs" / "schema" / (name + ".schema.json"));
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(parsed_->text),
                                            parsed_->schema);
}
Schema::~Schema() = default;

std::string Schema::errors(const nlohmann::json& sample, const std::string& file) const {
    valijson::ValidationResults results;
    valijson::Validator().validate(parsed_->schema, valijson::adapters::NlohmannJsonAdapter(sample),
                                   &results);
    std::string lines;
    valijson::ValidationResults::Error error;
    while (results.popError(error))
        lines += file + ": " + json_pointer(error.context) + ": " + error.description + '\n';
    return lines;
}

}  // namespace overlap::test
