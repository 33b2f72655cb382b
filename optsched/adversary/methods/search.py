"""``search``: simulated annealing over candidates, from many beginnings (`optsched.adversary.search`)."""

from __future__ import annotations

from optsched.adversary.annealing import Found
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.method import Budget, Watch, add_method
from optsched.adversary.search import search


def run(evaluation: Evaluation, budget: Budget, watch: Watch) -> Found:
    """The worst candidates met within the budget."""
    return search(
        evaluation,
        seed=budget.seed,
        tries=budget.tries,
        deadline=budget.deadline,
        workers=budget.workers,
        watch=watch,
    )


add_method("search", "simulated annealing, for any policy; what it finds is bad, and may not be the worst", run)
