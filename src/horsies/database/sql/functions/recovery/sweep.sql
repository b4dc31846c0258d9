-- horsies_sweep: for workers of release 0.2: steps of their reaper, one batch of each, in the order given.
-- Locks: the sweep lock; one worker sweeps at a time, another gets no answer.
-- A step that fails says why and stops no other; what would meet every step alike (no disk, no locks, a shutdown) is raised.
create or replace function horsies_sweep(steps text[], ages interval[], batch_limit integer)
returns table (step text, changed integer, failure text)
language plpgsql
set search_path from current
as $$
begin
    if not pg_try_advisory_xact_lock(horsies_lock_key('sweep')) then
        return;
    end if;
    for i in 1..cardinality(steps) loop
        step := steps[i];
        changed := 0;
        failure := null;
        begin
            case step
                when 'requeue stale claims' then changed := horsies_requeue_stale_claims(ages[i], '{}', batch_limit);
                when 'expire overdue tasks' then changed := horsies_expire_tasks(batch_limit);
                when 'prune heartbeats' then changed := horsies_prune_heartbeats(ages[i], batch_limit);
                when 'prune worker states' then changed := horsies_prune_worker_states(ages[i], batch_limit);
                when 'prune events' then changed := horsies_prune_events(ages[i], batch_limit);
                when 'prune workflows' then changed := horsies_prune_workflows(ages[i], batch_limit);
                when 'prune schedule runs' then changed := horsies_prune_schedule_runs(ages[i], batch_limit);
                else changed := horsies_prune_tasks(split_part(step, ' ', 2), ages[i], batch_limit);  -- 'prune FAILED tasks'
            end case;
        exception when others then
            if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
                raise;
            end if;
            failure := sqlerrm;
        end;
        return next;
    end loop;
end $$;
