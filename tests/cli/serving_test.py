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
        self.assertEqual((served["concurrency"], served["running_sequences"]), (50, 50))
        # 32 layers of 4 heads of 128 keys and values in 2 bytes on each of 2 GPUs; 141 GB less half of 8 GB of weights.
        a_sequence = 32 * 2 * 4 * 128 * 2 * 2500
        self.assertAlmostEqual(served["fitting_sequences"] / ((141e9 - 4.3e9) / a_sequence), 1, delta=0.02)

    def test_keys_and_values_in_8_bits(self):
        wide, narrow = (self.result(*MODEL, "--phase", "serve", "--isl", "16000", "--concurrency", "64", "--kv-cache-dtype", kind)
                        for kind in ("bf16", "fp8"))
        self.assertLess(narrow["tpot_serial_us"], 0.8 * wide["tpot_serial_us"])
        self.assertAlmostEqual(narrow["fitting_sequences"] / wide["fitting_sequences"], 2, delta=0.02)

    def test_too_many_sequences_wait(self):
        load = [*MODEL, "--phase", "serve", "--isl", "100000", "--osl", "1000", "--concurrency"]
        many = self.result(*load, "64")
        fitting = many["fitting_sequences"]
        self.assertLess(fitting, 64)
        self.assertEqual((many["concurrency"], many["running_sequences"]), (64, fitting))
        self.assertIn(f"{fitting} of 64 sequences fit and run; the others wait", "\n".join(many["notes"]))
        few = self.result(*load, str(fitting))
        self.assertEqual(many["tpot_serial_us"], few["tpot_serial_us"])
        self.assertEqual(many["tokens_per_s_serial"], few["tokens_per_s_serial"])
        # vLLM begins more and pauses some.
        preempting = self.result(*load, "64", "--server", "vllm")
        self.assertEqual(preempting["running_sequences"], 64)
        self.assertIn("others are paused at times", "\n".join(preempting["notes"]))
        none = self.result("model", "llama3_1_405b", "--topology", "h100_2", "--dtype", "fp8", "--phase", "serve", "--concurrency", "4")
        self.assertEqual(none["fitting_sequences"], 0)
        self.assertIn("does not fit: not one sequence beside the weights", "\n".join(none["notes"]))

    def test_a_servers_kernels(self):
        load = ["model", "llama3_8b", "--phase", "serve", "--concurrency", "16"]
        any_of, llm, vllm = (self.result(*load, "--topology", "h200_2", *server)
                             for server in ((), ("--server", "tensorrt_llm"), ("--server", "vllm")))
        self.assertNotIn("server", any_of)
        self.assertEqual((llm["server"], vllm["server"]), ("tensorrt_llm", "vllm"))
        # Caches of 8 bits are priced by TensorRT-LLM's operator, which rotates, too.
        names = [[one["name"] for one in report["steps"]["decode"]["lists"][0]["operators"]] for report in (any_of, llm)]
        self.assertIn("rotary", names[0])
        fused = ("rotary", "attention_norm", "mlp_norm", "residual")  # by its attention, by its all-reduces
        self.assertEqual([name for name in names[0] if name not in fused], names[1])
        # Half the bytes of a sequence, in 0.9 of what weights leave.
        self.assertAlmostEqual(llm["fitting_sequences"] / any_of["fitting_sequences"], 2 * 0.9, delta=0.02)
        self.assertEqual({part["name"]: part["library"] for part in llm["confidence"]["parts"] if "attention" in part["name"]},
                         {"attention fp8": "tensorrt_llm"})
        whole = [one["params"].get("algorithm") for one in llm["steps"]["decode"]["lists"][0]["operators"]
                 if one.get("schedule") == "serial"]
        self.assertEqual(whole, ["tensorrt_llm"] * 2)
        self.assertIn("attention, grouped GEMMs, all-reduces (tensorrt_llm, library), norms within all-reduces, "
                      "8-bit keys and values are its own",
                      "\n".join(llm["notes"]))
        # What the device has no fit of stays at the default, and a note says so.
        self.assertEqual(vllm["confidence"]["parts"][1]["library"], any_of["confidence"]["parts"][1]["library"])
        self.assertEqual(vllm["tpot_serial_us"], any_of["tpot_serial_us"])
        self.assertIn("of its attention, grouped GEMMs, all-reduces there is no fit here", "\n".join(vllm["notes"]))
        amd = self.result(*load, "--topology", "mi300x_8", "--server", "vllm")
        self.assertIn("all-reduces (one_shot, two_shot, library) are its own", "\n".join(amd["notes"]))
        self.assert_refused([*MODEL, "--phase", "serve", "--server", "vlm"], "vlm not in {vllm,sglang,tensorrt_llm}")

    def test_mistakes(self):
        for flags, message in [
            (["--phase", "serve", "--tokens", "8"], "--tokens is not for --phase serve"),
            (["--phase", "serve", "--mixed", "2"], "--mixed is not for --phase serve"),
            (["--phase", "prefill", "--draft", "2"], "--draft and --mixed need --phase decode"),
            (["--phase", "decode", "--draft", "2", "--accepted", "4"], "--accepted is from 1 to --draft + 1, 3"),
            (["--phase", "serve", "--dp", "2"], "--dp is not for --phase serve"),
            (["--phase", "serve", "--html", "page.html"], "writes no file"),
            (["--phase", "serve", "--format", "csv"], "allowed: text, json"),
            (["--phase", "decode", "--concurrency", "8"], "are for --phase serve"),
            (["--phase", "decode", "--server", "vllm"], "--server is for --phase serve"),
            (["--phase", "serve", "--tp", "1"], "--tp 1 leaves 2 copies of the model"),
        ]:
            self.assert_refused([*MODEL, *flags], message)
        self.assert_refused(["sensitivity", *MODEL, "--phase", "serve"], "prefill or decode")
        self.assert_refused(["sensitivity", *MODEL, "--phase", "decode", "--server", "vllm"], "--server is for --phase serve")

    def decode_step(self, *flags):
        step = self.result(*MODEL, "--phase", "decode", "--sequence", "4096", *flags)["steps"][0]
        return step, {one["name"]: one["serial_us"] for one in step["lists"][0]["operators"]}

    def test_drafted_tokens(self):
        (drafted, its), (few, its_few), (many, its_many) = (
            self.decode_step("--tokens", tokens, *draft) for tokens, draft in (("8", ("--draft", "3")), ("8", ()), ("32", ())))
        self.assertAlmostEqual(its["gate_up"], its_many["gate_up"])  # 8 sequences of 1 + 3 tokens are 32 rows
        self.assertLess(its["attention"], 1.1 * its_few["attention"])  # which read the keys of 8
        self.assertGreater(its_many["attention"], 2 * its_few["attention"])
        # All four tokens are gained, or two of them.
        self.assertAlmostEqual(drafted["tokens_per_s_serial"], 32 / drafted["serial_us"] * 1e6)
        half = self.decode_step("--tokens", "8", "--draft", "3", "--accepted", "2")[0]
        self.assertEqual(half["serial_us"], drafted["serial_us"])
        self.assertAlmostEqual(half["tokens_per_s_serial"], drafted["tokens_per_s_serial"] / 2)
        served, plain = (self.result(*MODEL, "--phase", "serve", "--concurrency", "8", *draft)
                         for draft in (("--draft", "3", "--accepted", "2"), ()))
        step = served["steps"]["decode"]["serial_us"]
        self.assertEqual(served["steps"]["prefill"], plain["steps"]["prefill"])
        self.assertAlmostEqual(served["tpot_serial_us"] - step / 2, plain["tpot_serial_us"] - plain["steps"]["decode"]["serial_us"])

    def test_a_chunk_of_a_prompt_beside_answers(self):
        mixed, its = self.decode_step("--tokens", "8", "--mixed", "504", "--cool")
        self.assertAlmostEqual(its["gate_up"], self.decode_step("--tokens", "512", "--cool")[1]["gate_up"])
        self.assertAlmostEqual(its["attention"], self.decode_step("--tokens", "8", "--cool")[1]["attention"])
        # 504 tokens, each of which sees 2048, have as many pairs as a whole prompt of √(2 · 504 · 2048) = 1437.
        whole = self.result(*MODEL, "--phase", "prefill", "--tokens", "1437", "--sequence", "1437", "--cool")["steps"][0]["lists"][0]
        (attention,) = (one["serial_us"] for one in whole["operators"] if one["name"] == "attention")
        self.assertAlmostEqual(its["chunk_attention"], attention)
        self.assertAlmostEqual(mixed["tokens_per_s_serial"], 8 / mixed["serial_us"] * 1e6)

    def test_published_servers(self):
        # sim/transformer/serving.md has the errors of more rows.
        for name, most in (("h100/vllm/Llama", 6), ("h200/vllm/Llama", 6), ("b200/vllm/Llama-3.1-70B/fp4", 10),
                           ("h200/sglang/DeepSeek", 12), ("h200/vllm/gpt", 12)):
            (rows,) = serving.groups(12, name).values()
            self.assertGreaterEqual(len(rows), 3)
            self.assertLess(serving.summary([serving.with_prediction(row) for row in rows])["mean"], most)


if __name__ == "__main__":
    unittest.main()
