-- Retention: each call deletes one bounded batch and says how many; the caller repeats until none is left.
-- Caller: recovery/reaper.py.  Claims are never blocked: only ended rows are locked, locked ones are skipped.

create or replace function horsies_prune_heartbeats(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    delete from horsies_heartbeats where id = any (array(
        select h.id from horsies_heartbeats h where h.sent_at < horsies_now() - older_than
        order by h.sent_at limit batch_limit for update skip locked));
    get diagnostics pruned = row_count;
    return pruned;
end $$;

create or replace function horsies_prune_worker_states(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    delete from horsies_worker_states where id = any (array(
        select s.id from horsies_worker_states s where s.snapshot_at < horsies_now() - older_than
        order by s.snapshot_at limit batch_limit for update skip locked));
    get diagnostics pruned = row_count;
    -- A few rows per worker, and none without a grant that is recent: those of dead workers go with their snapshots.
    delete from horsies_worker_permits p where p.granted_at < horsies_now() - older_than;
    delete from horsies_worker_drains d where d.requested_at < horsies_now() - older_than;
    delete from horsies_duties d where d.taken_at < horsies_now() - older_than;  -- of hosts that are no more
    return pruned;
end $$;

create or replace function horsies_prune_tasks(ended_status text, older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    delete from horsies_tasks where id = any (array(
        select t.id from horsies_tasks t
        where t.status = ended_status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
          and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) < horsies_now() - older_than
          and (not t.is_workflow_task or not exists (
                select from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
                where n.task_id = t.id and w.status not in ('COMPLETED', 'FAILED', 'CANCELLED')))
        order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at)
        limit batch_limit for update skip locked));
    get diagnostics pruned = row_count;
    return pruned;
end $$;

-- Roots with all their children, from the leaves: nodes first, then workflows without nodes and children, at most batch_limit rows in
-- all. However large a tree is, each call deletes a part of it.
create or replace function horsies_prune_workflows(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare
    trees text[];
    pruned integer;
    step integer;
begin
    with recursive roots as (
        select w.id from horsies_workflows w
        where w.status in ('COMPLETED', 'FAILED', 'CANCELLED')
          and coalesce(w.completed_at, w.updated_at, w.created_at) < horsies_now() - older_than
          and w.parent_workflow_id is null
        order by coalesce(w.completed_at, w.updated_at, w.created_at) limit batch_limit for update skip locked
    ), tree as (
        select r.id from roots r
        union all
        select w.id from tree t join horsies_workflows w on w.parent_workflow_id = t.id
    )
    select coalesce(array_agg(t.id::text), '{}') into trees from (select t.id from tree t limit 2 * batch_limit) t;
    delete from horsies_workflow_tasks where id = any (array(
        select n.id from horsies_workflow_tasks n where n.workflow_id = any (trees) limit batch_limit));
    get diagnostics pruned = row_count;
    loop
        delete from horsies_workflows where id = any (array(
            select w.id from horsies_workflows w
            where w.id = any (trees) and not exists (select from horsies_workflow_tasks n where n.workflow_id = w.id)
              and not exists (select from horsies_workflows c where c.parent_workflow_id = w.id)
            limit batch_limit - pruned));
        get diagnostics step = row_count;
        pruned := pruned + step;
        exit when step = 0;
    end loop;
    -- What the look at the trees left out counts as more to do.
    return case when pruned > 0 and cardinality(trees) >= 2 * batch_limit then greatest(pruned, batch_limit) else pruned end;
end $$;

-- An event for which a node still waits in a workflow that has not ended is kept: a paused workflow takes it when it goes on.
create or replace function horsies_prune_events(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    delete from horsies_events e where (e.name, e.key) in (
        select o.name, o.key from horsies_events o
        where o.sent_at < horsies_now() - older_than and not exists (
            select from horsies_workflow_tasks n where n.event_name = o.name and n.event_key = o.key and n.status = 'RUNNING')
        order by o.sent_at limit batch_limit for update skip locked);
    get diagnostics pruned = row_count;
    return pruned;
end $$;

-- horsies_prune_schedule_runs: delete one batch of the history of schedules that is older than an age, and say how many. The latest
-- slot that was sent and is forgotten now is noted: whether slots up to it were sent is unknown from then on.
-- Locks: the rows it deletes, then horsies_schedule_horizons, by name.
create or replace function horsies_prune_schedule_runs(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    with deleted as (
        delete from horsies_schedule_runs where ctid = any (array(
            select r.ctid from horsies_schedule_runs r where r.created_at < horsies_now() - older_than
            order by r.created_at limit batch_limit for update skip locked))
        returning schedule_name, slot_at, outcome
    ), noted as (
        insert into horsies_schedule_horizons as h (schedule_name, pruned_until)
        select d.schedule_name, max(d.slot_at) from deleted d where d.outcome = 'sent' group by d.schedule_name order by d.schedule_name
        on conflict (schedule_name) do update set pruned_until = greatest(h.pruned_until, excluded.pruned_until)
    )
    select count(*) into pruned from deleted;
    return pruned;
end $$;
