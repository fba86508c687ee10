"""A steady load on a server: the law of its times, what is refused, and published servers, to which nothing was fitted."""
import sys
import unittest

from sim_case import ROOT, SimTestCase

sys.path.insert(0, str(ROOT / "models/calibration"))
import serving  # noqa: E402

MODEL = ["model", "llama3_8b", "--topology", "h200_2", "--dtype", "fp8"]


class Serving(SimTestCase):
    def test_the_law(self):
        served = self.result(*MODEL, "--phase", "serve", "--isl", "2000", "--osl", "500", "--concurrency", "50")
        decode = self.result(*MODEL, "--phase", "decode", "--tokens", "50", "--sequence", "2250")["steps"][0]["serial_us"]
        prefill = self.result(*MODEL, "--phase", "prefill", "--tokens", "2000", "--sequence", "2000")["steps"][0]["serial_us"]
        self.assertAlmostEqual(served["tpot_serial_us"], decode + 50 / 500 * prefill)
        self.assertAlmostEqual(served["ttft_serial_us"], prefill + decode / 2)
        self.assertAlmostEqual(served["tokens_per_s_serial"], 50 / served["tpot_serial_us"] * 1e6)
        self.assertLessEqual(served["tpot_overlapped_us"], served["tpot_serial_us"])
        # 32 layers of 4 heads of 128 keys and values in 2 bytes on each of 2 GPUs; 141 GB less half of 8 GB of weights.
        a_sequence = 32 * 2 * 4 * 128 * 2 * 2500
        self.assertAlmostEqual(served["fitting_sequences"] / ((141e9 - 4.3e9) / a_sequence), 1, delta=0.02)

    def test_keys_and_values_in_8_bits(self):
        wide, narrow = (self.result(*MODEL, "--phase", "serve", "--isl", "16000", "--concurrency", "64", "--kv-cache-dtype", kind)
                        for kind in ("bf16", "fp8"))
        self.assertLess(narrow["tpot_serial_us"], 0.8 * wide["tpot_serial_us"])
        self.assertAlmostEqual(narrow["fitting_sequences"] / wide["fitting_sequences"], 2, delta=0.02)

    def test_too_many_sequences_are_told(self):
        served = self.result(*MODEL, "--phase", "serve", "--isl", "100000", "--concurrency", "64")
        self.assertIn(f"does not fit: {served['fitting_sequences']} of 64", "\n".join(served["notes"]))

    def test_mistakes(self):
        for flags, message in [
            (["--phase", "serve", "--tokens", "8"], "--tokens is not for --phase serve"),
            (["--phase", "serve", "--dp", "2"], "--dp is not for --phase serve"),
            (["--phase", "serve", "--html", "page.html"], "writes no file"),
            (["--phase", "serve", "--format", "csv"], "allowed: text, json"),
            (["--phase", "decode", "--concurrency", "8"], "are for --phase serve"),
            (["--phase", "serve", "--tp", "1"], "--tp 1 leaves 2 copies of the model"),
        ]:
            self.assert_refused([*MODEL, *flags], message)
        self.assert_refused(["sensitivity", *MODEL, "--phase", "serve"], "prefill or decode")

    def test_published_servers(self):
        # sim/transformer/serving.md has the errors of more rows.
        for name, most in (("h100/vllm/Llama", 6), ("h200/vllm/Llama", 6), ("b200/vllm/Llama-3.1-70B/fp4", 10),
                           ("h200/sglang/DeepSeek", 12), ("h200/vllm/gpt", 12)):
            (rows,) = serving.groups(12, name).values()
            self.assertGreaterEqual(len(rows), 3)
            self.assertLess(serving.summary([serving.with_prediction(row) for row in rows])["mean"], most)


if __name__ == "__main__":
    unittest.main()
