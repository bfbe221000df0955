"""Watching draws the episodes that an evaluation plays, and writes whole files or none."""

import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
from PIL import Image
from tests.training.moody import Moody

from consmarl.environments.draw import Status, draw_frame
from consmarl.environments.film import rendering_world
from consmarl.errors import UsageError
from consmarl.experiments import watch as watching
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.evaluate import evaluate
from consmarl.experiments.policies import export_policy, load_policy
from consmarl.experiments.watch import draw_step, film, greedy_episodes, policy_gif, watch
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.none import ALONE
from consmarl.sharing.options import Consult
from consmarl.training.exploration import Greedy
from consmarl.training.rollout import Actors

SMALL = dict(
    env="pgm-3ag", set=("grid=4,4", "mining_steps=1", "stones_per_pile=2", "episode_limit=8", "view=3,3"),
    hidden_size=8, batch_episodes=4, replay_episodes=16, warmup_steps=0,
)  # fmt: skip
NUM_FRAMES = 8 + 1 + watching.FRAMES_HELD_AT_END


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The directory of a briefly trained run, with the files that watching needs."""
    directory, config = tmp_path_factory.mktemp("watched"), TrainConfig(**SMALL)
    trainer = config.trainer()
    state, _ = trainer.run(trainer.init(0), num_rounds=4)
    (directory / "config.json").write_text(config.to_json())
    export_policy(directory / "policy.safetensors", trainer.learner.parameters(state.learner), config, episode=16)
    return directory


def untrained(weights_seed, **settings):
    trainer = TrainConfig(**settings, hidden_size=8).trainer()
    return trainer, trainer.learner.parameters(jax.jit(trainer.learner.init)(jax.random.key(weights_seed)))


def trained(run):
    parameters, config = load_policy(run / "policy.safetensors")
    return config.trainer(), parameters


def assert_plays_as_evaluated(trainer, parameters, seed, num_episodes, sharing=ALONE):
    """Compare with an evaluation step by step: actions, rewards and every observation, the last one included."""
    world, actors = trainer.world, Actors(trainer.learner, Greedy(), sharing)
    batch = jax.device_get(trainer.evaluate(parameters, jax.random.key(seed), num_episodes, sharing).batch)
    observe = jax.jit(jax.vmap(world.observe))
    everything = list(greedy_episodes(world, actors, parameters, num_episodes, seed))
    assert [played.num_steps for played in everything] == batch.num_steps.tolist()
    for episode, played in enumerate(everything):
        length = played.num_steps
        np.testing.assert_array_equal(played.actions, batch.actions[:, episode, :length].T)
        np.testing.assert_array_equal(played.rewards, batch.rewards[:, episode, :length].T)
        seen = observe(played.states)
        np.testing.assert_array_equal(seen, batch.codes[:, episode, : length + 1].swapaxes(0, 1))
    return everything


def test_a_policy_plays_the_same_episodes_as_its_evaluation(run):
    played = assert_plays_as_evaluated(*trained(run), seed=5, num_episodes=2)
    returned = evaluate(run, 2, 5)["return"]
    assert np.mean([episode.rewards.sum() for episode in played]) == pytest.approx(returned, abs=1e-5)


def test_consulting_agents_play_the_same_episodes_as_their_evaluation(run):
    played = assert_plays_as_evaluated(*trained(run), seed=5, num_episodes=2, sharing=Consulting(Consult.MEAN))
    summary = evaluate(run, 2, 5, consult="mean")
    assert np.mean([episode.rewards.sum() for episode in played]) == pytest.approx(summary["return"], abs=1e-5)
    assert summary["requests"] == np.mean([3 * episode.num_steps for episode in played])
    assert summary["answers"] == 2 * summary["requests"]


def test_random_events_in_the_last_step_match_the_evaluation():
    growing = ("num_agents=2", "view=19,19", "episode_limit=2", "waste_limit=1.0")  # much chance, visible to all agents
    assert_plays_as_evaluated(*untrained(0, env="cleanup", set=growing), seed=0, num_episodes=16)


def test_an_episode_that_ends_early_is_drawn_to_its_end():
    corridor = ("grid=1,5", "num_agents=2", "num_mines=1", "num_piles=0", "mining_steps=0", "episode_limit=6",
                "view=1,3")  # fmt: skip
    trainer, parameters = untrained(1, preset="paper", env="pgm-3ag", set=corridor)
    everything = assert_plays_as_evaluated(trainer, parameters, seed=0, num_episodes=20)
    shortest = min(everything, key=lambda played: played.num_steps)
    assert shortest.num_steps < 6
    assert np.asarray(trainer.world.mine_is_gone(at(shortest, shortest.num_steps))).all()
    assert len(list(film(trainer.world, shortest, None))) == shortest.num_steps + 1 + watching.FRAMES_HELD_AT_END


def at(played, step):
    return jax.tree.map(lambda rows: rows[step], played.states)


def test_the_last_frame_shows_the_evaluations_last_actions_and_return(run):
    trainer, parameters = trained(run)
    batch = jax.device_get(trainer.evaluate(parameters, jax.random.key(5), 2).batch)
    played, _ = greedy_episodes(trainer.world, Actors(trainer.learner, Greedy(), ALONE), parameters, 2, seed=5)
    status = Status(actions=batch.actions[:, 0, -1], returns=batch.rewards[:, 0].sum(axis=1), num_steps=8)
    expected = draw_frame(trainer.world, at(played, 8), status)
    np.testing.assert_array_equal(list(film(trainer.world, played, 0))[-1], expected)
    assert (draw_step(trainer.world, played, 7, 0) != expected).any()


def test_a_run_and_its_policy_file_give_the_same_gif_and_other_seeds_another(run, tmp_path):
    first = watch(out=tmp_path / "a.gif", policy=run, episodes=2, seed=1)
    same = watch(out=tmp_path / "b.gif", policy=run / "policy.safetensors", episodes=2, seed=1)
    other = watch(out=tmp_path / "c.gif", policy=run, episodes=2, seed=2)
    assert first.read_bytes() == same.read_bytes() != other.read_bytes()
    with Image.open(first) as image:
        milliseconds = sum(frame_duration(image, number) for number in range(image.n_frames))
    assert milliseconds == pytest.approx(2 * NUM_FRAMES * 1000 / 6, rel=0.05)  # a GIF counts in hundredths of a second


def frame_duration(image, number):
    image.seek(number)
    return image.info["duration"]


def test_the_gif_for_reports_is_small_and_shows_the_whole_episode(run, tmp_path):
    written = policy_gif(run)
    assert written == run / "policy.gif"
    assert written.stat().st_size < watch(out=tmp_path / "large.gif", policy=run).stat().st_size / 2
    trainer, parameters = trained(run)
    (played,) = greedy_episodes(trainer.world, Actors(trainer.learner, Greedy(), ALONE), parameters, 1, seed=0)
    expected = Image.fromarray(draw_step(trainer.world, played, 8, 0))
    with Image.open(written) as image:
        milliseconds = sum(frame_duration(image, number) for number in range(image.n_frames))
        shown = np.asarray(image.convert("RGB").resize(expected.size), float)
    assert milliseconds == pytest.approx(NUM_FRAMES * 1000 / 6, rel=0.05)
    assert np.abs(shown - np.asarray(expected)).mean() < 10  # of 255: smaller, fewer colours, but the same picture


def test_a_video_has_every_frame_and_even_sides(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()
    settings = dict(parameters=dict(episode_limit=3), seed=4)
    video = watch("pgm-3ag", tmp_path / "new" / "watch.MP4", **settings, fps=12)
    world = watching.make("pgm-3ag", episode_limit=3)
    (played,) = watching.random_episodes(world, 1, seed=4)
    drawn = list(film(world, played, 0))
    height, width, _ = drawn[0].shape
    assert width % 2 == 1  # so that padding is needed
    command = [ffmpeg, "-i", video, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    played_back = subprocess.run(command, capture_output=True, check=True)
    facts = played_back.stderr.decode()
    for fact in ("h264", "yuv420p", "12 fps", f"{width + 1}x{height + height % 2}"):
        assert fact in facts
    frames = np.frombuffer(played_back.stdout, np.uint8).reshape(-1, height + height % 2, width + 1, 3)
    read = frames[:, :height, :width]
    assert len(read) == len(drawn) == 3 + 1 + watching.FRAMES_HELD_AT_END
    for ours, theirs in zip(drawn, read, strict=True):
        assert np.abs(ours.astype(float) - theirs).mean() < 4


@pytest.mark.parametrize("name", ["old.gif", "old.mp4"])
def test_an_interrupt_while_drawing_leaves_the_existing_file_unchanged(name, tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    (tmp_path / name).write_bytes(b"precious")

    def interrupted(world, played, step, view_of):
        if step == 2:
            raise KeyboardInterrupt
        return draw_step(world, played, step, view_of)

    monkeypatch.setattr(watching, "draw_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch("pgm-3ag", tmp_path / name, parameters=dict(episode_limit=3))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"precious")]


def test_a_failing_ffmpeg_raises_a_clear_error_and_leaves_the_existing_file(tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", shutil.which("false"))
    (tmp_path / "old.mp4").write_bytes(b"precious")
    with pytest.raises(UsageError, match=r"ffmpeg could not write the video: exit code 1\.$"):
        watch("pgm-3ag", tmp_path / "old.mp4", parameters=dict(episode_limit=3))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("old.mp4", b"precious")]


def test_the_error_without_imageio_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UsageError, match=r"pip install 'consmarl\[video\]', or write a \.gif"):
        watch("pgm-3ag", tmp_path / "watch.mp4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(out="watch.avi"), r"ending in \.gif or \.mp4, not 'watch.avi'"),
        (dict(env="pgm-3ag"), "name an environment or a policy, not both"),
        (dict(parameters=dict(num_agents=2)), "name an environment or a policy, not both"),
        (dict(policy=None), "nothing to watch: name an environment"),
        (dict(policy=None, consult="mean"), "cannot consult each other"),
        (dict(consult="all"), "consult has no value .all."),
        (dict(policy=None, env="lbforaging:Foraging"), "lbforaging has no environment 'Foraging'"),
        (dict(view_of=3), "view_of must be an agent from 0 to 2, not 3"),
        (dict(fps=51), "fps can be at most 50"),
    ],
)
def test_contradictory_or_invalid_arguments_are_refused(run, settings, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=sentence):
        watch(**(dict(policy=run) | settings))
    assert list(tmp_path.iterdir()) == []


def test_watching_a_run_without_a_policy_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match="not the directory of a run"):
        watch(policy=tmp_path, out=tmp_path / "watch.gif")
    shutil.copy(run / "config.json", tmp_path)
    with pytest.raises(UsageError, match=r"no whole checkpoint in .*: nothing was saved there"):
        watch(policy=tmp_path, out=tmp_path / "watch.gif")
    with pytest.raises(UsageError, match=r"no policy file .*policy.safetensors"):
        policy_gif(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


MOODY = "pettingzoo:tests.training.moody:Moody"


def test_an_environment_in_python_is_shown_as_it_renders_itself(tmp_path):
    out = watch(MOODY, tmp_path / "watch.gif", seed=1)
    with Image.open(out) as image:
        image.seek(image.n_frames - 1)
        last = np.asarray(image.convert("RGB"), np.int16)
    # by then more than half of Moody's picture is red
    assert (np.abs(last[20, 20] - (200, 30, 30)) < 40).all()
    with pytest.raises(UsageError, match=r"cannot be made with .*'speed'"):
        watch(MOODY, tmp_path / "other.gif", parameters=dict(speed=3))


def test_an_environment_that_cannot_render_itself_is_shown_as_a_ring(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Moody, "render", lambda self: self.screen)
    out = watch(MOODY, tmp_path / "watch.gif", seed=1)
    assert out.stat().st_size > 1000
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot draw itself here (AttributeError: 'Moody' object has no attribute 'screen'), so its agents" in said


def test_a_policy_of_a_third_party_environment_is_watched_only_with_permission(tmp_path):
    settings = dict(env=MOODY)
    _, parameters = untrained(0, **settings)
    policy = export_policy(tmp_path / "p.safetensors", parameters, TrainConfig(**settings, hidden_size=8), episode=0)
    with pytest.raises(UsageError, match=r"p.safetensors names the environment .*Moody, .* or --trust"):
        watch(policy=policy, out=tmp_path / "watch.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["p.safetensors"]
    for consent in (dict(trust=True), dict(env=MOODY)):
        watch(policy=policy, out=tmp_path / "watch.gif", **consent)
    world = rendering_world(MOODY)
    trainer = TrainConfig(**settings, hidden_size=8).trainer()
    actors = Actors(trainer.learner, Greedy(), ALONE)
    played = list(greedy_episodes(world, actors, parameters, 3, seed=2))
    evaluated = trainer.evaluate(parameters, jax.random.key(2), 3).batch
    for number, each in enumerate(played):  # an evaluation's episodes, with a picture before and after each step
        assert each.rewards.sum() == evaluated.rewards[:, number].sum()
        assert len(each.states) == each.num_steps + 1 == evaluated.num_steps[number] + 1
        assert each.states[0].shape == (40, 40, 3)
