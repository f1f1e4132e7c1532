"""Where requests come from. A host turns one kind of message into a `Request` and a `Response` back."""
