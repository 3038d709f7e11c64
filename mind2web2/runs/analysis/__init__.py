"""Analyses of finished results: rankings of agents, leaves that flipped, bounds of scores; pure."""
