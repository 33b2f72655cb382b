"""Competitive ratios guarded in tests: subjects of every kind, checks of their ratios, a baseline file.

`optsched.pytest_plugin` is the interface for pytest; nothing here needs pytest.
"""
