"""Every interleaving and fault as a test: `simulate`, and what it is made of.

A simulation is an ordinary asyncio program whose binding calls wait for their turn. Learnt from shuttle, madsim, Coyote
and Fray (schedules, strategies), and from Hypothesis (the tape, and shrinking by it).
"""
