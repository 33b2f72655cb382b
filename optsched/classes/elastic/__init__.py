"""Class ``elastic``: jobs with scaling profiles may run on any number of GPUs, which may change."""

from optsched.classes.schedule_class import add_class

add_class(
    name="elastic",
    optimum="the best schedule, which may change the number of GPUs of a job",
    place=5,
    verified=True,
    contains=("gang", "gang-nonpreemptive"),
    has=lambda instance: instance.elastic,
    suits=lambda instance: all(speeds.elastic for speeds in instance.speeds),
    lacking="scaling profile",
    widths=True,
    stated="elastic",
    harmless=True,
    means="widths",
)
