"""An API for users: list, read, create, change and delete them."""
