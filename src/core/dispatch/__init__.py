"""The life of one request: its chain found, run, and its errors answered."""
