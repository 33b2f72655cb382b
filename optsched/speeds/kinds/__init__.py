"""Ways in which jobs get their speeds: one a file, registered as an `optsched.problem.speed_model.SpeedModel`.

A file has the model's part of an instance file, its readable and its compiled formula, and the memory that its jobs
need. The value that an instance is given of it (`Profile`, `Throughputs`, `Scaling`) is validated in the file of that
name in `optsched.problem`. Readers of other people's files are `throughput_sources` and `scaling_files` in
`optsched.speeds`.
"""
