"""From a path to the values registered for it. This room has nothing of handlers."""
