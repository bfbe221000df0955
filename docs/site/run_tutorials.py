"""Run the tutorials and store their outputs: `.venv/bin/python docs/site/run_tutorials.py [NAME …]`."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

TUTORIALS = Path(__file__).parents[1] / "tutorials"


def execute(notebook: nbformat.NotebookNode, folder: str | Path) -> None:
    """Run a notebook in this folder; its outputs are in it then."""
    NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": str(folder)}}).execute()


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook without what changes with every run: progress, when cells ran, how their output was cut up."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if not _is_progress(each)]
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(notebook, {})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return notebook


def _is_progress(output: nbformat.NotebookNode) -> bool:
    """Whether it tells how far a run has come: on stderr, or by rich, which shows lines as HTML."""
    return output.get("name") == "stderr" or set(output.get("data", ())) == {"text/html", "text/plain"}


def main() -> None:
    """Run the named tutorials, or all of them."""
    for path in sorted(TUTORIALS.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, folder)
        nbformat.write(tidied(notebook), path)


if __name__ == "__main__":
    main()
