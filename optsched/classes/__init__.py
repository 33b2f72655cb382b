"""Classes of schedules: what a schedule may do beyond running rigid gangs alone on their GPUs, one object a class.

A class is a module of this package, or a folder that mirrors the packages of optsched: the files in
``classes/NAME/bounds`` extend `optsched.bounds`, those in ``classes/NAME/check`` extend `optsched.check`, and so on. They
register what they add where that package looks for it, and no file outside the folder imports them.
"""

from optsched.classes.schedule_class import (
    CLASSES,
    NONPREEMPTIVE,
    PREEMPTIVE,
    ScheduleClass,
    add_class,
    class_names,
    class_of_means,
    class_stated,
    classes_of,
    every_class,
    names_where,
    offered,
    require_whole_jobs,
    usual_class,
)

__all__ = [
    "CLASSES",
    "NONPREEMPTIVE",
    "PREEMPTIVE",
    "ScheduleClass",
    "add_class",
    "class_names",
    "class_of_means",
    "class_stated",
    "classes_of",
    "every_class",
    "names_where",
    "offered",
    "require_whole_jobs",
    "usual_class",
]
