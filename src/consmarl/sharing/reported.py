"""The metrics of CONS and AdHocTD, declared separately so that reports on older runs do not need JAX."""

from consmarl.metrics import SHARING, Metric

METRICS = (
    Metric("budget_used", "Requests spent per agent", SHARING, unit="requests"),
    Metric("advised_share", "Share of actions that were advised", SHARING, unit="share"),
    Metric("requests", "Requests per episode", SHARING, unit="requests"),
    Metric("answers", "Answers per episode", SHARING, unit="answers"),
    Metric("advised", "Advised actions per episode", SHARING, unit="actions"),
    Metric("num_observations", "Different observations met", SHARING, unit="observations"),
    Metric("table_fill", "Share of the counting table that is filled", SHARING, unit="share"),
    Metric("requests_left", "Requests left", SHARING, unit="requests", by_agent=True),
    Metric("answers_left", "Answers left", SHARING, unit="answers", by_agent=True),
)
# only where experts are beside the team; its name is that of the field of `Traffic`
EXPERT_ANSWERS = Metric("expert_answers", "Answers from experts per episode", SHARING, unit="answers")
