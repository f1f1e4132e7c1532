"""The explorer at `/_core/`: a page over the state of the development host. It is part of no deployment."""
