"""Results as a log of Inspect, and the benchmark as a task of Inspect."""
