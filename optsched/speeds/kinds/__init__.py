"""Speed models: one file each, registered as an `optsched.problem.speed_model.SpeedModel`.

To add a speed model, write one new file in this folder: a subclass of `SpeedModel`, decorated with
``@SPEED_MODELS.register("NAME")``. It has four parts:

* ``value``, a frozen dataclass: what a job or an instance states, validated when it is made;
* ``document``, its part of an instance file (then write ``instances/schema.json`` again from
  `optsched.problem.instance_file.json_schema`);
* ``formulas``, a `JobSpeeds`: ``paces``, ``solo`` and ``pace`` in readable form, and ``compiled``, the same for the engine;
* the GPU memory that its jobs need, if it is more than the job states.

``tests/speeds/test_new_speed_model.py`` is a complete example; `duration_speeds` is the shortest model here. The engine,
the referee and the command line find the model by its name. The verifier of bounds knows only the shipped models.

The values `Profile`, `Throughputs` and `Scaling` are in the files of those names in `optsched.problem`. Readers of other
people's files are `throughput_sources` and `scaling_files` in `optsched.speeds`.
"""
