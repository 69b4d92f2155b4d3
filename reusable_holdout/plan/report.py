"""A plan as a small readable table."""

from __future__ import annotations

from reusable_holdout.certainty import majority_attack_gain
from reusable_holdout.markup import facts_table
from reusable_holdout.plan.outlook import Outlook

Row = tuple[str, str]

__all__ = ["promise_table", "report"]


def report(plan: Outlook) -> str:
    """Return the promise, its theorems, and the results of other methods with the same rows, as text."""
    sections = [_promise(plan), _privacy(plan), _otherwise(plan)]
    if plan.final_share < 1.0:
        sections.insert(1, _means(plan))
    title = _title(plan)
    lines = [title, "=" * len(title)]
    for heading, rows in sections:
        lines += ["", heading]
        width = max(len(name) for name, _ in rows)
        lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return "\n".join(lines)


def promise_table(plan: Outlook) -> str:
    """Return the promise as a short table for notebooks."""
    return facts_table(_title(plan), [*_promise(plan)[1], _privacy(plan)[1][0]])


def _title(plan: Outlook) -> str:
    return f"Plan for {plan.rows:,} rows and {plan.queries:,} adaptive queries"


def _promise(plan: Outlook) -> tuple[str, list[Row]]:
    rows = _promises_of_claims(plan) if plan.asks == "claims" else _promises(plan)
    if plan.vacuous:
        rows.append(("VACUOUS", "a tolerance is more than a quarter of its range: this promise says nothing"))
    return "What holds", rows


def _promises_of_claims(plan: Outlook) -> list[Row]:
    rows = {
        "every interval holds": f"with probability {plan.confidence:g}, all claims at once (adaptive code)",
        "a claim stands": f"if it is within {plan.threshold:.4f} of the holdout's value, and is agreed then",
        "claims that stand": f"are within about {plan.tolerance:g} at the last, at scores near {plan.estimate:g}, if "
        f"all are honest (off by {plan.prior_error:.2g}); what is told of others widens all intervals",
        "each series has": f"{_charges(plan.charges)}; then its claims are not certified, and nobody else is halted",
    }
    return [*rows.items()]


def _promises(plan: Outlook) -> list[Row]:
    if plan.final_share == 1.0:
        holds = f"with probability {plan.confidence:g}; nothing but one final can be asked"
        return [("every interval holds", holds), _final_after(plan, 0)]
    if plan.certifies:
        return _promises_of_gates(plan)
    rows = {
        "every interval holds": f"with probability {plan.confidence:g}, all queries at once (transcript code)",
        "answers are within": f"{plan.tolerance:g} of the population value, at scores near {plan.estimate:g}",
        "the guard halts after": f"{_charges(plan.charges)}, whatever was told at each",
        "an honest search": _honest(plan),
    }
    if not plan.final_share:
        return [*rows.items(), ("a final", "cannot be asked: the plan keeps no share for one")]
    shown = sorted({0, min(1, plan.charges), min(5, plan.charges)})
    return [*rows.items(), *(_final_after(plan, charges) for charges in shown)]


def _promises_of_gates(plan: Outlook) -> list[Row]:
    def shown(*, pairs: bool) -> str:
        first, last = (plan.shown_difference(charges=made, pairs=pairs) for made in (0, plan.charges - 1))
        return f"{first:.4f}" + (f", and {last:.4f} at the last charge" if plan.charges > 1 else "")

    rows = {
        "what is better holds": f"with probability {plan.confidence:g}, all queries at once (transcript code)",
        "the guard halts after": f"{_charges(plan.charges)}; to show nothing is free",
        "nine times in ten": f"a value is shown that is better than what is named by {shown(pairs=False)}",
    }
    if plan.family in {"binomial", "mean"}:
        rows["and of two models"] = f"a difference that is larger by {shown(pairs=True)}"
    return [*rows.items()]


