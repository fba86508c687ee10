#include "sim/core/json_text.hpp"

#include <algorithm>
#include <set>

#include "sim/core/available_memory.hpp"
#include "sim/core/config_reader.hpp"
#include "sim/core/file_kind.hpp"
#include "sim/core/notices.hpp"
#include "sim/core/shown.hpp"

namespace overlap {
namespace {

/// Deepest nesting of arrays and objects in a file. Json copies, compares and writes values by recursion,
/// which would exhaust the stack.
constexpr std::size_t most_levels = 100;
/// Keys of one object. Json finds a key by comparing it with each, so that reading n keys takes n² steps.
constexpr std::size_t most_keys = 20'000;
constexpr std::size_t values_a_check = 65'536;  // values

/// Builds a value from the parser's events, in time that is linear in the text: nlohmann's own builder with a callback
/// walks over the whole array at the end of each object in it.
class JsonBuilder {
public:
    explicit JsonBuilder(std::string origin, bool (*keeps)(const Json&) = nullptr)
        : origin_(std::move(origin)), keeps_(keeps) {}

    Json take() && { return std::move(root_); }

    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(Json::number_integer_t value) { return add(value); }
    bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
    bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(Json::binary_t&) { return false; }  // JSON has none
    bool start_object(std::size_t) {
        if (skips(1)) return true;
        open_one(Json::object());
        keys_.emplace_back();
        return true;
    }
    bool key(std::string& name) {
        if (skipped_ > 0) return true;
        // Without the search for an equal key that operator[] makes.
        auto& members = open_.back()->get_ref<Json::object_t&>();
        if (is_known(members, name)) fail("key " + in_quotes(name) + " is given twice in one object");
        if (members.size() >= most_keys)
            fail("has an object of more than " + std::to_string(most_keys) + " keys, the most that are read");
        members.emplace_back(std::move(name), nullptr);
        member_ = &members.back().second;
        return true;
    }
    bool end_object() {
        if (skips(-1)) return true;
        if (is_element() && !keeps_(*open_.back())) *open_.back() = Json::object();
        keys_.pop_back();
        open_.pop_back();
        return true;
    }
    bool start_array(std::size_t) {
        if (skips(1)) return true;
        open_one(Json::array());
        return true;
    }
    bool end_array() {
        if (skips(-1)) return true;
        open_.pop_back();
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
        std::string reason = error.what();
        if (const auto end = reason.find("] "); end != std::string::npos) reason = reason.substr(end + 2);
        fail("not valid JSON: " + reason);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw UserError(one_line(origin_ + ": " + what));
    }

    /// Whether an object has the key. Few keys are compared one by one, more are put into a set.
    bool is_known(const Json::object_t& members, const std::string& name) {
        constexpr std::size_t few = 16;
        auto& keys = keys_.back();
        if (members.size() < few)
            return std::ranges::any_of(members, [&](const auto& member) { return member.first == name; });
        if (keys.empty())
            for (const auto& member : members) keys.insert(member.first);
        return !keys.insert(name).second;
    }

    void open_one(Json container) {
        if (open_.size() >= most_levels)
            fail("is nested more than " + std::to_string(most_levels) + " levels deep");
        add(std::move(container));
        open_.push_back(last_);
    }

    /// Whether an object in an array of the outermost object is open, and may be refused.
    bool is_element() const {
        return keeps_ != nullptr && open_.size() == 3 && open_[1]->is_array() && open_[2]->is_object();
    }
    /// Whether a refused object is read; `more`: arrays and objects that begin in it, or end.
    bool skips(int more) {
        if (skipped_ == 0) return false;
        skipped_ += more;
        return skipped_ > 0;
    }

    bool add(Json value) {
        if (skipped_ > 0) return true;
        // What a value takes besides a string's own text: an entry of its array or object, which grows by doubling, and
        // an allocation.
        constexpr std::size_t of_entry = 2 * sizeof(Json), of_member = 2 * sizeof(Json::object_t::value_type),
                              of_allocation = 48;
        const bool in_object = !open_.empty() && open_.back()->is_object();
        bytes_ += in_object ? of_member : of_entry;
        if (value.is_string()) bytes_ += of_allocation + value.get_ref<const std::string&>().size();
        if (value.is_structured()) bytes_ += of_allocation;
        if (++values_ % values_a_check == 0) check();
        if (open_.empty())
            last_ = &(root_ = std::move(value));
        else if (in_object)
            add_member(std::move(value));
        else
            last_ = &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
        return true;
    }

    void add_member(Json value) {
        last_ = &(*member_ = std::move(value));
        // The first two keys of an event tell most of what is refused, whose other keys need not be built.
        constexpr std::size_t that_tell = 2;
        if (is_element() && open_.back()->size() == that_tell && !last_->is_structured() &&
            !keeps_(*open_.back()))
            skipped_ = 1;
    }

    void check() {
        require_memory_for(origin_ + ": " + std::to_string(values_) + " values and more",
                           Bytes(static_cast<double>(bytes_)), available_);
        slow_.at([&] { return origin_ + ": reading, " + std::to_string(values_) + " values so far"; });
    }

    std::string origin_;
    bool (*keeps_)(const Json&);
    Json root_;
    std::vector<Json*> open_;                               ///< arrays and objects that have begun
    std::vector<std::set<std::string, std::less<>>> keys_;  ///< of each open object of many
    Json* last_ = nullptr;
    Json* member_ = nullptr;  ///< value of the key that was read last
    std::size_t values_ = 0, bytes_ = 0;
    int skipped_ = 0;  ///< arrays and objects that are open, from a refused object on
    Bytes available_ = available_memory();
    SlowNotice slow_;
};

}  // namespace

Json parse_json_keeping(std::string_view text, const std::string& origin,
                        bool (*keeps)(const Json& element)) {
    if (const std::string foreign = kind_of_text(text); !foreign.empty())
        throw UserError(origin + ": is " + foreign);
    JsonBuilder builder(origin, keeps);
    Json::sax_parse(text.begin(), text.end(), &builder);
    return std::move(builder).take();
}

Json parse_json(std::string_view text, const std::string& origin) {
    return parse_json_keeping(text, origin, nullptr);
}

}  // namespace overlap
