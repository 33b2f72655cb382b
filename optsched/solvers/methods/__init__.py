"""Exact methods of `optsched.solve`: one a file, registered under the name that ``--model`` takes."""
