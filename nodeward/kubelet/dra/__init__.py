"""Dynamic resource allocation on a node: claims of pods are prepared by drivers, and unprepared when pods end.

`DRAManager` is the entry; pod workers call it. The pure parts are `skipping` (which drivers need not be called,
KEP-5945), `claim_info` (what is known of a claim) and `claim_checkpoint` (the bytes on the disk).
"""
