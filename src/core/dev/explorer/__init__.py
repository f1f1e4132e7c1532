"""The explorer at `/_core/`: a page over what the development host knows. It is part of no deployment."""
