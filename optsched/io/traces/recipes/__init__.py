"""Recipes for instances, one a file; each registers itself in `optsched.io.traces.generate.RECIPES`."""
