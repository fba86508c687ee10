#include <array>

#include "sim/core/shown.hpp"
#include "sim/engine/engine.hpp"

namespace overlap {

std::unique_ptr<Engine> make_simgrid_engine();
std::unique_ptr<Engine> make_flow_engine();

std::span<const EngineEntry> engines() {
    static const std::array<EngineEntry, 2> entries{{
        {"simgrid", "SimGrid parallel tasks (ptask_L07, fair bottleneck), one simulation a process.",
         make_simgrid_engine},
        {"flow", "Native fluid engine: bottleneck max-fair rates, re-solved where an event touched them.",
         make_flow_engine},
    }};
    return entries;
}

std::unique_ptr<Engine> make_engine(const std::string& name) {
    std::vector<std::string> names;
    for (const EngineEntry& entry : engines()) {
        if (entry.name == name) return entry.make();
        names.push_back(entry.name);
    }
    throw UserError("engine " + in_quotes(name) + " is not known" + suggestion(name, names));
}

}  // namespace overlap
