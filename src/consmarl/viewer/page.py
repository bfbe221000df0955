"""Write one self-contained HTML file that replays episodes; it loads nothing from the network."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consmarl.environments.draw.agents import AGENT_COLOURS
from consmarl.environments.draw.scene import CELL, ICON, gauge_heads, legend
from consmarl.environments.draw.svg import hexadecimal
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.sharings import NOBODY
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.files import replacing
from consmarl.reports.page import safe_json, template_environment, template_text
from consmarl.reports.themes import legible
from consmarl.reports.words import plural
from consmarl.sharing.cons import Cons
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import Consult, TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.viewer import pairs
from consmarl.viewer.absorbed import absorbed
from consmarl.viewer.glossary import glossary_of, values_of
from consmarl.viewer.moments import episode_block, start_of
from consmarl.viewer.summaries import series_of, summary_of
from consmarl.viewer.viewed import Viewed

PACKAGE = "consmarl.viewer"
SCRIPTS = ("base.js", "glossary.js", "episode.js", "board.js", "teachers.js", "leftout.js", "exchange.js", "sees.js",
           "team.js", "chart.js", "paired.js", "overtime.js", "pane.js", "player.js", "main.js")  # fmt: skip
SOON_SHARE, LATE_SHARE = 0.1, 0.75  # bounds of "soon" and "late", as fractions of the episodes with sharing
PLAYED = {  # kinds of episodes that were played for the page: a letter, a name, and how they were played
    exchanges.EVALUATION: ("e", "Evaluation", "greedy, without sharing, after {after:,} episodes"),
    exchanges.CONSULTED: ("e", "Evaluation", "greedy, consulting the team, after {after:,} episodes"),
    exchanges.STAGED: ("s", "Staged", "played like training, after {after:,} episodes"),
    exchanges.SILENT: ("s", "Staged", "played like training, after {after:,} episodes, but nobody asks"),
}
REMEMBERED = {  # the memory that teammates used to judge a student's situation
    TeacherMemory.STUDENT: "Teammates used their own networks, but the student's memory.",
    TeacherMemory.STUDENT_AFTER_STEP: "Teammates used their own networks, but the student's "
    "memory from after this step.",
    TeacherMemory.OWN: "Teammates used their own memory, of what they had seen themselves.",
    TeacherMemory.HISTORY: "Teammates remembered the student's episode: their own networks had processed everything "
    "it saw and did before.",
}


class ConsultWords(NamedTuple):
    """The page's wording for one mode of consulting."""

    how: str  # starts the sentence that ends with the action
    kind: str  # label of the second bar
    unit: str  # unit of the number beside it
    setting: str


CONSULTED = {
    Consult.MEAN: ConsultWords("It takes the best action by the mean of the team's values", "by the team's mean", "Q",
                               "the mean of all values"),
    Consult.VOTE: ConsultWords("It does what most of the team would do", "by votes", "vote", "majority"),
    Consult.BEST: ConsultWords("It follows the agent with the highest max Q", "by the highest max Q", "Q",
                               "the values of the agent with the highest max Q"),
    Consult.CONS: ConsultWords("It takes the most likely action after the answers", "after the answers", "p̃",
                               "CONS's absorption (Eq. 9)"),
}  # fmt: skip
CELL_ON_DARK, CELL_ON_LIGHT = "#20252b", "#ffffff"  # as in view.css


def write_page(viewed: Sequence[Viewed], out: Path) -> Path:
    """Write the page; return its path."""
    blocks: list[str] = []
    runs = [_described(each, name, blocks) for each, name in zip(viewed, _names(viewed), strict=True)]
    compared = _compared(viewed)
    glossary = {key: entry._asdict() for key, entry in glossary_of([each.sharing for each in viewed]).items()}
    text = template_environment(PACKAGE).get_template("view.html.jinja").render(
        css=template_text("consmarl.reports", "theme.css") + template_text(PACKAGE, "view.css"),
        script=template_text("consmarl.reports", "theme.js") + template_text(PACKAGE, *SCRIPTS),
        title=_title(viewed, runs),
        lead=_lead(viewed, runs),
        agents=[_colours(colour) for colour in map(hexadecimal, AGENT_COLOURS)],
        glossary=glossary,
        pairs=compared,
        data=safe_json({"runs": runs, "cell": CELL, "replies": {reply.name: reply.value for reply in Reply},
                        "glossary": glossary, "pairs": compared}),
        blocks=blocks,
    )  # fmt: skip
    with replacing(out) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")  # a lone surrogate in a label cannot be encoded
    return out


def _colours(colour: str) -> dict[str, str]:
    """Return an agent's colour, and the colours of its lines on light and dark backgrounds."""
    return {"disc": colour, "light": legible(colour, CELL_ON_LIGHT, 3.0), "dark": legible(colour, CELL_ON_DARK, 4.5)}


