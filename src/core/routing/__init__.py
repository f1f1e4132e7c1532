"""From a path to what was registered for it. This room knows no handlers."""
