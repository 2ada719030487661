"""Nodes that are a description: their services in memory, and what a command in one of their containers finds."""
