"""The verifier of lower bounds: a certificate and its instance are judged by the Python standard library alone.

Copy this folder to any machine with Python 3.11 or newer and run

    python -m verifier CERTIFICATE INSTANCE

in the folder that contains it; where optsched is installed, ``python -m optsched.verifier`` is the same. It shares no code
with what finds the bounds, and computes them again, exactly. Exit code 0: the bound holds; 1: it does not; 2: it cannot be
judged here.

**Problem**: jobs with releases r_j, lengths p_j, weights w_j and due dates d_j, each a gang of g_j of G GPUs, in the classes
of schedules of `class_table`. Objectives are C_max; max (C_j - r_j); max (C_j - r_j) / (flow time on an equal share); sum
w_j max(C_j - c_j, 0) with c_j = 0, r_j or d_j; and, from above, sum w_j N_j / (C_j - r_j).

**Theorems**: one file a family, ``*_proof.py``, whose docstring states the theorem; proofs are in optsched/bounds.

**Limits** of files that nobody vouches for: 16 MiB, 100,000 jobs, 10^7 steps of prices, numbers of some 1000 bits. Measured
steps of scaling profiles and models of speeds that somebody added to optsched are not known: ``optsched verify`` runs this
program, too, and gives it the speeds of such jobs (`stated_speeds.SpeedSource`).
"""

from .judgement import verify, verify_files
from .refusal import Refused

__all__ = ["Refused", "verify", "verify_files"]
