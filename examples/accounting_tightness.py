"""The tables of docs/accounting.md: promises of the accountants beside the best attacks.

python examples/accounting_tightness.py                # about ten seconds
"""

from __future__ import annotations

from reusable_holdout.mechanisms.accounting import (
    BoundedRangeEvent,
    GaussianEvent,
    PrivacyAccountant,
    PrivacyFilter,
    PrivacyOdometer,
    PureEvent,
    not_prior_mean,
    not_prior_q,
    target_charging_delta,
    target_charging_epsilon_each,
)

EPSILON, DELTA = 1.0, 1e-6


def target_charging_rows() -> list[tuple[int, float, float, float]]:
    """Return charges, a call's epsilon with the mean and with q alone, and the attained part of the latter's delta."""
    rows = []
    for charges in (1, 10, 100, 1_000, 10_000, 400_000):
        wish = {"epsilon": EPSILON, "delta": DELTA, "charges": charges}
        exact = target_charging_epsilon_each(**wish, q=not_prior_q, mean=not_prior_mean)  # type: ignore[arg-type]
        each = target_charging_epsilon_each(**wish, q=not_prior_q)  # type: ignore[arg-type]
        attained = target_charging_delta(
            total=EPSILON, epsilon=each, charges=charges, q=not_prior_q(each), mean=not_prior_mean(each)
        )
        rows.append((charges, exact, each, attained / DELTA))
    return rows


def adaptive_rows() -> list[tuple[float, float, float, float]]:
    """Return the epsilon of a response, and the cost of all that a filter admits: fixed beforehand, filtered, read."""
    rows = []
    for each in (0.1, 0.02, 0.005):
        budget, odometer = PrivacyFilter(epsilon=EPSILON, delta=DELTA), PrivacyOdometer(delta=DELTA)
        accountant = PrivacyAccountant()
        event = PureEvent(each)
        while budget.affords(event):
            budget.admit(event)
            odometer.add(event)
        accountant.add(event, count=budget.events)
        rows.append((each, accountant.epsilon(DELTA).epsilon, EPSILON, odometer.epsilon))
    return rows


def mixture_rows() -> list[tuple[str, float]]:
    """Yield the epsilon of one mixture by each theory that applies."""
    accountant = PrivacyAccountant()
    accountant.add(PureEvent(0.05), count=100)
    accountant.add(BoundedRangeEvent(0.05), count=100)
    accountant.add(GaussianEvent(10.0), count=3)
    return [(route, epsilon) for epsilon, route in accountant._epsilons(DELTA)]


def main() -> None:
    """Print the tables."""
    print("charges      mean known    q alone   attained of its delta")
    for charges, exact, each, attained in target_charging_rows():
        print(f"{charges:>7,} {exact:>15.6f} {each:>10.6f} {attained:>10.0%}")
    print("\nevent   known beforehand   filter   odometer")
    for event, beforehand, by_filter, reading in adaptive_rows():
        print(f"{event:<7} {beforehand:>16.2f} {by_filter:>8.2f} {reading:>10.2f}")
    print("\n100 responses of 0.05, 100 draws of range 0.05, 3 numbers with noise 10:")
    for route, epsilon in mixture_rows():
        print(f"{route:<28} {epsilon:.2f}")


if __name__ == "__main__":
    main()
