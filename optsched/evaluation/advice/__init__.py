"""Advice on a cluster: which policies avoid waiting there, who loses by them, and what other hardware would change."""
