-- horsies_claim_tasks: PENDING -> RUNNING (claimed and started at once, T2 + T4) or PENDING -> CLAIMED (T2) for one worker.
-- Caller: worker/claimer.py.  Locks: the cluster claim lock only under a cap; horsies_tasks, skipping locked rows.
-- A lane is an execution kind: a task name's lane stands in task_names/task_lanes, every other name is lane 1.
-- Per lane the first lane_starts rows start at once, the next lane_claims rows wait in the worker's buffer.
-- Marks are where earlier passes of this worker stopped, per queue, priority and lane: dead index entries before them are
-- not walked again (decision 0003). They come in order, those of queue q from mark_starts[q] on: a search would cost marks * queues.
-- A sparse lane, one that found little the last time, is searched through 2,000 rows of a queue and priority at a time: a pass
-- must not wait for its walk over a deep backlog of other lanes. Under a soft cap (counts_claims false) waiting claims do not count. A full scan ignores the marks and takes over claims whose lease has passed (T3).
create or replace function horsies_claim_tasks(
    owner_id text, hostname text, own_pid integer, lease interval, is_full_scan boolean, batch_limit integer, counts_claims boolean,
    queues text[], queue_caps integer[], cluster_cap integer,
    task_names text[], task_lanes integer[], lane_starts integer[], lane_claims integer[], sparse_lanes boolean[], child_pids integer[],
    mark_starts integer[], mark_priorities integer[], mark_lanes integer[], mark_times timestamptz[], mark_ids text[]
) returns table (
    id text, task_name text, queue_name text, priority integer, args text, kwargs text, attempt integer,
    claim text, enqueued_at timestamptz, task_options text, is_workflow_task boolean, lane integer, worker_pid integer
)
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off set enable_sort = off set jit = off  -- either would read the whole backlog before the first row
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    has_lanes boolean := cardinality(task_names) > 0;
    left_in_total integer := 0;
    left_in_queue integer;
    lane_left integer[];
    in_flight bigint;
    at_priority bigint;
    known_priority integer;
    next_priority integer;
    next_mark integer;
    mark_at integer;
    start_at timestamptz;
    start_id text;
    end_at timestamptz;
    end_id text;
    found_ids text[];
    found_lanes integer[];
    picked_ids text[] := '{}';
    picked_lanes integer[] := '{}';
