"""Competitive ratios guarded in anybody's tests: subjects of every kind, what is asked of their ratios, a baseline file.

`optsched.pytest_plugin` is its face in pytest; nothing here needs pytest.
"""
