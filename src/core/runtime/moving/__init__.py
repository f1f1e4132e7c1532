"""A backup of one node's state, of either kind, written into a cluster."""
