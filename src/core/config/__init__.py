"""The configuration file: its content, how it is read, and its mistakes. No worker loads it."""
