"""`FreeGpus`: the number of free GPUs over time, as a policy believes."""

from __future__ import annotations

from bisect import bisect_left


class FreeGpus:
    """The number of free GPUs over time, as the policy believes: ``free[k]`` from ``times[k]`` until the next time.

    Parameters
    ----------
    now
        Time at which the profile begins, in seconds.
    gpus
        GPUs that are free from then on.
    """

    def __init__(self, now: float, gpus: int) -> None:
        self.times, self.free = [now], [gpus]  # free from a time until the next one; the last for ever

    def add(self, begin: float, end: float, gpus: int) -> None:
        """Add GPUs from ``begin`` until ``end``; a negative number takes them.

        Parameters
        ----------
        begin, end
            Times in seconds; nothing changes if the end is not later.
        gpus
            Number of GPUs.
        """
        if begin < end:
            first, last = self._step_at(begin), self._step_at(end)
            for k in range(first, last):
                self.free[k] += gpus

    def _step_at(self, time: float) -> int:
        k = bisect_left(self.times, time)
        if k == len(self.times) or self.times[k] != time:
            self.times.insert(k, time)
            self.free.insert(k, self.free[k - 1])
        return k

    def begin_at(self, now: float) -> None:
        """Forget the times before ``now``, and merge equal steps.

        Parameters
        ----------
        now
            Time in seconds.
        """
        steps = [(time, free) for time, free in zip(self.times, self.free, strict=True) if time > now]
        steps.insert(0, (now, self.free[len(self.times) - len(steps) - 1]))
        kept = [step for k, step in enumerate(steps) if k == 0 or step[1] != steps[k - 1][1]]
        self.times, self.free = [time for time, _ in kept], [free for _, free in kept]

    def stays(self, end: float, gpus: int) -> bool:
        """Return whether a number of GPUs is free from the beginning until ``end``.

        Parameters
        ----------
        end
            Time in seconds.
        gpus
            Number of GPUs.
        """
        return all(self.free[k] >= gpus for k in range(len(self.times)) if self.times[k] < end)

    def earliest(self, seconds: float, gpus: int) -> float:
        """Return the first time from which on a number of GPUs is free for some seconds.

        Parameters
        ----------
        seconds
            Length of the interval.
        gpus
            Number of GPUs, at most those of the cluster.
        """
        begin = self.times[0]
        for k, time in enumerate(self.times):
            if time >= begin + seconds:
                break
            if self.free[k] < gpus and k + 1 < len(self.times):
                begin = self.times[k + 1]
        return begin
