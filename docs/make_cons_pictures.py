"""Draw an exchange of CONS step by step for guide/cons-in-pictures.md: `.venv/bin/python docs/make_cons_pictures.py`.

Every number in the pictures comes from the equations in `consmarl.sharing.equations`; the page states the settings.
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.sharing import equations
from consmarl.sharing.options import Normalisation

IMAGES = Path(__file__).parent / "images"
ACTIONS = ("stay", "down", "left", "up", "right")
STUDENT_VISITS, STUDENT_VALUES = 1, (0.1, 0.0, 0.3, 0.6, 0.2)
# name, visits, values
TEACHERS = (
    ("agent 1", 36, (0.6, 0.2, 3.0, -0.4, -0.8)),
    ("agent 2", 9, (0.7, 0.3, 1.8, -1.4, 0.2)),
    ("agent 3", 0, (0.2, 0.1, 0.0, 0.3, 0.2)),
)
ASK_SCALE, UPDATE_RATE, TEMPERATURE = 0.5, 0.6, 0.1  # υ_a, τ, κ
EPISODE, START_EPISODE = 10_000, 5_000

INK, SOFT, LINE, PAPER = "#1f2430", "#5b6475", "#c9cfdb", "#fbfbfd"
STUDENT, TEACHER, GOOD, BAD = "#3f51b5", "#00796b", "#2e7d32", "#c62828"
WIDTH = 720


class Answer(NamedTuple):
    """What a teacher has to say."""

    name: str
    num_visits: int
    values: jax.Array
    policy: jax.Array
    prestige: float
    answers: bool


class Exchange(NamedTuple):
    """One exchange, from the request to the action."""

    ask: float
    before: np.ndarray
    answers: list[Answer]
    negative_weight: float
    after: np.ndarray
    confidence: float
    num_excluded: int


def exchange() -> Exchange:
    """Go through the equations once."""
    mine = jnp.array(STUDENT_VALUES)
    before = equations.boltzmann_policy(mine)
    answers = [_answer(*teacher) for teacher in TEACHERS]
    policies = jnp.stack([each.policy for each in answers])
    messages = equations.Messages(
        policies.argmax(axis=1),
        policies.max(axis=1),
        policies.argmin(axis=1),
        policies.min(axis=1),
        jnp.array([each.prestige for each in answers]),
        jnp.array([each.answers for each in answers]),
    )
    negative = equations.negative_weight(jnp.float32(EPISODE), START_EPISODE, 0.0)
    moved = jax.vmap(equations.modified_probability, (0, 0) + (None,) * 5)(
        jnp.arange(len(ACTIONS)), before, messages, 1 - negative, negative, UPDATE_RATE, Normalisation.ALL_NAMING
    )
    after = equations.boltzmann_policy(moved.probability, TEMPERATURE)
    confidence = equations.policy_confidence(after)
    drawn = equations.targeted_exploration(after, confidence, jnp.float32(1.0), jnp.float32(0.0))
    return Exchange(
        _asking(STUDENT_VISITS), np.array(before), answers, float(negative), np.array(after), float(confidence),
        int(drawn.num_excluded),
    )  # fmt: skip


def _asking(num_visits: int) -> float:
    return float(equations.asking_probability(jnp.int32(num_visits), ASK_SCALE))


def _answer(name: str, num_visits: int, values: tuple[float, ...]) -> Answer:
    theirs, mine, visits = jnp.array(values), jnp.array(STUDENT_VALUES), jnp.int32(num_visits)
    policy = equations.boltzmann_policy(theirs)
    weight = float(equations.prestige(visits, equations.policy_confidence(policy)))
    may = bool(equations.has_more_or_better_experience(visits, jnp.int32(STUDENT_VISITS), theirs, mine))
    return Answer(name, num_visits, theirs, policy, weight, may)


def text(
    x: float, y: float, words: str, *, size: int = 15, colour: str = INK, anchor: str = "start", bold: bool = False
) -> str:
    """Return a line of text."""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>{words}</text>'


def disc(x: float, y: float, name: str, colour: str, *, faint: bool = False) -> str:
    """Return an agent."""
    opacity = ' opacity="0.35"' if faint else ""
    return (
        f'<g{opacity}><circle cx="{x}" cy="{y}" r="26" fill="{colour}"/>'
        f"{text(x, y + 6, name, size=17, colour='#fff', anchor='middle', bold=True)}</g>"
    )


def card(x: float, y: float, width: float, height: float, colour: str = LINE) -> str:
    """Return a frame."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="#fff" stroke="{colour}"/>'


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """Return an arrow."""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="2.5" marker-end="url(#tip)"/>'
    )


