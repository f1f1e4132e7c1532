"""All bindings of a configuration at once."""
