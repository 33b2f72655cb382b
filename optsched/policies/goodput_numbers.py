"""The exact numbers of GPUs of `optsched.policies.goodput`, compiled: few states of the knapsack instead of all.

**Problem** as in `optsched.policies.goodput_allocation.best_counts`: max sum_j v_j(r_j) s.t. sum_j r_j <= G.

**Method.** (1) A number that is worth no more than a smaller one is left out. (2) The concave envelopes of the values give a
price l of a GPU, the dual of the relaxation: U = l G + sum_j max_r (v_j(r) - l r) is an upper bound. (3) The numbers at
this price, and single improvements with the GPUs that are left, give a solution of value L. (4) A number r of job j *loses*
max_s (v_j(s) - l s) - (v_j(r) - l r), and each GPU that stays free loses l. The losses of a solution add up to U minus its
value, so that no solution of value L or more loses more than U - L in all. The dynamic program goes only through numbers
and states within this budget.

**The same choice, bit for bit.** The budget is larger than U - L by more than the rounding of all sums. So the path that the
whole dynamic program chooses is within it; its sums are the same floats there, and every other sum is at most that of the
whole program. Ties therefore break alike: a later job takes fewer GPUs first.

**Complexity** O(K) for K numbers of all jobs, and the states within the budget: some hundreds for each job, whatever the
cluster. In the worst case, such as values far apart from each other by powers of ten, it is the whole program, O(K G).

**Reference** D. Pisinger, A minimal algorithm for the multiple-choice knapsack problem, EJOR 83 (1995): core and bounds.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit, types
from optsched.problem.arrays import Floats, Ints

SMALL = 400  # numbers of GPUs of all jobs that are never worth a compilation
PASSES = 4  # in which the GPUs that are left improve a solution
ROUNDED = 64 * 2.0**-53  # a bound on the rounding of a sum of n numbers, over (n + 8) times the sum of their magnitudes

# Rows of the scratch arrays. Of whole numbers: vertices of the envelopes, widths of their steps, the numbers within the
# budget, where those of each job begin, the number of each job in the solution, and by job: fewest and most GPUs of all
# later jobs, first state, where its states are kept.
_HULL, _WIDTH, _CORE, _BEGIN, _PICK, _FEWEST, _MOST, _STATE, _KEPT = range(9)
# Of floats: slopes of the envelopes by vertex, slopes of all steps, and by job the most that it is worth at the price.
_SLOPE, _STEP, _BEST = range(3)

_I, _F = types.int64, types.float64


@njit(**NESTED)
def _price(slope: Floats, width: Ints, steps: int, gpus: int) -> float:
    # The slope of the first step, of all in falling order, for which too few GPUs are left; 0 if there are enough for all.
    # Quickselect.
    low, high, room = 0, steps, gpus
    while low < high:
        pivot = slope[(low + high) // 2]
        above, i, below = low, low, high
        wide = level = 0
        while i < below:
            if slope[i] > pivot:
                wide += width[i]
                slope[i], slope[above] = slope[above], slope[i]
                width[i], width[above] = width[above], width[i]
                above += 1
                i += 1
            elif slope[i] < pivot:
                below -= 1
                slope[i], slope[below] = slope[below], slope[i]
                width[i], width[below] = width[below], width[i]
            else:
                level += width[i]
                i += 1
        if wide > room:
            high = above
        elif wide + level > room:
            return float(pivot)
        else:
            room -= wide + level
            low = below
    return 0.0


@njit(**NESTED)
def _envelopes(numbers: Ints, values: Floats, first: Ints, gpus: int, whole: Ints, real: Floats) -> int:
    # Vertices of the increasing concave envelope of each job, -1 after the last; slopes and widths of all steps. Returns
    # their number.
    hull, slope, steps = whole[_HULL], real[_SLOPE], 0
    for j in range(first.size - 1):
        at, top = first[j], first[j]
        hull[top] = at
        for i in range(at + 1, first[j + 1]):
            if numbers[i] > gpus:
                break
            if not values[i] > values[hull[top]]:
                continue
            while True:
                k = hull[top]
                steep = (values[i] - values[k]) / (numbers[i] - numbers[k])
                if top == at or steep < slope[top]:
                    break
                top -= 1
            top += 1
            hull[top], slope[top] = i, steep
        for k in range(at + 1, top + 1):
            real[_STEP, steps], whole[_WIDTH, steps] = slope[k], numbers[hull[k]] - numbers[hull[k - 1]]
            steps += 1
        if top + 1 < first[j + 1]:
            hull[top + 1] = -1
    return steps


@njit(**NESTED)
def _at_price(numbers: Ints, first: Ints, values: Floats, price: float, gpus: int, whole: Ints, real: Floats) -> int:
    # A solution: the vertices at a price, the steps at just the price that fit, and improvements with what is left. Returns
    # the GPUs that stay free.
    hull, slope, pick, best, room = whole[_HULL], real[_SLOPE], whole[_PICK], real[_BEST], gpus
    jobs = first.size - 1
    for j in range(jobs):
        k = first[j]
        while k + 1 < first[j + 1] and hull[k + 1] >= 0 and slope[k + 1] > price:
            k += 1
        pick[j] = k  # a vertex, for now
        best[j] = values[hull[k]] - price * numbers[hull[k]]
        room -= numbers[hull[k]]
    for j in range(jobs):
        k = pick[j]
        pick[j] = hull[k]
        if k + 1 < first[j + 1] and hull[k + 1] >= 0 and slope[k + 1] == price:
            width = numbers[hull[k + 1]] - numbers[hull[k]]
            if width <= room:
                room -= width
                pick[j] = hull[k + 1]
    for _ in range(PASSES):
        gain, job, chosen = 0.0, -1, -1
        for j in range(jobs if room > 0 else 0):
            for i in range(pick[j] + 1, first[j + 1]):
                if numbers[i] > numbers[pick[j]] + room:
                    break
                if values[i] - values[pick[j]] > gain:
                    gain, job, chosen = values[i] - values[pick[j]], j, i
        if job < 0:
            break
        room -= numbers[chosen] - numbers[pick[job]]
        pick[job] = chosen
    return room


@njit(**NESTED)
def _budget(numbers: Ints, values: Floats, first: Ints, price: float, gpus: int, whole: Ints, real: Floats) -> float:
    # What the best solution loses at most, with the rounding of all sums.
    room, jobs = _at_price(numbers, first, values, price, gpus, whole, real), first.size - 1
    loss, total, bound, largest, most, least = price * room, 0.0, 0.0, 0.0, -np.inf, np.inf
    for j in range(jobs):
        value = values[whole[_PICK, j]]
        loss += real[_BEST, j] - (value - price * numbers[whole[_PICK, j]])
        total += abs(value)
        bound += abs(real[_BEST, j])
        top = first[j]
        for i in range(first[j], first[j + 1]):
            if values[i] > values[top]:
                top = i
        least, most = min(least, values[first[j]]), max(most, values[top])
        largest += max(abs(values[first[j]]), abs(values[top]))
    # Values of one sign: as far as a sum is rounded, it is so in proportion to itself.
    size = total if least >= 0 or most <= 0 else largest
    return float(loss + ROUNDED * (jobs + 8) * (size + bound + price * gpus))


@njit(**NESTED)
def _core(numbers: Ints, values: Floats, first: Ints, price: float, budget: float, whole: Ints, real: Floats) -> None:
    # The numbers within the budget, and the fewest and most GPUs of all jobs after each.
    core, begin, count = whole[_CORE], whole[_BEGIN], 0
    jobs = first.size - 1
    for j in range(jobs):
        begin[j], top = count, -np.inf
        for i in range(first[j], first[j + 1]):
            if values[i] > top:
                top = values[i]
                if not real[_BEST, j] - (values[i] - price * numbers[i]) > budget:
                    core[count] = i
                    count += 1
    begin[jobs] = count
    fewest = most = 0
    for j in range(jobs - 1, -1, -1):
        whole[_FEWEST, j], whole[_MOST, j] = fewest, most
        fewest += numbers[core[begin[j]]]
        most += numbers[core[begin[j + 1] - 1]]
    whole[_FEWEST, jobs], whole[_MOST, jobs] = fewest, most


@njit(**NESTED)
def _search(
    numbers: Ints,
    values: Floats,
    jobs: int,
    price: float,
    budget: float,
    best: Floats,
    whole: Ints,
    real: Floats,
    chosen: Ints,
) -> int:
    # The dynamic program within the budget: states are GPUs of the jobs so far, with those that stay free. Returns the
    # number of states, of which only as many as there is room for in ``chosen`` are kept.
    core, begin, gpus, row, kept = whole[_CORE], whole[_BEGIN], best.shape[1] - 1, 0, 0
    low, high = max(0, gpus - whole[_MOST, jobs]), gpus - whole[_FEWEST, jobs]
    while high > low and price * high > budget:
        high -= 1
    for g in range(low, high + 1):
        best[0, g] = 0.0
    worth = 0.0
    for j in range(jobs):
        fewest, most, other = numbers[core[begin[j]]], numbers[core[begin[j + 1] - 1]], 1 - row
        least, last = max(low + fewest, gpus - whole[_MOST, j]), min(high + most, gpus - whole[_FEWEST, j])
        worth += real[_BEST, j]
        whole[_STATE, j], whole[_KEPT, j] = least, kept
        keeps = kept + last - least < chosen.size
        for g in range(least, last + 1):
            total, pick = -np.inf, -1
            for c in range(begin[j], begin[j + 1]):
                i = core[c]
                before = g - numbers[i]
                if before < low:
                    break
                if before <= high and best[row, before] + values[i] > total:
                    total, pick = best[row, before] + values[i], i
            best[other, g] = total
            if keeps:
                chosen[kept + g - least] = pick
        kept += last - least + 1
        low, high, row = least, last, other
        while low < high and price * low + worth - best[row, low] > budget:
            low += 1
        while low < high and price * high + worth - best[row, high] > budget:
            high -= 1
    return kept


def _is_small(numbers: Ints, *_: object) -> bool:
    return numbers.size < SMALL


@njit(
    signature=_I(_I[::1], _F[::1], _I[::1], _F[:, ::1], _I[:, ::1], _F[:, ::1], _I[::1], _I[::1]),
    interpreted=_is_small,
    **KERNEL,
)
def best_numbers(
    numbers: Ints,
    values: Floats,
    first: Ints,
    best: Floats,
    whole: Ints,
    real: Floats,
    chosen: Ints,
    picks: Ints,
) -> int:
    """Choose the number of GPUs of every job, as `optsched.policies.goodput_allocation.best_counts` does.

    Parameters
    ----------
    numbers
        Possible numbers of all jobs, ascending for each job and with 0, i64[K].
    values
        Their values, finite, f64[K].
    first
        First number of each job, i64[m + 1].
    best
        Scratch, f64[2, G + 1].
    whole, real
        Scratch, i64[9, S] and f64[3, S] for an S >= K + 1 and >= m + 1.
    chosen
        Scratch for states, i64[].
    picks
        Output: the position of the chosen number of each job, i64[m].

    Returns
    -------
    int
        Number of states. If there are more than ``chosen`` has elements, nothing is chosen.
    """
    gpus, jobs = best.shape[1] - 1, picks.size
    steps = _envelopes(numbers, values, first, gpus, whole, real)
    price = _price(real[_STEP], whole[_WIDTH], steps, gpus)
    budget = _budget(numbers, values, first, price, gpus, whole, real)
    _core(numbers, values, first, price, budget, whole, real)
    states = _search(numbers, values, jobs, price, budget, best, whole, real, chosen)
    if states > chosen.size:
        return states
    room = gpus
    for j in range(jobs - 1, -1, -1):
        picks[j] = chosen[whole[_KEPT, j] + room - whole[_STATE, j]]
        room -= numbers[picks[j]]
    return states