def bars(
    x: float, y: float, policy: np.ndarray, colour: str, *, beside: np.ndarray | None = None, crossed: int = 0
) -> str:
    """Return a policy as bars: `beside` is another one, drawn in grey, `crossed` how many actions are left out."""
    worst = set(np.argsort(policy, kind="stable")[:crossed].tolist())
    parts = []
    for number, (name, share) in enumerate(zip(ACTIONS, policy, strict=True)):
        top = y + 27 * number
        out = number in worst
        parts.append(text(x + 44, top + 14, name, size=14, anchor="end", colour=SOFT if out else INK))
        if beside is not None:
            parts.append(f'<rect x="{x + 52}" y="{top}" width="{150 * beside[number]:.1f}" height="7" fill="#b4bbc9"/>')
        height, low = (9, 8) if beside is not None else (16, 1)
        shade = ' opacity="0.3"' if out else ""
        parts.append(
            f'<rect x="{x + 52}" y="{top + low}" width="{150 * share:.1f}" height="{height}" fill="{colour}"{shade}/>'
        )
        said = f"{share:.2f}" if beside is None else f"{beside[number]:.2f} → {share:.2f}"
        parts.append(
            text(
                x + 60 + 150 * max(share, 0 if beside is None else beside[number]), top + 14, said, size=13, colour=SOFT
            )
        )
        if out:
            parts.append(
                f'<line x1="{x + 4}" y1="{top + 9}" x2="{x + 46}" y2="{top + 9}" stroke="{BAD}" stroke-width="1.5"/>'
            )
    return "".join(parts)


