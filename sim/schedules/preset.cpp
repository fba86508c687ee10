#include "sim/schedules/schedule.hpp"

#include <algorithm>
#include <optional>

#include "sim/core/file_kind.hpp"
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

Form read_form(ConfigObject config) {
    Form form;
    if (config.has("collective"))
        form.collective = static_cast<CollectiveKind>(config.choice("collective", collective_names));
    form.order = static_cast<Order>(config.choice("order", order_names));
    if (config.has("shard_dim"))
        form.shard_dim = static_cast<ShardDim>(config.choice("shard_dim", shard_dim_names));
    config.finish();
    return form;
}

}  // namespace

ScheduleEntry read_preset(const ConfigFile& file) {
    require_kind(file.json, file.name, FileKind::schedule);
    ConfigObject config = file.view();
    config.integer("schema", 1, 1);
    ScheduleEntry entry = schedules()[config.choice("schedule", mapped(schedules(), &ScheduleEntry::name))];
    entry.name = config.text("name");
    entry.summary = config.text("description");
    entry.is_preset = true;
    ConfigObject params = config.object("params");
    for (const std::string& key : params.keys())
        if (!entry.takes(key))
            params.fail(key, "is no parameter of this schedule" + suggestion(key, entry.parameters));
    entry.defaults = config.raw("params");
    std::vector<Form> forms;
    for (ConfigObject& form : config.objects("workloads")) forms.push_back(read_form(std::move(form)));
    config.finish();
    entry.handles = [forms, served = entry.handles](const Workload& workload) {
        const Pair* pair = workload.pair();
        return pair != nullptr && served(workload) &&
               std::ranges::any_of(forms, [&](const Form& form) { return form.fits(*pair); });
    };
    return entry;
}

}  // namespace overlap
