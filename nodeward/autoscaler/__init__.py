"""What a cluster autoscaler must know of nodes that are not there yet: templates of node groups, nodes on their way."""
