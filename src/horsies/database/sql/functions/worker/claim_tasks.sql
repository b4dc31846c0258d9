-- horsies_claim_tasks: horsies_claim_tasks_v2 as workers of 0.2.0 call it: there the counts came as args of their row.
-- Caller: none of this release.  Locks: as horsies_claim_tasks_v2.
create or replace function horsies_claim_tasks(
    owner_id text,
    hostname text,
    own_pid integer,
    lease interval,
    queues jsonb,
    lanes jsonb,
    limits jsonb,
    is_full_scan boolean
) returns table (
    id text, queue_name text, priority integer, lane integer, task_name text, args text, kwargs text, attempt integer,
    claim text, enqueued_at text, task_options text, is_workflow_task boolean, worker_pid integer,
    scanned_to_at text, scanned_to_id text, may_have_more boolean
)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        select c.id, c.queue_name, c.priority, c.lane, c.task_name, coalesce(c.args, c.counts), c.kwargs, c.attempt,
            c.claim, c.enqueued_at, c.task_options, c.is_workflow_task, c.worker_pid,
            c.scanned_to_at, c.scanned_to_id, c.may_have_more
        from horsies_claim_tasks_v2(
            horsies_claim_tasks.owner_id, horsies_claim_tasks.hostname, horsies_claim_tasks.own_pid,
            horsies_claim_tasks.lease, horsies_claim_tasks.queues, horsies_claim_tasks.lanes,
            horsies_claim_tasks.limits, horsies_claim_tasks.is_full_scan, null) c
        order by c.position nulls first;
end $$;
