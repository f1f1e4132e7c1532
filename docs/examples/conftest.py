"""The chapters of the tutorial are parts of one project:
tests/docs/test_tutorial.py puts them together and runs them.
"""

collect_ignore = ["tutorial"]
