"""The configuration file: what it can say, how it is read, and what a program may not say given it.

For development and tools only: nothing that a worker loads imports this room.
"""
