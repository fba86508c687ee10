"""A model's step, and advice for the pairs of its layer."""
import overlap

step = overlap.model("llama3_70b", "h200_8", tokens=4096, sequence_parallel=True)
print(f"llama3_70b: {step['steps'][0]['speedup']:.3f} x as fast with overlap")
advice = overlap.advise(topology="h200_8", workload=step, top=1)
for choice in advice["pairs"]["choices"]:
    print(choice["pair"])
