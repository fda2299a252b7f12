"""Products over flags: the matrices of independent flags, applied to tables with an axis for each flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envs.cohort import FloatArray

# Flags whose matrices are multiplied out before they are applied: with 2^4 columns there is little to multiply, and few
# passes over the table.
FLAGS_AT_ONCE = 4
# Multiplications at a time. So few that a library of linear algebra starts no threads of its own for them: several
# policies are evaluated at a time, and its threads would wait for each other. It also fits into a processor's cache.
PRODUCTS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class FlagDays:
    """What a treatment makes of independent flags in a day: a 2 x 2 matrix for each.

    Attributes
    ----------
    products : list of array
        Kronecker products of the matrices P(after | before) of a few flags each, all of them in order, with the
        identity for the flags of `by_fixed`.
    by_fixed : mapping of position to array, (2, n_fixed)
        P(present after | absent before) and P(present after | present before), of flags for which it depends on the
        fixed part of the record.
    n_flags : int
        How many flags.
    """

    products: list[FloatArray]
    by_fixed: dict[int, FloatArray]
    n_flags: int

    @classmethod
    def of(cls, presence: Sequence[FloatArray]) -> FlagDays:
        """From P(present after | before) of each flag, (2, 1), or (2, n_fixed) where it depends on the fixed part."""
        same = [np.hstack([1 - chance, chance]) if chance.shape[1] == 1 else np.eye(2) for chance in presence]
        by_fixed = {flag: chance for flag, chance in enumerate(presence) if chance.shape[1] > 1}
        return cls(_multiplied_out(same), by_fixed, len(presence))

    def expected(self, table: FloatArray) -> FloatArray:
        """E[table | before] of what is given for after, (2^n_flags, n_fixed); a new table."""
        table = _along(self.products, table)
        for flag, (absent, present) in self.by_fixed.items():
            sides = self._sides(table, flag)
            after = sides.copy()
            for side, chance in enumerate((absent, present)):
                sides[:, side] = (1 - chance) * after[:, 0] + chance * after[:, 1]
        return table

    def pushed(self, mass: FloatArray) -> FloatArray:
        """The masses after, of masses before, (2^n_flags, n_fixed); a new table."""
        mass = _along([product.T for product in self.products], mass)
        for flag, (absent, present) in self.by_fixed.items():
            sides = self._sides(mass, flag)
            before = sides.copy()
            sides[:, 0] = (1 - absent) * before[:, 0] + (1 - present) * before[:, 1]
            sides[:, 1] = absent * before[:, 0] + present * before[:, 1]
        return mass

    def _sides(self, table: FloatArray, flag: int) -> FloatArray:
        """A view of a table in which the second axis is that of a flag."""
        return table.reshape(2**flag, 2, 2 ** (self.n_flags - flag - 1), -1)


def sum_over_flags(kappa: FloatArray) -> FloatArray:
    """kappa . y for every combination y of the flags, (2,) * n_flags."""
    return np.asarray(np.tensordot(kappa, np.indices((2,) * len(kappa)), 1), dtype=np.float64)


def _multiplied_out(matrices: Sequence[FloatArray]) -> list[FloatArray]:
    """The Kronecker products of FLAGS_AT_ONCE matrices at a time."""
    products = []
    for start in range(0, len(matrices), FLAGS_AT_ONCE):
        kernel: FloatArray = np.ones((1, 1))
        for matrix in matrices[start : start + FLAGS_AT_ONCE]:
            kernel = np.asarray(np.kron(kernel, matrix), dtype=np.float64)
        products.append(kernel)
    return products


def _along(matrices: Sequence[FloatArray], table: FloatArray) -> FloatArray:
    """Apply one square matrix along each group of flags of a table, (2^n_flags, n_fixed); a new table."""
    shape, done = table.shape, 1
    for matrix in matrices:
        before = table.reshape(done, len(matrix), -1)
        table = np.empty(before.shape)
        step = max(1, PRODUCTS_AT_ONCE // matrix.size)
        for start in range(0, before.shape[2], step):
            part = slice(start, start + step)
            np.matmul(matrix, before[:, :, part], out=table[:, :, part])
        done *= len(matrix)
    return table.reshape(shape)
