"""Offers the check of reports to agents, by the Model Context Protocol."""
