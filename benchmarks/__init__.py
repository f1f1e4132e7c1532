"""Measurements, as ratios in one run. `make bench` runs them all; none is ever part of a test."""
