"""A slow and obvious scheduler, written from the objects alone, to hold the real one against."""
