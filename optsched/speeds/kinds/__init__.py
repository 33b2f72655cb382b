"""Speed models: one file each, registered as an `optsched.problem.speed_model.SpeedModel`.

To add a speed model, write one new file in this folder and change no other file. `duration_speeds` is the shortest
example, and ``tests/speeds/test_new_speed_model.py`` is a complete one. A file has four parts: the model's part of an
instance file, its readable formula, its compiled formula, and the memory that its jobs need.

The value that an instance is given (`Profile`, `Throughputs`, `Scaling`) is validated in the file of that name in
`optsched.problem`. Readers of other people's files are `throughput_sources` and `scaling_files` in `optsched.speeds`.
"""
