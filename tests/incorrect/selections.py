"""Selections with an error that is easily made: every privacy test of them must reject them."""

from mechanisms.selection.selection_laws import unknown_domain_law


def domain_without_a_bottom(scores, count, *, known, rate):
    """Run the exponential mechanism among the items that occur: it can choose an item that only one row has."""
    return unknown_domain_law(scores, rate, count, known=known, margin=None)


def bottom_at_the_next_score(scores, count, *, known, rate):
    """Give the bottom of a limited domain the next score, with no margin above it."""
    return unknown_domain_law(scores, rate, count, known=known, margin=0)


def best_of_a_fixed_number(run, runs):
    """Return the law of the best of a number of runs that is not random; outcomes are listed worst first."""
    found, below = [], 0.0
    for chance in run:
        found.append((below + chance) ** runs - below**runs)
        below += chance
    return found
