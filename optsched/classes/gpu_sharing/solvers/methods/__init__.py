"""Methods of the class ``gpu-sharing`` that `optsched.solve` knows."""
