"""What each effect of one device is worth (sim/engine/README.md): the error of measured makespans without it."""
import json

from sim_case import ROOT, SimTestCase

# Effect: what switches it off, and by how many points the mean error rises at least, of 4 or of 2 H200.
EFFECTS = {
    "pulls wait for the sender's engine": ({"dma.pulls_served_by": "receiver"}, 3.0, "h200_4"),
    "GEMMs keep their compute units": ({"launch.residency": "shared"}, 2.0, "h200_4"),
    "pushes run in no fixed order": ({"dma.order": "fifo"}, 1.0, "h200_4"),
    "an engine that turns to another stream": ({"dma.switch_us": 0}, 0.3, "h200_4"),
    "an event follows a kernel": ({"launch.event_us": 0}, 0.2, "h200_4"),
    "late thread blocks get little cache": (
        {"copy_kernel.peer_loads_bytes": 0, "copy_kernel.local_loads_bytes": 0}, 0.5, "h200_2"),
    "ends of pulls are polled for": (
        {"dma.poll_us": 0.1, "dma.first_poll_us": 0.1}, 0.2, "h200_2"),
    "late thread blocks share compute units": ({"copy_kernel.blocks_per_unit": 1}, 1.0, "h200_2"),
    "copy kernels are slower beside GEMMs": (
        {"copy_kernel.rate_beside_gemms": 1}, 0.2, "h200_2"),
    "pushes from all to all lose a share of a link": ({"copy_kernel.crossing_loss": 0}, 0.1, "h200_4"),
}


class EffectsWorth(SimTestCase):
    def mean_error(self, system, what_if):
        """In percent, over the measured cases of a system on a machine that is changed."""
        changes = {f"device.{key}": value for key, value in what_if.items()}
        lines = []
        for path in sorted((ROOT / "traces" / system / "overlap").glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                case = json.loads(line)
                if "scenario" in case and changes:
                    case["scenario"]["what_if"] = changes
                lines.append(json.dumps(case))
        done = self.sim("compare", self.file("cases.jsonl", "\n".join(lines)), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["not_predicted"], [])
        return 100 * report["all"]["mean_abs"]

    def test_predictions_are_worse_without_each(self):
        with_all = {system: self.mean_error(system, {}) for system in ("h200_2", "h200_4")}
        for name, (what_if, least, system) in EFFECTS.items():
            with self.subTest(effect=name):
                self.assertGreater(self.mean_error(system, what_if) - with_all[system], least)
