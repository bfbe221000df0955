"""The tutorials run from top to bottom, as a reader would run them, but with small settings."""

import importlib.util
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra docs is not installed")

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
# code to insert after the cell tagged "parameters"
SMALL = {
    "teach-your-own-q-learner": "LOCK_EPISODES, MINE_EPISODES, SEEDS = 60, 24, range(1)",
    "train-compare-understand": "EPISODES, SEEDS = 160, range(1)",
    "your-own-environment-and-method": "EPISODES, SEEDS = 80, range(1)",
}
HAS_TORCH = importlib.util.find_spec("torch") is not None
NEEDING_TORCH = "teach-your-own-q-learner"


def prepared(name, *, with_torch=True):
    """Return a notebook with small settings, without outputs."""
    notebook = nbformat.read(TUTORIALS / f"{name}.ipynb", as_version=4)
    cells = []
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and (with_torch or "torch" not in tags):
            cells.append(cell)
        if "parameters" in tags:
            cells.append(nbformat.v4.new_code_cell(SMALL[name]))
    notebook.cells = cells
    return notebook


def run(notebook, folder, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(TUTORIALS.parents[1] / "src"))
    client = nbclient.NotebookClient(notebook, timeout=1_200, resources={"metadata": {"path": str(folder)}})
    client.execute()
    return "".join(each.get("text", "") for cell in notebook.cells for each in cell.outputs)


def test_every_tutorial_is_tested():
    assert {path.stem for path in TUTORIALS.glob("*.ipynb")} == set(SMALL)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_stored_outputs_come_from_one_complete_run(name):
    notebook = nbformat.read(TUTORIALS / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(each.output_type == "error" for cell in cells for each in cell.outputs)
    text = str([cell.outputs for cell in cells])
    assert "/tmp/" not in text  # nothing that reveals the machine it ran on
    assert str(Path.home()) not in text


def test_the_q_learner_tutorial_runs(tmp_path, monkeypatch):
    said = run(prepared(NEEDING_TORCH, with_torch=HAS_TORCH), tmp_path, monkeypatch)
    assert "CONS" in said
    assert "agent 0 does 2 instead of 0" in said


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_the_q_learner_tutorial_includes_its_torch_cells():
    with_torch, without = (prepared(NEEDING_TORCH, with_torch=each).cells for each in (True, False))
    assert len(with_torch) - len(without) == 2


def test_the_training_and_comparison_tutorial_runs(tmp_path, monkeypatch):
    said = run(prepared("train-compare-understand"), tmp_path, monkeypatch)
    assert said.count("finished") == 2
    assert "not established with one seed" in said
    assert "choices changed by answers" in said


def test_the_environment_and_method_tutorial_runs(tmp_path, monkeypatch):
    said = run(prepared("your-own-environment-and-method"), tmp_path, monkeypatch)
    assert "huber_width" in said  # the suggested option
    assert "lifted in" in said
    assert (tmp_path / "runs" / "sweep" / "lifting" / "huber" / "seed-0" / "result.json").is_file()
