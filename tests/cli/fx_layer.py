"""A layer of which fx_graph.json is the graph: scripts/fx_operators record tests/cli/fx_layer.py:layer tests/cli/fx_graph.json"""
import torch


def layer():
    """One rank of eight of a transformer layer: 4096 tokens, hidden size 8192, 8 heads of 128, MLP of 3584, bf16."""
    def forward(x, norm, qkv, out, gate, up, down):
        h = torch.nn.functional.layer_norm(x, (8192,), norm)
        q, k, v = (h @ qkv).view(4096, 3, 8, 128).permute(1, 2, 0, 3).unbind(0)
        probabilities = torch.softmax(q @ k.transpose(1, 2) * 128 ** -0.5, -1)
        x = x + (probabilities @ v).transpose(0, 1).reshape(4096, 1024) @ out
        h = torch.nn.functional.layer_norm(x, (8192,), norm)
        return x + torch.nn.functional.linear(torch.nn.functional.silu(h @ gate) * (h @ up), down)

    def of(*sizes):
        return torch.empty(*sizes, dtype=torch.bfloat16, device="meta")
    return forward, (of(4096, 8192), of(8192), of(8192, 3072), of(1024, 8192), of(8192, 3584), of(8192, 3584), of(8192, 3584))
