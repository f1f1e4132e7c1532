"""The sources of requests. A host turns one kind of message into a `Request` and a `Response` back."""
