"""Bindings over a bucket that several machines share: S3, what speaks its API, or Google Cloud Storage."""
