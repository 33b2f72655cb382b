"""Class ``forking``: a job may run as several gangs at once, whose work adds up.

It is larger than ``gang``; r_j + p_j bounds no completion time.
"""

from optsched.classes.schedule_class import add_class

add_class(
    name="forking",
    optimum="the best schedule, which may run a job in several copies",
    place=2,
    verified=True,
    contains=("gang", "gang-nonpreemptive"),
    copies=True,
    stated="forking",
    means="copies",
)