def _names(viewed: Sequence[Viewed]) -> list[str]:
    """Return distinct names for the runs: their methods, with their own names, seeds or directories if necessary."""
    if all(each.name for each in viewed):
        return [f"{each.run.method}, {each.name}" for each in viewed]
    by_method = [each.run.facts.get("label") or each.run.method for each in viewed]
    by_seed = [f"{name}, seed {each.run.seed}" for name, each in zip(by_method, viewed, strict=True)]
    by_place = [f"{name} ({each.run.path.name})" for name, each in zip(by_seed, viewed, strict=True)]
    kinds = (by_seed, by_place) if by_method[0] == by_method[-1] else (by_method,)
    return next((names for names in kinds if len(set(names)) == len(names)), by_place)


def _is_paired(viewed: Sequence[Viewed]) -> bool:
    """Return whether each episode is compared with a copy in which nobody asks or consults."""
    return viewed[-1].episodes[0].kind == exchanges.SILENT or viewed[0].consult is not None


def _compared(viewed: Sequence[Viewed]) -> dict[str, Any] | None:
    """Return the effect of sharing or consulting on the return, if the page compares episodes with and without it."""
    if not _is_paired(viewed):
        return None
    told, silent = (each.episodes for each in viewed)
    words = pairs.SHARING if viewed[0].consult is None else pairs.CONSULTING
    found = pairs.paired_returns(told, silent)
    # one dimension of several does not tell where episodes begin to differ
    turn = pairs.most_gained(found, told, silent) if viewed[0].num_dimensions == 1 else None
    return pairs.described(found, words) | {"turn": turn and _turning_point(turn, viewed)}


def _turning_point(turn: pairs.Turn, viewed: Sequence[Viewed]) -> dict[str, Any]:
    """Return the moment at which the pair that gained most parts, for the page's script, and a sentence on it."""
    told, silent = (each.episodes[turn.pair] for each in viewed)
    named = _named(told, viewed[0])
    does, would = (_action_name(viewed[0], each, turn) for each in (told, silent))
    return {
        "key": named["key"], "step": turn.step, "agent": turn.agent,
        "where": f"{named['name']}. Its two episodes part in step {turn.step}: agent {turn.agent} chooses {does} "
                 f"because of its teammates' answers, and {would} on its own.",
    }  # fmt: skip


def _action_name(viewed: Viewed, recorded: RecordedEpisode, turn: pairs.Turn) -> str:
    names = viewed.world.choice_names[viewed.dimension] if viewed.world else recorded.action_names
    return str(names[int(recorded.steps["action"][turn.step, turn.agent])])


def _title(viewed: Sequence[Viewed], runs: Sequence[dict[str, Any]]) -> str:
    if _is_paired(viewed):
        what = "with and without sharing" if viewed[0].consult is None else "consulting and alone"
        return f"{viewed[0].run.method} on {viewed[0].run.world}, {what}"
    return f"{' and '.join(run['name'] for run in runs)} on {viewed[0].run.world}"


def _lead(viewed: Sequence[Viewed], runs: Sequence[dict[str, Any]]) -> str:
    """Return a few sentences that summarise the page."""
    num_episodes = len(runs[0]["episodes"])
    sentences = [f"{plural(runs[0]['num_agents'], 'agent')}, {plural(num_episodes, 'episode')} to replay."]
    for each, run in zip(viewed, runs, strict=True):
        who = f"{run['name']}: " if len(runs) > 1 else ""
        totals = [episode["summary"] for episode in run["episodes"] if episode["summary"]["is_sharing"]]
        if _is_paired(viewed) and viewed[0].consult is not None:
            sentences.append(_consulted(totals) if totals else "Next to them are the same episodes without consulting.")
            continue
        if not totals or not isinstance(each.sharing, Mechanism):
            sentences.append(f"{who}nobody shares knowledge in these episodes.")
            continue
        if each.episodes[0].kind == exchanges.SILENT:
            sentences.append("Next to them are the same episodes with the same random numbers, but nobody asks.")
            continue
        asked, answered, changed = (sum(total[name] for total in totals) for name in ("requests", "answers", "changed"))
        begin = f"{who}sharing starts after episode {each.sharing.start_episode:,}; "
        sentences.append(
            f"{begin if who else begin.capitalize()}in the episodes shown, {plural(asked, 'request')} brought "
            f"{plural(answered, 'answer')} and changed {plural(changed, 'choice')}."
        )
    if viewed[0].num_dimensions > 1:
        sentences.append(
            f"Actions have {viewed[0].num_dimensions} dimensions, and this page shows the choices in dimension "
            f"{viewed[0].dimension} (--dimension chooses another)."
        )
    return " ".join(sentences)


def _consulted(totals: Sequence[dict[str, Any]]) -> str:
    asked, answered, changed = (sum(total[name] for total in totals) for name in ("requests", "answers", "changed"))
    return (
        f"Agents act greedily and consult each other in every step: {plural(asked, 'request')} brought "
        f"{plural(answered, 'answer')} and changed {plural(changed, 'choice')}."
    )


