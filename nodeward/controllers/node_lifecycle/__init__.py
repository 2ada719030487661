"""Node lifecycle: who is alive, and which taints follow from what a node is and says (KEP-5233 included)."""
