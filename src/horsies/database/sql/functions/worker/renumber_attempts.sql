-- horsies_renumber_attempts: the next free attempt number for claims whose own is taken: their rows were reset by hand.
-- Caller: worker/completer.py after an attempt could not be stored.  Locks: horsies_tasks, by id (the caller sorts).
-- The retries that are left stay as many as they were. Answers each claim that is still held with its number from now on.
create or replace function horsies_renumber_attempts(owner_id text, task_ids text[], claims timestamptz[], attempts integer[])
returns table (task_id text, attempt integer)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        with held as (
            select t.id, greatest(t.retry_count, coalesce((
                select max(a.attempt) from horsies_task_attempts a where a.task_id = t.id), 0)) as last_attempt
            from unnest(task_ids, claims, attempts) i(id, claim, attempt) join horsies_tasks t on t.id = i.id
            where t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id and t.claimed_at = i.claim
              and horsies_attempt_number(t.retry_count) = i.attempt
            order by t.id for update of t
        ), renumbered as (
            update horsies_tasks t set retry_count = least(h.last_attempt, 2147483646),
                max_retries = least(2147483647, t.max_retries::bigint + (h.last_attempt - t.retry_count))::integer
            from held h where t.id = h.id and h.last_attempt > t.retry_count
        )
        select h.id::text, horsies_attempt_number(h.last_attempt) from held h;
end $$;
