"""The work of an application beside answering requests: lifespans and batches of queues."""
