#pragma once

#include <dlfcn.h>

#include <type_traits>

namespace overlap::hip {

/// NVML, loaded at run time. Functions that it lacks, and all of them where there is none, stay null.
class NvmlLibrary {
public:
    NvmlLibrary() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
        int (*init)() = nullptr;
        load("nvmlInit_v2", init);
        if (init == nullptr || init() != 0) library_ = nullptr;
    }

    template <class Function>
    void load(const char* name, Function& function) const {
        function = reinterpret_cast<Function>(library_ ? dlsym(library_, name) : nullptr);
    }

private:
    void* library_;
};

}  // namespace overlap::hip