def picture(name: str, height: int, parts: list[str]) -> None:
    """Write a picture."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" '
        f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{SOFT}"/></marker></defs>'
    )
    ground = f'<rect width="{WIDTH}" height="{height}" rx="10" fill="{PAPER}"/>'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif">'
    )
    content = f"{opening}{tip}{ground}{''.join(parts)}</svg>\n"
    (IMAGES / f"{name}.svg").write_text(content, encoding="utf-8")


def request_picture(now: Exchange) -> None:
    """Step 1: the student meets something unfamiliar, and asks."""
    parts = [
        disc(60, 70, "0", STUDENT),
        text(100, 62, "the student", bold=True),
        text(100, 84, f"met this observation {STUDENT_VISITS} time", colour=SOFT),
    ]
    parts += [text(40, 140, "its own policy", size=14, colour=SOFT), bars(20, 154, now.before, STUDENT)]
    parts += [
        card(330, 44, 360, 112),
        text(350, 74, f"asks with probability {now.ask:.2f}", bold=True),
        text(350, 98, "P_ask = (1 + υ_a)^−√n, with υ_a = 0.5", size=14, colour=SOFT),
        text(350, 130, f"after 9 visits: {_asking(9):.2f}; after 100: {_asking(100):.2f}", size=14, colour=SOFT),
    ]
    parts += [
        card(330, 176, 360, 96, STUDENT),
        text(350, 206, "the request, to everybody", bold=True),
        text(350, 232, "“I see this.", size=15),
        text(350, 254, f"I met it {STUDENT_VISITS} time; I expect {max(STUDENT_VALUES):.1f} at most.”", size=15),
    ]
    picture("cons-1-request", 304, parts)


def teachers_picture(now: Exchange) -> None:
    """Step 2: who may answer."""
    parts = [
        text(24, 34, "A teammate answers if it met the observation more often, or expects more.", colour=SOFT, size=14)
    ]
    for column, each in enumerate(now.answers):
        x = 24 + 232 * column
        most = float(each.values.max())
        is_familiar, is_hopeful = each.num_visits > STUDENT_VISITS, most > max(STUDENT_VALUES)
        parts += [
            card(x, 52, 208, 178, TEACHER if each.answers else LINE),
            disc(x + 40, 92, each.name[-1], TEACHER, faint=not each.answers),
        ]
        parts.append(
            text(
                x + 78,
                98,
                "answers" if each.answers else "stays silent",
                bold=True,
                colour=TEACHER if each.answers else SOFT,
            )
        )
        for line, (words, holds) in enumerate(
            ((f"met it {each.num_visits} times", is_familiar), (f"expects {most:.1f}", is_hopeful))
        ):
            y = 156 + 36 * line
            parts += [
                text(x + 20, y, "✓" if holds else "✗", bold=True, colour=GOOD if holds else BAD),
                text(x + 44, y, words),
            ]
    picture("cons-2-teachers", 252, parts)


def answers_picture(now: Exchange) -> None:
    """Step 3: what they say."""
    parts = []
    for row, each in enumerate(each for each in now.answers if each.answers):
        y = 24 + 126 * row
        best, worst = int(each.policy.argmax()), int(each.policy.argmin())
        parts += [
            disc(60, y + 52, each.name[-1], TEACHER),
            arrow(96, y + 52, 150, y + 52, SOFT),
            card(160, y, 400, 104, TEACHER),
        ]
        parts.append(
            text(180, y + 32, f"best: {ACTIONS[best]}, I give it {each.policy[best]:.2f}", colour=GOOD, bold=True)
        )
        parts.append(
            text(180, y + 58, f"worst: {ACTIONS[worst]}, I give it {each.policy[worst]:.2f}", colour=BAD, bold=True)
        )
        parts.append(
            text(
                180, y + 84, f"prestige Λ = √{each.num_visits} · confidence = {each.prestige:.1f}", colour=SOFT, size=14
            )
        )
        parts += [arrow(570, y + 52, 640, 140, SOFT)]
    parts.append(disc(676, 140, "0", STUDENT))
    picture("cons-3-answers", 276, parts)


def absorb_picture(now: Exchange) -> None:
    """Step 4: the student moves its policy."""
    parts = [
        text(24, 34, "Before (grey) and after (blue)", bold=True),
        bars(20, 56, now.after, STUDENT, beside=now.before),
    ]
    parts += [
        card(360, 24, 336, 172),
        text(380, 54, f"episode {EPISODE:,}; sharing began at {START_EPISODE:,}", size=14, colour=SOFT),
    ]
    parts += [
        text(380, 86, f"weight of “do this”: {1 - now.negative_weight:.2f}", colour=GOOD, bold=True),
        text(380, 112, f"weight of “don’t do this”: {now.negative_weight:.2f}", colour=BAD, bold=True),
    ]
    parts += [
        text(380, 146, "Teachers who name the same action", size=14, colour=SOFT),
        text(380, 166, "count by their prestige (Eq. 10).", size=14, colour=SOFT),
    ]
    picture("cons-4-absorb", 216, parts)


def draw_picture(now: Exchange) -> None:
    """Step 5: the student draws, acts and pays."""
    best = ACTIONS[int(now.after.argmax())]
    parts = [text(24, 34, "The new policy", bold=True), bars(20, 56, now.after, STUDENT, crossed=now.num_excluded)]
    parts += [
        card(330, 24, 366, 80),
        text(350, 54, f"with probability Γ̃ = {now.confidence:.2f}:", bold=True),
        text(350, 82, f"takes the best action, {best}"),
    ]
    parts += [
        card(330, 116, 366, 80),
        text(350, 146, "otherwise:", bold=True),
        text(350, 174, f"draws, without the {now.num_excluded} least likely actions"),
    ]
    parts += [
        text(
            24,
            226,
            "Then it pays 1 from its budget of requests; each teacher has paid 1 from its budget of answers.",
            size=14,
            colour=SOFT,
        )
    ]
    picture("cons-5-draw", 246, parts)


def main() -> None:
    """Write all pictures."""
    now = exchange()
    for draw in (request_picture, teachers_picture, answers_picture, absorb_picture, draw_picture):
        draw(now)


if __name__ == "__main__":
    main()
