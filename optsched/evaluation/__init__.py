"""The evaluation of runs: simulate, referee, bound, divide, and judge the theorems that apply.

`optsched.evaluation.evaluate` does it for one instance, `optsched.evaluation.suite_ratios` for a suite of instances.
"""
