"""From a path to the values registered for it. This package has nothing of handlers."""
