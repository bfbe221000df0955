"""Collect the runs of this comparison: `python collect.py RUNS …` writes evaluations.json and prints the final table.

Only the runs' JSON files are read. Final returns are over 400 greedy episodes; AUC is the mean of all evaluations.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def read(run: Path) -> dict:
    """Return the summary of a finished run that evaluations.json holds."""
    config = json.loads((run / "config.json").read_text())
    result = json.loads((run / "result.json").read_text())
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    evaluations = [(row["episode"], row["evaluation_return"]) for row in rows if "evaluation_return" in row]
    counters = {name: result[name] for name in ("gold_mined", "treasures_taken", "coins_taken") if name in result}
    return {
        "world": config["env"], "method": config["method"], "seed": config["seed"], "return": result["return"],
        "return_error": result["return_error"], **counters, "evaluations": evaluations,
    }  # fmt: skip


def main() -> None:
    """Write evaluations.json and print the table."""
    finished = [path.parent for root in sys.argv[1:] for path in Path(root).rglob("result.json")]
    runs = sorted(map(read, finished), key=lambda run: (run["world"], run["method"], run["seed"]))
    text = json.dumps(runs, indent=None, separators=(",", ":")).replace("},{", "},\n{")
    (HERE / "evaluations.json").write_text(text + "\n")
    for run in runs:
        area = sum(value for _, value in run["evaluations"]) / len(run["evaluations"])
        found = {name: round(value, 2) for name, value in run.items() if name.endswith(("_mined", "_taken"))}
        ended = f"{run['return']:6.2f} ± {run['return_error']:.2f}"
        print(f"{run['world']:8s} {run['method']:9s} seed {run['seed']}: {ended}  AUC {area:6.2f}  {found}")


if __name__ == "__main__":
    main()
