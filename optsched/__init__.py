"""optsched: an instance goes in; a schedule and a proof of how good it is come out."""
