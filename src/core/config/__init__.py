"""The configuration file: its content, how it is read, and the mistakes of a program against it.

For development and tools only: nothing that a worker loads imports this room.
"""
