"""Adversary: a search for instances on which a policy is far from the optimum, or from another policy.

A new kind of instances is one file in ``optsched/adversary/spaces`` that registers its `SearchSpace`.
"""
