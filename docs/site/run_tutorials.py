"""Run the tutorials and store their outputs: `.venv/bin/python docs/site/run_tutorials.py [NAME …]`."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[1] / "tutorials"


def executed(notebook: nbformat.NotebookNode, folder: str | Path) -> nbformat.NotebookNode:
    """Return the notebook with its outputs after a run in this folder."""
    NotebookClient(
        notebook, timeout=3600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def main() -> None:
    """Run the named tutorials, or all of them."""
    for path in sorted(TUTORIALS.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            executed(notebook, folder)
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it ran is of no interest, and changes with every run
        notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
