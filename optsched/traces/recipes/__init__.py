"""Recipes for instances, one a file; each registers itself in `optsched.traces.recipe.RECIPES`."""
