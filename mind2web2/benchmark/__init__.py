"""From a benchmark to a submission: download tasks, collect answers, hand results in."""