begin
    for l in 1..cardinality(lane_starts) loop
        lane_left[l] := lane_starts[l] + lane_claims[l];
        left_in_total := left_in_total + lane_left[l];
    end loop;
    if cluster_cap is not null or array_remove(queue_caps, null) <> '{}' then
        perform pg_advisory_xact_lock(horsies_lock_key('claim'));
    end if;
    if cluster_cap is not null then
        select count(*) into in_flight from horsies_tasks t
        where t.status = 'RUNNING' or (counts_claims and t.status = 'CLAIMED' and t.claim_expires_at >= now_at);
        left_in_total := least(left_in_total, cluster_cap - in_flight);
    end if;
    if is_full_scan then
        perform horsies_release_expired_claims(now_at);
    end if;

    for q in 1..cardinality(queues) loop
        exit when left_in_total <= 0;
        left_in_queue := least(left_in_total, nullif(batch_limit, 0));
        if queue_caps[q] is not null then
            select count(*) into in_flight from horsies_tasks t
            where t.queue_name = queues[q]
              and (t.status = 'RUNNING' or (counts_claims and t.status = 'CLAIMED' and t.claim_expires_at >= now_at));
            left_in_queue := least(left_in_queue, queue_caps[q] - in_flight);
        end if;
        at_priority := -2147483649;
        next_mark := mark_starts[q];
        while left_in_queue > 0 loop
            -- The next priority: a known one, or a new one in the gap before it (an empty range of the index).
            while next_mark < mark_starts[q + 1] and mark_priorities[next_mark] <= at_priority loop
                next_mark := next_mark + 1;
            end loop;
            known_priority := case when next_mark < mark_starts[q + 1] then mark_priorities[next_mark] end;
            next_priority := null;
            select t.priority into next_priority from horsies_tasks t
            where t.status = 'PENDING' and t.queue_name = queues[q] and t.priority > at_priority
              and t.priority < coalesce(known_priority, 2147483648)
            order by t.queue_name, t.priority, t.enqueued_at, t.id limit 1;
            next_priority := coalesce(next_priority, known_priority);
            exit when next_priority is null;
            at_priority := next_priority;

            found_ids := '{}';
            found_lanes := '{}';
            for l in 1..cardinality(lane_starts) loop
                continue when lane_left[l] <= 0;
                mark_at := null;
                for m in next_mark..mark_starts[q + 1] - 1 loop
                    exit when mark_priorities[m] > next_priority;
                    if mark_lanes[m] = l then
                        mark_at := m;
                    end if;
                end loop;
                start_at := coalesce(mark_times[mark_at], '-infinity');
                start_id := coalesce(mark_ids[mark_at], '');
                end_at := null;
                if has_lanes and sparse_lanes[l] then
                    select e.end_at, e.end_id into end_at, end_id
                    from horsies_scan_limit(queues[q], next_priority, now_at, start_at, start_id) e;
                end if;
                with found as (
                    select t.id from horsies_tasks t
                    where t.status = 'PENDING' and t.queue_name = queues[q] and t.priority = next_priority
                      and (t.enqueued_at, t.id) > (start_at, start_id)
                      and t.enqueued_at <= coalesce(end_at, now_at)  -- this one ends the walk, the next cuts within an instant
                      and (t.enqueued_at, t.id) <= (coalesce(end_at, 'infinity'), coalesce(end_id, ''))
                      and (t.next_retry_at is null or t.next_retry_at <= now_at)
                      and (t.good_until is null or t.good_until > now_at)
                      and (not has_lanes or l = coalesce(task_lanes[array_position(task_names, t.task_name::text)], 1))
                      and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is null)
                    order by t.enqueued_at, t.id
                    limit least(left_in_queue, lane_left[l])
                    for update skip locked)
                select found_ids || coalesce(array_agg(f.id::text), '{}'), found_lanes || coalesce(array_agg(l), '{}')
                into found_ids, found_lanes from found f;
                if cardinality(array_positions(found_lanes, l)) < least(left_in_queue, lane_left[l]) then
                    -- A row without id: where this lane's next search starts; in `args` the id there if more may follow.
                    return query select '', '', queues[q], next_priority, case when end_at is not null then end_id end, null::text,
                        0, '', coalesce(end_at, now_at - interval '1 second'), null::text, false, l, null::integer;
                end if;
            end loop;

            if cardinality(found_ids) > left_in_queue then
                -- Lanes share what is left under a cap: the oldest rows win, whatever their lane.
                select o.task_ids, o.task_lanes into found_ids, found_lanes
                from horsies_oldest_tasks(found_ids, found_lanes, left_in_queue) o;
            end if;
            picked_ids := picked_ids || found_ids;
            picked_lanes := picked_lanes || found_lanes;
            left_in_queue := left_in_queue - cardinality(found_ids);
            left_in_total := left_in_total - cardinality(found_ids);
            for l in 1..cardinality(lane_left) loop
                lane_left[l] := lane_left[l] - cardinality(array_positions(found_lanes, l));
            end loop;
            exit when not 0 < any (lane_left);
        end loop;
        exit when not 0 < any (lane_left) or (batch_limit > 0 and left_in_queue = 0);
    end loop;

    -- A later now: after the wait for the lock and the counts, so that recorded runs never seem to exceed a cap.
    return query select * from horsies_take_tasks(
        owner_id, hostname, own_pid, lease, horsies_now(), picked_ids, picked_lanes, lane_starts, child_pids);
end $$;
