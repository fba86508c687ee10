"""Models whose training iterations scripts/training_workloads writes."""
