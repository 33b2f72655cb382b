"""`Table`: what tables of results are, polars frames that turn into pandas frames without pyarrow, too.

pandas is no dependency of optsched: who types ``.to_pandas()`` has it, or reads what to install.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import polars as pl

from optsched.errors import InputError, NotInstalledError

INSTALL = "pip install 'optsched[pandas]'"


class Table(pl.DataFrame):
    """A `polars.DataFrame`; its methods give plain polars frames.

    >>> import optsched as osd
    >>> osd.simulate("rigid-06-1", "fifo").jobs.columns
    ['id', 'arrival', 'start', 'end', 'jct', 'queueing', 'gpus']
    """

    def to_pandas(self, *args: Any, **options: Any) -> Any:
        """Return a pandas frame; without pyarrow one of numpy's types.

        Parameters
        ----------
        args
            Positional arguments of `polars.DataFrame.to_pandas`.
        options
            Its keyword arguments.

        Raises
        ------
        NotInstalledError
            If pandas is missing; the error says what to install.
        """
        if not importlib.util.find_spec("pandas"):
            raise NotInstalledError("pandas is not installed", field="to_pandas", legal=INSTALL)
        if importlib.util.find_spec("pyarrow"):
            return super().to_pandas(*args, **options)
        columns = {
            column.name: column.to_list() if column.null_count() or column.dtype.is_nested() else column.to_numpy()
            for column in self.get_columns()
        }
        return importlib.import_module("pandas").DataFrame(columns, columns=self.columns)


def polars_of_pandas(frame: Any) -> pl.DataFrame:
    """Return a pandas frame as a polars frame, without pyarrow.

    Values that pandas calls missing are null. The index is left out.

    Parameters
    ----------
    frame
        Pandas frame.

    Raises
    ------
    InputError
        If a column has mixed types.

    Notes
    -----
    O(cells), through Python objects.
    """
    columns = []
    for name in frame.columns:
        column = frame[name]
        missing = column.isna().tolist()
        values = [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]
        try:
            columns.append(pl.Series(str(name), values, strict=True))
        except (TypeError, pl.exceptions.PolarsError):
            raise InputError("wrong type of column", field=str(name), legal="values of one type") from None
    return pl.DataFrame(columns)


def is_pandas(thing: object) -> bool:
    """Return True for a pandas frame, without importing pandas.

    Parameters
    ----------
    thing
        Any object.
    """
    kind = type(thing)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"
