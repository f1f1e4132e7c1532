"""Tests that `core record` writes: what they call, and how an exchange becomes one."""
