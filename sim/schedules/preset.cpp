#include "sim/schedules/schedule.hpp"

#include <algorithm>
#include <optional>

#include "sim/core/file_kind.hpp"
#include "sim/core/input_keys.hpp"
#include "sim/core/ranges.hpp"

namespace overlap {
namespace {

/// Pairs of this collective, order and dimension; an absent key matches any.
struct Form {
    std::optional<CollectiveKind> collective;
    Order order = Order::collective_first;
    std::optional<ShardDim> shard_dim;

    bool fits(const Pair& pair) const {
        return pair.order == order && pair.collective == collective.value_or(pair.collective) &&
               pair.shard_dim == shard_dim.value_or(pair.shard_dim);
    }
};

/// A key that may be left out.
template <class V, std::size_t N>
InputKey<Form> choice_if_any(const std::string& key, std::optional<V> Form::*member,
                             const std::array<std::string, N>& names) {
    const auto read = [member, &names](ConfigObject& from, const std::string& name, Form& to) {
        to.*member = static_cast<V>(from.choice(name, names));
    };
    return InputKey<Form>(key, choice_of(names, "Any where it is absent."), read).optional();
}

struct Preset : ScheduleEntry {
    std::vector<Form> forms;
};

// clang-format off
InputKeys<Preset> preset_keys() {
    using P = Preset;
    static const std::vector<InputKey<Form>> form_keys{
        choice_if_any("collective", &Form::collective, collective_names),
        plain_field<&Form::order>("order", order_names, "As in a workload."),
        choice_if_any("shard_dim", &Form::shard_dim, shard_dim_names)};
    static const std::vector<InputKey<P>> keys{
        version_key<P>("schedule"),
        {"schedule", text_schema("A name of `sim list schedules`.", 1), [](ConfigObject& from, const std::string& key, P& to) {
            to = {schedules()[from.choice(key, mapped(schedules(), &ScheduleEntry::name))], {}};
        }},
        text_key<P>("name", &P::name, "That of the file."),
        text_key<P>("description", &P::summary, "What runs it, where that is published, and how it differs from this preset."),
        object_key<P>("params", &P::defaults, parameters_schema()),
        list_key<P>("workloads", &P::forms, "What it serves of what its schedule serves.", form_keys)};
    return keys;
}
// clang-format on

}  // namespace

ScheduleEntry read_preset(const ConfigFile& file) {
    require_kind(file.json, file.name, FileKind::schedule);
    ConfigObject config = file.view();
    Preset entry = read_keys<Preset>(config, preset_keys());
    entry.is_preset = true;
    const ConfigObject params = config.object("params");
    for (const std::string& key : params.keys())
        if (!entry.takes(key))
            params.fail(key, "is no parameter of this schedule" + suggestion(key, entry.parameters));
    entry.handles = [forms = entry.forms, served = entry.handles](const Workload& workload) {
        const Pair* pair = workload.pair();
        return pair != nullptr && served(workload) &&
               std::ranges::any_of(forms, [&](const Form& form) { return form.fits(*pair); });
    };
    return entry;
}

Json preset_schema() {
    return file_of_keys(
        "Preset",
        "A schedule as a library or a paper runs it: one of sim's schedules with parameters of its own.",
        preset_keys());
}

}  // namespace overlap
