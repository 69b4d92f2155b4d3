"""A plan as advice: what can be asked, how wide the answers are, and what would narrow them."""

from __future__ import annotations

from reusable_holdout.answer import in_words
from reusable_holdout.plan.advice import more_charges, narrower
from reusable_holdout.plan.outlook import Outlook

Row = tuple[str, str]

IN_ORDER = (
    "intervals are about the mean risk over these rows' period, given what came before each; not the future"
)


def report(plan: Outlook) -> str:
    """Return what can be asked, how wide the answers are and what would narrow them, and privacy, as text."""
    sections = [_questions(plan), _widths(plan), _advice(plan), _privacy(plan), _otherwise(plan)]
    if plan.order:
        sections[0][1].append(("rows in time order", IN_ORDER))
    title = f"Plan for {plan.rows:,} rows and {plan.queries:,} adaptive queries"
    lines = [title, "=" * len(title)]
    for heading, rows in sections:
        if rows:
            width = max(len(name) for name, _ in rows)
            lines += ["", heading, *(f"  {name:<{width}}  {value}" for name, value in rows)]
    return "\n".join(lines)


def _questions(plan: Outlook) -> tuple[str, list[Row]]:
    sure, charges = f"with probability {plan.confidence:g}", in_words(plan.charges)
    if plan.asks == "claims":
        return "What can be asked", [
            ("every interval holds", f"{sure}, all claims at once (adaptive code)"),
            (
                "a claim stands",
                f"if it is within {plan.threshold:.4f} of the holdout's value, and is agreed then",
            ),
            ("each series has", f"{charges}; then its claims are not certified, and nobody else is halted"),
        ]
    if plan.final_share == 1.0:
        return "What can be asked", [("every interval holds", f"{sure}; nothing but one final can be asked")]
    if plan.certifies:
        return "What can be asked", [
            ("what is better holds", f"{sure}, all queries at once (transcript code)"),
            ("the guard halts after", f"{charges}; to show nothing is free"),
        ]
    rows = [
        ("every interval holds", f"{sure}, all queries at once (transcript code)"),
        ("the guard halts after", f"{charges}, whatever was told at each"),
        ("an honest search", _honest(plan)),
    ]
    if plan.asks == "all":
        first, end = plan.threshold_at(charges=0), plan.threshold_at(charges=plan.charges - 1)
        falling = f", falling to {end:.4f} at the last charge" if first != end else ""
        rows.insert(1, ("a prior is corrected", f"if it is off by more than {first:.4f}{falling}"))
        if not plan.set_aside and plan.open_wish.room_nats and plan.leaves_room:
            rows.append(("beside the charges", "one reveal, or another metric that tells class counts"))
    return "What can be asked", rows + _choices(plan)


def _widths(plan: Outlook) -> tuple[str, list[Row]]:
    """Return how far the true value may be from an answer, after several numbers of charges."""
    if plan.certifies:
        return "What is shown nine times in ten", _shown(plan)
    heading = f"How wide the answers are, at scores near {plan.estimate:g}"
    if plan.asks == "claims":
        rows = [
            (
                "claims that stand",
                f"within about {plan.tolerance:g} at the last, if all are honest (off by {plan.prior_error:.2g}); what "
                "is told of others widens all intervals",
            )
        ]
    elif plan.final_share == 1.0:
        return heading, [_final_after(plan, 0)]
    else:
        shown = sorted({*range(min(3, plan.charges)), plan.charges - 1}) if plan.asks == "all" else []
        each = ((made, plan.agreed_half_width(charges=made)) for made in shown)
        rows = [(f"agreed, after {in_words(made)}", f"within {width:.4f}") for made, width in each]
        rows.append(("answers are within", f"{plan.tolerance:g}, whatever is told: the tolerance"))
    if plan.vacuous:
        rows.append(("VACUOUS", "a tolerance is more than a quarter of its range: this promise says nothing"))
    if plan.asks == "claims":
        return heading, rows
    if not plan.final_share:
        return heading, [*rows, ("a final", "cannot be asked: the plan keeps no share for one")]
    finals = sorted({0, min(1, plan.charges), min(5, plan.charges)})
    return heading, [*rows, *(_final_after(plan, charges) for charges in finals)]


def _advice(plan: Outlook) -> tuple[str, list[Row]]:
    """Return what would narrow the answers, the change that helps most first, and the charges that wider ones allow."""
    rows = [
        (words, f"answers within {tolerance:g}" + " (helps most)" * (not place))
        for place, (words, tolerance) in enumerate(narrower(plan))
    ]
    more = more_charges(plan)
    if more is not None:
        rows.append(("a larger tolerance", f"answers within {more[1]:g} would allow {in_words(more[0])}"))
    if plan.asks == "all" and 0.0 < plan.final_share < 1.0 and not plan.growth_share:
        least = plan.rows_to_rotate(plan.final_half_width(charges=plan.charges))
        told = (
            f"extend() keeps the budget; after {in_words(plan.charges)} at their largest cost, rotate() gives"
        )
        rows.append(("more rows", f"{told} a narrower final from {least:,.0f} new rows on"))
    return "If that is too wide", rows


def _shown(plan: Outlook) -> list[Row]:
    """Return the differences that a gate shows nine times in ten."""

    def shown(*, pairs: bool) -> str:
        first, last = (plan.shown_difference(charges=made, pairs=pairs) for made in (0, plan.charges - 1))
        return f"{first:.4f}" + (f", and {last:.4f} at the last charge" if plan.charges > 1 else "")

    rows = [("a value above what is named", f"by {shown(pairs=False)}")]
    if plan.family in {"binomial", "mean"}:
        rows.append(("a difference of two models", f"larger by {shown(pairs=True)}"))
    return rows


def _final_after(plan: Outlook, charges: int) -> Row:
    one_look = "" if charges else f" (one look fixed in advance: {plan.one_look:.4f})"
    width = plan.final_half_width(charges=charges)
    return f"a final after {in_words(charges)}", f"within {width:.4f}{one_look}"


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
    if plan.noise:
        rows.append(("noise scale", f"{plan.noise:.3g}"))
    if plan.privacy_is_vacuous:
        rows.append(("as a guarantee", "vacuous at this size; the intervals do not rest on it"))
    return "Differential privacy of the holdout", rows


def _otherwise(plan: Outlook) -> tuple[str, list[Row]]:
    said = f"+-{plan.fixed_half_width:.4f}: all written down before the first answer (an oracle)"
    return "The same rows otherwise", [("fixed queries", said)]