def _described(viewed: Viewed, name: str, blocks: list[str]) -> dict[str, Any]:
    """Return the description of a run for the page's script, and append its packed episodes to `blocks`."""
    sharing, config, world = viewed.sharing, viewed.config, viewed.world
    first = viewed.episodes[0]
    episodes = []
    for recorded, pictures in zip(viewed.episodes, viewed.pictures or itertools.repeat(()), strict=False):
        found = absorbed(recorded, sharing) if recorded.is_sharing else None
        blocks.append(episode_block(recorded, world, found, pictures))
        episodes.append(
            {
                "block": len(blocks) - 1,
                **_named(recorded, viewed),
                "start": start_of(recorded),
                "num_steps": recorded.num_steps,
                "summary": summary_of(recorded, found),
            }
        )
    described: dict[str, Any] = {
        "name": name,
        "num_agents": first.num_agents,
        "num_experts": _num_experts(viewed),
        "actions": list(world.choice_names[viewed.dimension]) if world else first.action_names,
        "sharing": _sharing_word(viewed),
        "has_values": config.entry.is_value_based,
        "is_silent": first.kind == exchanges.SILENT,
        "settings": _settings(viewed),
        "values": values_of(sharing),
        "episodes": episodes,
        "series": {"episode": []} if viewed.consult or viewed.is_alone else series_of(viewed.run),
    }
    if viewed.consult is not None:
        described |= {"consult": CONSULTED[viewed.consult]._asdict(), "remembered": REMEMBERED[sharing.teacher_memory]}
    if isinstance(sharing, Mechanism):
        purse = sharing.purse(first.num_agents, first.num_actions)
        described |= {"start_episode": sharing.start_episode, "budgets": purse._asdict(),
                      "ask_gate": sharing.ask_gate.value, "hope_margin": sharing.hope_margin,
                      "remembered": _remembered(sharing, described["num_experts"]),
                      "has_answer_budget": sharing.enforces_answer_budget}  # fmt: skip
    if world:
        described["world"] = {
            "grid": world.grid,
            "view": world.view,
            "features": world.feature_names,
            "channels": world.channel_names,
            "scale": world.observation_scale.tolist(),
            "legend": legend(world),
            "heads": gauge_heads(world),
            "icon": ICON,
        }
    return described


def _num_experts(viewed: Viewed) -> int:
    """Return the number of experts beside the team; in greedy episodes, they take no part."""
    return max(each.num_experts for each in viewed.episodes)


def _remembered(sharing: Mechanism, num_experts: int) -> str:
    """Return a sentence on what teachers remembered; experts beside the team are not teammates."""
    words = REMEMBERED[sharing.teacher_memory]
    return words.replace("Teammates", "Teachers") if num_experts else words


def _sharing_word(viewed: Viewed) -> str:
    """Return the name of how agents share in the episodes on the page."""
    if viewed.consult is not None:
        return "consulting"
    return NOBODY if viewed.is_alone else viewed.config.sharing_kind


def _named(recorded: RecordedEpisode, viewed: Viewed) -> dict[str, Any]:
    """Return an episode's key, kind, number and name, and a note on when or how it was played."""
    number = recorded.episode
    if recorded.kind in PLAYED:
        letter, word, note = PLAYED[recorded.kind]
        return {
            "key": f"{letter}{number}",
            "kind": recorded.kind,
            "number": number,
            "name": f"{word} {number}",
            "note": note.format(after=recorded.header["after"]),
        }
    return {"key": str(number), "kind": recorded.kind, "number": number, "name": f"Episode {number:,}",
            "note": _phase(number, viewed)}  # fmt: skip


def _phase(number: int, viewed: Viewed) -> str:
    if not isinstance(viewed.sharing, Mechanism):
        return "training"
    start, end = viewed.sharing.start_episode, viewed.config.episodes
    if number <= start:
        return "before sharing"
    share = (number - start) / max(end - start, 1)
    return "soon after sharing began" if share <= SOON_SHARE else "late in the run" if share >= LATE_SHARE else "midway"


def _settings(viewed: Viewed) -> list[list[str]]:
    """Return names and values of the settings that the page's numbers depend on, besides those in the glossary."""
    sharing = viewed.sharing
    if viewed.consult is not None:
        return [["consulting by", CONSULTED[viewed.consult].setting],
                ["what teammates remember", sharing.teacher_memory.value]]  # fmt: skip
    if not isinstance(sharing, Mechanism):
        return []
    rows: list[tuple[str, str]] = [
        ("preset", viewed.config.preset.value),
        ("who may ask", sharing.ask_gate.value),
        ("when", sharing.ask_when.value),
        ("who may teach", sharing.eligibility.value),
        ("what teachers remember", sharing.teacher_memory.value),
    ]
    if num_experts := _num_experts(viewed):
        rows.append(("experts beside the team", str(num_experts)))
    if sharing.hope_margin:
        rows.append(("expecting more means by more than", f"{sharing.hope_margin:g}"))
    if isinstance(sharing, Cons):
        rows += [
            ("which knowledge counts", sharing.knowledge.value),
            ("weights of teachers are normalised among", sharing.normalisation.value),
            ("how the action is drawn", sharing.sampling.value),
        ]
    return [list(row) for row in rows]
