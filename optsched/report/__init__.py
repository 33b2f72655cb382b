"""Renderings of results: HTML views, the files of `run -o` and `ratio -o`, and marks for ratios that cannot be compared."""
