"""horsies_claim_tasks: the claim as workers of 0.2.0 call it."""

from support.database import Database

CLAIM = """
select * from horsies_claim_tasks('worker-a', 'host-a', 1000, '60 s',
    '[{"name": "default", "cap": 2, "marks": []}]',
    '[{"starts": 5, "claims": 0, "child_pids": null, "is_sparse": false}]',
    '{"counts_claims": true, "batch_limit": 0, "byte_limit": 64000000, "counts": null}', true)
"""


def test_counts_come_as_args_before_the_tasks(db: Database) -> None:
    first, second, _ = db.insert(id="a"), db.insert(id="b"), db.insert(id="c")

    rows = db.execute(CLAIM)

    tasks = [row for row in rows if row["id"] is not None]
    (counts,) = [row["args"] for row in rows if row["id"] is None and row["queue_name"] is None]
    assert [row["id"] for row in tasks] == [first, second]
    assert '"queues": {"default"' in counts
    assert "counts" not in rows[0]
