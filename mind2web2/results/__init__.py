"""Results: result files, whether they still hold, summaries of tasks and agents."""
