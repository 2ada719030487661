"""Devices of ResourceSlices."""
