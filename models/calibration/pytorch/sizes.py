"""Sizes of a transformer layer from a model's config.json of configs/models."""
import json
import pathlib

MODELS = pathlib.Path(__file__).resolve().parents[3] / "configs" / "models"


class Sizes:
    """Sizes of a layer with gated SiLU and RMS norms of a GPU of `ranks`, from a model's config.json."""

    def __init__(self, name, ranks):
        config = json.loads((MODELS / (name + ".json")).read_text())
        self.hidden, self.inner = config["hidden_size"], config["intermediate_size"] // ranks
        heads = config["num_attention_heads"]
        self.head = config.get("head_dim") or self.hidden // heads
        self.heads, self.kv_heads = heads // ranks, config.get("num_key_value_heads", heads) // ranks
