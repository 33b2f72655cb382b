"""Ways in which jobs get their speeds: one a file, registered as an `optsched.problem.speed_model.SpeedModel`."""