def _final_after(plan: Outlook, charges: int) -> Row:
    one_look = "" if charges else f" (one look fixed in advance: {plan.one_look:.4f})"
    width = plan.final_half_width(charges=charges)
    return f"a final after {_charges(charges)}", f"within {width:.4f}{one_look}"


def _charges(number: int) -> str:
    return f"{number:,} charge" + "s" * (number != 1)


def _honest(plan: Outlook) -> str:
    priors = f"priors off by {plan.prior_error:.2g}"
    if plan.row_spread is not None:
        priors += f", rows that spread by {plan.row_spread:.2g} at most"
    if plan.asks == "gates":
        return 'makes a charge of each "yes"'
    complete = plan.honest_search
    made = plan.honest_charges()
    expected = f"{sum(count * chance for count, chance in enumerate(made)):.2g} charges on average"
    if complete >= 0.95:
        return f"({priors}) is answered to the last query with probability {complete:.3f}; {expected}"
    halfway = plan.honest_charges(queries=max(1, plan.queries // 2))[:-1].sum()
    return (
        f"({priors}) is answered to the last query with probability {complete:.2g} only, to half of them with "
        f"{halfway:.2g}: leave the tolerance out to see which would do, or take more rows or better priors"
    )


def _means(plan: Outlook) -> tuple[str, list[Row]]:
    alone = plan.half_width(query=plan.queries, charges=0)
    if plan.asks == "claims":
        return "How", [
            ("threshold", f"{plan.threshold:.4f}, four standard deviations of an honest claim's deviation"),
            ("half-width, nothing told", f"{alone:.4f} (confidence bound alone)"),
        ]
    if plan.certifies:
        return "How", [("half-width, nothing told", f"{alone:.4f} (confidence bound alone)")]
    last = plan.charges - 1
    first, end = plan.threshold_at(charges=0), plan.threshold_at(charges=last)
    falling = f", falling to {end:.4f} at the last charge" if first != end else ""
    after = plan.half_width(query=plan.queries, charges=min(last, plan.queries - 1))
    return "How", [
        ("threshold", f"{first:.4f}{falling}"),
        ("half-width, 0 charges", f"{alone:.4f} (confidence bound alone)"),
        *([(f"half-width, {last} charge{'s' * (last > 1)}", f"{after:.4f}")] if last else []),
        ("noise scale", f"{plan.noise:.3g}"),
        *_choices(plan),
    ]


def _choices(plan: Outlook) -> list[Row]:
    """Return the numbers of candidates in the reserved choices, and advice for a loop around a search."""
    if not plan.choices:
        return []
    kept = ", ".join(map(str, plan.choices[:5])) + (", ..." if len(plan.choices) > 5 else "")
    nested = "a nested cross-validation asks one for each outer fold: choices=[candidates] * folds"
    return [("choices set aside", f"{len(plan.choices)}, among {kept} candidates; {nested}")]


def _privacy(plan: Outlook) -> tuple[str, list[Row]]:
    less_noise = plan.asks != "claims" and plan.comparison_noise < 2.0 * plan.noise
    end = "without finals" + (" and comparisons" if less_noise else "")
    rows = [("(epsilon, delta)", f"({plan.epsilon:.3g}, {plan.delta:.1g}); {end}")]
    if plan.privacy_is_vacuous:
        rows.append(("as a guarantee", "vacuous at this size; the intervals do not rest on it"))
    return "Differential privacy of the holdout", rows


def _otherwise(plan: Outlook) -> tuple[str, list[Row]]:
    fixed = plan.fixed_half_width
    rows = [("fixed queries", f"+-{fixed:.4f}: all written down before the first answer (an oracle)")]
    fake = majority_attack_gain(rows=plan.rows, queries=plan.queries)
    rows.append(("naive reuse", f"no guarantee; the majority attack alone fakes {fake:.3f} of accuracy"))
    return "The same rows otherwise", rows
