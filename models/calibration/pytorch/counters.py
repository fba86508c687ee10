"""Clock, power and temperature of a GPU while a program runs, by NVML (Python package nvidia-ml-py)."""
import statistics
import threading
import time


class Counters:
    """Reads GPU `index`; every reading is None where the machine has no such counter."""

    def __init__(self, index=0):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.device = pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)
        except Exception:  # no library, no NVIDIA driver: measurements go on without counters
            self.nvml = None

    def read(self, name, *arguments):
        if self.nvml is None:
            return None
        try:
            return getattr(self.nvml, "nvmlDeviceGet" + name)(self.device, *arguments)
        except self.nvml.NVMLError:
            return None

    def energy_mJ(self):
        return self.read("TotalEnergyConsumption")

    def clock_MHz(self):
        return self.read("ClockInfo", self.nvml.NVML_CLOCK_SM) if self.nvml else None

    def temperature_C(self):
        return self.read("Temperature", self.nvml.NVML_TEMPERATURE_GPU) if self.nvml else None

    def power_limit_W(self):
        limit = self.read("EnforcedPowerLimit")
        return None if limit is None else limit / 1000


class Watch:
    """Mean power over a `with` block from the energy counter, and the median of clocks sampled every 5 ms."""

    def __init__(self, counters):
        self.counters, self.clocks, self.stop = counters, [], threading.Event()

    def __enter__(self):
        self.energy, self.begin = self.counters.energy_mJ(), time.perf_counter()
        self.sampler = threading.Thread(target=self.sample, daemon=True)
        self.sampler.start()
        return self

    def sample(self):
        while not self.stop.wait(0.005):
            clock = self.counters.clock_MHz()
            if clock is not None:
                self.clocks.append(clock)

    def __exit__(self, *_):
        lasted = time.perf_counter() - self.begin
        self.stop.set()
        self.sampler.join()
        energy = self.counters.energy_mJ()
        self.power_W = None if energy is None else round((energy - self.energy) / 1000 / lasted, 1)
        self.clock_MHz = statistics.median(self.clocks) if self.clocks else None
        self.temperature_C = self.counters.temperature_C()
