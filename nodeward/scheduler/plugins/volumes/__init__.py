"""What the volume plugins share: claims and volumes as assumed, what of them a node can use, and binding them."""
