-- horsies_record_history: how tasks ended since the last pass, by queue and in steps of ten seconds, and what waits now; then the longer
-- steps from the shorter ones. Says whether it has reached the present: a pass takes a minute at most, so that none is long.
-- Caller: recovery/queue_history.py.  Locks: the history lock; one worker records at a time, another is told that all is done.
-- Every pass repeats the last steps, which tasks may have joined since, and replaces what it repeats: one that is killed is made up for.
create or replace function horsies_record_history() returns boolean
language plpgsql
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    now_at timestamptz := horsies_now();
    recorded_at timestamptz;
    from_at timestamptz;
    until_at timestamptz;
begin
    if not pg_try_advisory_xact_lock(horsies_lock_key('history')) then
        return true;
    end if;
    select max(h.starts_at) into recorded_at from horsies_queue_history h where h.step_s = 10 and h.starts_at <= now_at;
    -- After a pause of all workers an hour is made up for, at the very first two minutes; what is older stays a gap.
    from_at := date_bin('10 s', greatest(coalesce(recorded_at - interval '20 s', now_at - interval '2 minutes'), now_at - interval '1 hour'), 'epoch');
    until_at := least(now_at, from_at + interval '80 s');

    insert into horsies_queue_history as h (step_s, starts_at, queue_name)
    select 10, s.starts_at, '' from generate_series(from_at, until_at, interval '10 s') s(starts_at)
    on conflict do nothing;

    with ended as materialized (
        select date_bin('10 s', e.ended_at, 'epoch') as starts_at, e.queue_name, e.status,
            horsies_bucket(horsies_readable(e.started_at) - horsies_readable(e.enqueued_at)) as start_bucket,
            horsies_bucket(horsies_readable(e.ended_at) - horsies_readable(e.started_at)) as run_bucket
        from unnest(array['COMPLETED', 'FAILED', 'EXPIRED']) s(status) cross join lateral (
            select t.queue_name, t.status, t.enqueued_at, t.started_at, coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) as ended_at
            from horsies_tasks t
            where t.status = s.status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
              and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) >= from_at
              and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) < until_at
            order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) limit 2000000) e)
    insert into horsies_queue_history as h
        (step_s, starts_at, queue_name, completed_count, failed_count, expired_count, start_latencies, run_times)
    select 10, e.starts_at, e.queue_name, count(*) filter (where e.status = 'COMPLETED'), count(*) filter (where e.status = 'FAILED'),
        count(*) filter (where e.status = 'EXPIRED'), horsies_histogram(array_agg(e.start_bucket)), horsies_histogram(array_agg(e.run_bucket))
    from ended e group by e.starts_at, e.queue_name
    on conflict (step_s, starts_at, queue_name) do update set completed_count = excluded.completed_count, failed_count = excluded.failed_count,
        expired_count = excluded.expired_count, start_latencies = excluded.start_latencies, run_times = excluded.run_times;

    if until_at = now_at then
        insert into horsies_queue_history as h (step_s, starts_at, queue_name, due_count, oldest_due_s)
        select 10, date_bin('10 s', now_at, 'epoch'), b.queue_name, b.due_count, extract(epoch from now_at - b.oldest_due_at)
        from horsies_queue_backlogs(100000) b
        on conflict (step_s, starts_at, queue_name) do update set due_count = excluded.due_count, oldest_due_s = excluded.oldest_due_s;
    end if;

    perform horsies_roll_up_history(10, 60, from_at, until_at);
    perform horsies_roll_up_history(60, 240, from_at, until_at);
    perform horsies_roll_up_history(240, 1200, from_at, until_at);
    perform horsies_roll_up_history(1200, 7200, from_at, until_at);
    perform horsies_roll_up_history(7200, 28800, from_at, until_at);
    perform horsies_prune_history(r.step_s, r.kept, 1000)
    from (values (10, interval '2 hours'), (60, '6 hours'), (240, '1 day'), (1200, '3 days'), (7200, '15 days'), (28800, '90 days')) r(step_s, kept);
    return until_at = now_at;
end $$;

-- horsies_bucket: where a length of time is counted: bucket n holds those up to 10^(n/8) milliseconds, so that neighbours differ by a third.
create or replace function horsies_bucket(length interval) returns integer
language sql immutable parallel safe as $$
    select case when length is not null then least(greatest(ceil(8 * log(greatest(extract(epoch from length) * 1000, 0.001)::double precision)), 0), 72)::integer end
$$;

-- horsies_histogram: how often each bucket occurs, from bucket 0 to the last one that does.
create or replace function horsies_histogram(buckets integer[]) returns integer[]
language sql immutable parallel safe as $$
    select coalesce(array_agg(coalesce(c.number, 0) order by i.bucket), '{}')
    from generate_series(0, (select max(b) from unnest(buckets) b)) i(bucket)
    left join (select b as bucket, count(*)::integer as number from unnest(buckets) b where b is not null group by b) c using (bucket)
$$;
