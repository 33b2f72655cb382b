"""The theorem of the commit-on-arrival algorithm, on hundreds of random packings beside their LP."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from examples import few
from hypothesis import given, strategies as st
from scipy.optimize import linprog

from optsched.errors import InputError
from optsched.models.hadar_packing import JobSchedule, Packing
from optsched.policies.exponential_prices import PriceFunction
from policies.primal_dual import THETA, PrimalDual, constants, whole_node_family

SLACK = 1e-9  # relative: prices and sums are floats


def random_packing(rng: np.random.Generator, capacity: int | None = None, widest: int | None = None) -> Packing:
    """Machines x types x rounds; gangs over one round or several, of one type or mixed, worth less the later they end."""
    machines, types, rounds = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    places = machines * types
    c = capacity or int(rng.choice([4, 8, 16, 32]))
    widest = min(widest or int(rng.choice([1, 2, 4])), c)
    jobs = []
    for _ in range(int(rng.integers(3, 41))):
        scale, first = float(np.exp(rng.normal(0, 1.2))), int(rng.integers(rounds))
        gang = int(rng.integers(1, widest + 1))
        schedules = []
        for _ in range(int(rng.integers(1, 9))):
            used = np.sort(
                rng.choice(np.arange(first, rounds), int(rng.integers(1, rounds - first + 1)), replace=False)
            )
            demand: dict[int, int] = {}
            for t in used.tolist():
                for _ in range(gang):  # each task anywhere: mixed gangs
                    q = t * places + (int(rng.integers(places)) if rng.random() < 0.5 else t % places)
                    demand[q] = demand.get(q, 0) + 1
            finish = int(used[-1])
            worth = scale / (finish - first + 1)
            schedules.append(JobSchedule(worth, tuple(sorted(demand.items())), finish + 1))
        jobs.append(tuple(schedules))
    return Packing((c,) * (places * rounds), tuple(jobs))


def prices_of(packing: Packing, *, safe: bool = True) -> PriceFunction:
    found = constants(
        np.array(packing.capacity), [s.utility for s in packing.flat], [s.demand for s in packing.flat]
    )  # fmt: skip
    return PriceFunction(found.low, found.high, np.array(packing.capacity), found.widest, safe)


def lp_value(packing: Packing) -> float:
    a = np.vstack([packing.demand.toarray(), packing.of_job.toarray()])
    b = np.concatenate([np.array(packing.capacity, dtype=float), np.ones(packing.jobs)])
    found = linprog(-packing.utility, A_ub=a, b_ub=b, bounds=(0, None), method="highs")
    assert found.status == 0
    return -float(found.fun)


def play(packing: Packing, *, safe: bool = True) -> tuple[PrimalDual, list[int | None]]:
    online = PrimalDual(prices_of(packing, safe=safe))
    return online, [online.offer(schedules) for schedules in packing.schedules]


def worst_dual_violation(packing: Packing, online: PrimalDual) -> float:
    slack = packing.utility - packing.demand.T @ online.prices - np.array(online.payoff)[packing.job]
    return float(slack.max())


def check_theorem(packing: Packing) -> float:
    """LP / ALG; every inequality of the proof on the way."""
    online, chosen = play(packing)
    lp = lp_value(packing)
    # 1. capacity, though nothing was filtered: `value` refuses what is held beyond it
    assert packing.value(chosen) == pytest.approx(online.value, rel=1e-12)
    # 2. the dual is feasible, so its value is a bound on the LP
    scale = float(packing.utility.max())
    assert worst_dual_violation(packing, online) <= SLACK * scale
    assert lp <= online.dual_value * (1 + SLACK)
    # 3. no acceptance adds more to D than R_eff times what it adds to P
    assert online.dual_value <= (online.initial + online.price_of.charged_ratio * online.value) * (1 + SLACK)
    # 4. the theorem, and with the constants of the setting its a-priori form
    assert online.initial <= THETA * lp * (1 + SLACK)
    assert online.value * online.price_of.charged_ratio >= (1 - THETA) * lp * (1 - SLACK)
    return lp / online.value


def test_the_theorem_holds_on_random_instances() -> None:
    ratios = [check_theorem(random_packing(np.random.default_rng([17, seed]))) for seed in few(range(160), 50)]
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) > 1.5  # the instances are not all easy


def test_the_ratio_of_a_run_is_proved_and_far_from_the_worst_case() -> None:
    proved, promised = [], []
    for seed in range(20):
        packing = random_packing(np.random.default_rng([29, seed]))
        online, _ = play(packing)
        proof = online.proof()
        assert float(proof.packing) == pytest.approx(online.value, rel=1e-12)
        assert lp_value(packing) * (1 - SLACK) <= float(proof.upper) <= online.dual_value * (1 + SLACK)
        proved.append(float(proof.packing_ratio))
        promised.append(online.price_of.charged_ratio / (1 - THETA))
    assert all(p <= q for p, q in zip(proved, promised, strict=True))
    assert np.median(proved) < np.median(promised) / 2


def test_a_run_with_naive_prices_proves_something_too() -> None:
    packing = random_packing(np.random.default_rng([23, 1]), 4, 4)
    online, _ = play(packing, safe=False)  # its own payoffs are no dual solution; those of its last prices are
    assert float(online.proof().upper) >= lp_value(packing) * (1 - SLACK)


def test_the_loss_falls_with_the_capacity_and_explodes_for_jobs_as_large_as_a_resource() -> None:
    """Mean LP / ALG by capacity and widest demand (its own draws, so the trend only)."""
    rng = np.random.default_rng(5)

    def mean(capacity: int, widest: int, draws: int) -> float:
        return float(np.mean([check_theorem(random_packing(rng, capacity, widest)) for _ in range(draws)]))

    whole = mean(4, 4, 20)
    by_capacity = [mean(c, 2, 12) for c in (4, 8, 32)]
    assert whole > 3
    assert by_capacity[0] > by_capacity[1] - 0.02
    assert by_capacity[1] > by_capacity[2] - 0.02
    assert by_capacity[2] < 1.02
    assert mean(8, 4, 12) < whole / 1.5


def test_the_naive_price_keeps_capacity_only_by_its_filter_and_no_dual() -> None:
    violated, held = [], 0
    for seed in range(60):
        packing = random_packing(np.random.default_rng([23, seed]), 4, 4)
        online, chosen = play(packing, safe=False)
        packing.value(chosen)
        violated.append(worst_dual_violation(packing, online) / float(packing.utility.max()))
        held += bool((online.sold <= 4).all())
    assert held == 60
    assert np.mean(np.array(violated) > 0.01) > 0.1
    assert max(violated) > 0.3


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize(("worth", "claimed"), [(10, 7.4), (100, 12.0), (1000, 16.6), (10000, 21.2)])
def test_whole_node_jobs_break_two_alpha_for_the_naive_price(worth: int, claimed: float, devices: int) -> None:
    packing = whole_node_family(worth, devices)
    naive, _ = play(packing, safe=False)
    assert 2 * naive.price_of.log_range == pytest.approx(claimed, abs=0.05)
    assert lp_value(packing) / naive.value == pytest.approx(worth)
    assert worth > 2 * naive.price_of.log_range
    # The safe price lets the first job in as well; its constant does not hide that.
    safe, chosen = play(packing)
    assert chosen == [0, None]
    ratio = safe.price_of.charged_ratio
    assert ratio == pytest.approx(devices * (4 * worth - 1), rel=1e-8)  # (c / 1)(e^a - 1), e^a = Up / Lo = 4 worth
    assert worth <= ratio / (1 - THETA)
    check_theorem(packing)


def test_small_jobs_make_the_constant_logarithmic() -> None:
    found = []
    for c in (10, 100, 1000, 100_000):
        price = PriceFunction(1e-3, 1e3, np.array([c]), np.array([1]))
        found.append(price.charged_ratio)
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(math.log(1e6), rel=1e-3)


def test_the_formula_of_r_eff_by_hand_and_by_enumeration() -> None:
    capacity, widest = np.array([8, 5, 3]), np.array([2, 4, 3])
    price = PriceFunction(0.1, 50.0, capacity, widest)
    a = math.log(500)
    charged = [
        c / w * (math.exp(a * min(1, w / (c - wide + 1))) - 1)
        for c, wide in zip(capacity.tolist(), widest.tolist(), strict=True)
        for w in range(1, wide + 1)
    ]
    assert price.charged_ratio == pytest.approx(max(charged), rel=1e-12)
    above = price.charged_ratio_above()
    assert (
        Fraction(price.charged_ratio) * (1 + Fraction(1, 10**12)) > above > Fraction(max(charged)) * Fraction(999, 1000)
    )


@given(st.floats(1e-9, 1e3), st.floats(1.0, 1e9), st.integers(1, 50), st.data())
def test_a_fraction_that_is_above_the_true_ratio(low: float, range_: float, c: int, data: st.DataObject) -> None:
    from decimal import Context, Decimal

    w = data.draw(st.integers(1, c))
    high = low * range_
    price = PriceFunction(low, high, np.array([c]), np.array([w]))
    context = Context(prec=80, Emax=10**8, Emin=-(10**8))
    s = c - w + 1
    v = min(w, s)
    power = context.power(context.divide(Decimal(high), Decimal(low)), context.divide(Decimal(v), Decimal(s)))
    true = max(Fraction(1), Fraction(context.subtract(power, Decimal(1))) * Fraction(c, v))
    assert true <= price.charged_ratio_above() <= true * (1 + Fraction(1, 10**20))


def test_prices_rise_from_low_to_high_and_no_further() -> None:
    capacity, widest = np.array([6]), np.array([2])
    safe, naive = PriceFunction(1.0, 100.0, capacity, widest), PriceFunction(1.0, 100.0, capacity, widest, safe=False)
    sold = np.arange(7)[:, None]
    assert safe(sold)[:, 0].tolist() == pytest.approx([100 ** min(1, z / 5) for z in range(7)])
    assert naive(sold)[:, 0].tolist() == pytest.approx([100 ** (z / 6) for z in range(7)])
    assert safe(sold).max() <= 100.0
    assert safe(np.array([5])) == 100.0  # one device left, two may be asked for: beyond reach


@pytest.mark.parametrize(
    ("low", "high", "capacity", "widest"),
    [(0.0, 1.0, 2, 1), (2.0, 1.0, 2, 1), (1.0, math.inf, 2, 1), (1.0, 2.0, 2, 3), (1.0, 2.0, 2, 0)],
)
def test_illegal_prices_are_refused(low: float, high: float, capacity: int, widest: int) -> None:
    with pytest.raises(InputError):
        PriceFunction(low, high, np.array([capacity]), np.array([widest]))


def test_nothing_worth_anything_has_no_prices() -> None:
    with pytest.raises(InputError, match="no schedule is worth anything"):
        constants(np.array([4]), [0.0], [((0, 1),)])
