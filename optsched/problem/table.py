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
        """As `polars.DataFrame.to_pandas`; without pyarrow a frame of numpy's types.

        Raises `NotInstalledError`, which says what to install, where pandas is missing.
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
    """A pandas frame as a polars frame without pyarrow; what pandas calls missing is null. Its index is left out.

    Raises `InputError` for a column of mixed types. O(cells), through Python objects.
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
    """Is it a pandas frame? Asked without importing pandas."""
    kind = type(thing)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"
