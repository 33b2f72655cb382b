"""Methods of the class ``kv-cache`` that `optsched.solve` knows."""
