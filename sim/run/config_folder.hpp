#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/cost_model.hpp"
#include "sim/schedules/host.hpp"
#include "sim/schedules/schedule.hpp"
#include "sim/topology/clusters.hpp"
#include "sim/topology/topology.hpp"

namespace overlap {

/// The folder of shipped configs. Finds the files that users name.
class ConfigFolder {
public:
    explicit ConfigFolder(std::filesystem::path root) : root_(std::move(root)) {}
    /// $OVERLAP_CONFIGS; else share/overlap/configs of the installation, or configs/ of the source tree, that the
    /// program is in; else those of the build. Throws UserError if there is none.
    static ConfigFolder standard();

    /// This folder, where a name may also be that of a file in `folder`, with or without ".json": of a file
    /// beside the one that names it.
    ConfigFolder with_files_in(std::filesystem::path folder) const;
    /// A file of that name there; empty if there is none.
    std::filesystem::path file_beside(const std::string& name) const;
    /// `name` in that folder, whether there is such a file or not.
    std::filesystem::path path_beside(const std::string& name) const { return beside_ / name; }
    /// Files there, or in folders below, that a shell's pattern names, in natural order.
    std::vector<std::string> files_beside(const std::string& pattern) const;

    /// `name` as a path if such a file exists (also beside, see with_files_in), else `<root>/<kind>/<name>` with or
    /// without ".json". A folder called `name` is taken only if the configs have no such name. `kind`: topologies,
    /// devices, calibrations or workloads. Throws UserError with the nearest name.
    std::filesystem::path find(const std::string& kind, const std::string& name) const;
    /// Names of the files of a kind, without ".json", and of clusters among topologies; sorted.
    std::vector<std::string> names(const std::string& kind) const;
    /// The clusters that clusters.json lists; none in older folders.
    Clusters clusters() const;
    /// The topology file that find() gives, or of a cluster. Throws UserError as find() does.
    ConfigFile topology_file(const std::string& name) const;

    const std::filesystem::path& root() const { return root_; }
    /// Where the files of a kind are.
    std::filesystem::path folder(const std::string& kind) const { return root_ / kind; }

    /// The topology that stands for a device, a file or a name: DEVICE_8; else of its others the one node with most
    /// GPUs, else the largest of several nodes; of a file that is not shipped, among the topologies beside it. Throws
    /// UserError.
    std::string topology_of(const std::string& device) const;
    /// The topology file DEVICE_<gpus> with one node and most GPUs; null if there is none.
    Json largest_machine(const std::string& device) const;

    /// Folders of configs/experiments, one for each published system, sorted.
    std::vector<std::string> published_systems() const;
    std::filesystem::path experiments() const { return root_ / "experiments"; }
    /// How GEMMs of devices are calibrated.
    std::filesystem::path recipes() const { return root_ / "calibrations" / "recipes"; }

    /// The folder of measurements: traces/ beside the configs.
    std::filesystem::path traces() const { return std::filesystem::absolute(root_).parent_path() / "traces"; }

    /// One of schedules(), or a preset of `schedules` (see read_preset): by name, or a file.
    SchedulePtr schedule(const std::string& name) const;
    Host host(const std::string& name) const;
    Topology topology(const std::string& name) const;
    MachineFiles machine_files(const std::string& topology, const WhatIf& what_if = {}) const;
    /// The machine of a topology, for single kernels (`sustained` 0).
    Machine machine(const std::string& topology, const WhatIf& what_if = {}) const;
    /// The device with its calibration applied (see calibration_of).
    DeviceSpec device(const std::string& name) const;
    Calibration calibration(const std::string& device) const;
    ConfigFile calibration_file(const std::string& device) const;

private:
    std::filesystem::path root_;
    std::filesystem::path beside_;  ///< empty: nowhere
};

}  // namespace overlap
