"""What the scheduler knows of nodes and running pods, in columns; and what it worked out for pods that are alike."""
