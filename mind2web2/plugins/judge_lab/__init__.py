"""The plugin ``judge_lab``."""
