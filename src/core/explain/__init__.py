"""The reason of a failure and how to fix it, in words. Loaded after a failure only."""
