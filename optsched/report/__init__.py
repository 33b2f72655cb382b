"""Renderings of results: HTML views, pages of `--report`, files of `run -o`, and marks for ratios not to be compared."""
