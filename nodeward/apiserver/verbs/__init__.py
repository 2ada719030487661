"""What can be done with objects: one file per verb."""
