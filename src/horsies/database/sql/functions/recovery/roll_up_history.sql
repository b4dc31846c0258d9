-- horsies_roll_up_history: the longer steps that meet a time, made anew from the shorter ones they consist of.
-- Caller: horsies_record_history.  Locks: the rows it writes; their writer holds the history lock.
create or replace function horsies_roll_up_history(from_step integer, to_step integer, from_at timestamptz, until_at timestamptz) returns void
language plpgsql
set search_path from current
as $$
begin
    with parts as materialized (
        select date_bin(make_interval(secs => to_step), h.starts_at, 'epoch') as at, h.* from horsies_queue_history h
        where h.step_s = from_step and h.starts_at >= date_bin(make_interval(secs => to_step), from_at, 'epoch') and h.starts_at <= until_at
    ),
    first_starts as (
        select n.at, n.queue_name, array_agg(n.number order by n.bucket) as counts from (
            select p.at, p.queue_name, u.bucket, sum(u.number)::integer as number
            from parts p, unnest(p.start_latencies) with ordinality u(number, bucket) group by 1, 2, 3) n
        group by 1, 2
    ),
    runs as (
        select n.at, n.queue_name, array_agg(n.number order by n.bucket) as counts from (
            select p.at, p.queue_name, u.bucket, sum(u.number)::integer as number
            from parts p, unnest(p.run_times) with ordinality u(number, bucket) group by 1, 2, 3) n
        group by 1, 2
    )
    insert into horsies_queue_history as h (step_s, starts_at, queue_name, completed_count, failed_count, expired_count, start_latencies,
        run_times, due_count, oldest_due_s)
    select to_step, p.at, p.queue_name, sum(p.completed_count), sum(p.failed_count), sum(p.expired_count), coalesce(max(s.counts), '{}'),
        coalesce(max(r.counts), '{}'), max(p.due_count), max(p.oldest_due_s)
    from parts p left join first_starts s using (at, queue_name) left join runs r using (at, queue_name)
    group by p.at, p.queue_name
    on conflict (step_s, starts_at, queue_name) do update set completed_count = excluded.completed_count, failed_count = excluded.failed_count,
        expired_count = excluded.expired_count, start_latencies = excluded.start_latencies, run_times = excluded.run_times,
        due_count = excluded.due_count, oldest_due_s = excluded.oldest_due_s;
end $$;

-- horsies_prune_history: delete one batch of the steps of this length that are older than an age.
create or replace function horsies_prune_history(step integer, older_than interval, batch_limit integer) returns void
language plpgsql
set search_path from current
as $$
begin
    delete from horsies_queue_history where ctid = any (array(
        select h.ctid from horsies_queue_history h where h.step_s = step and h.starts_at < horsies_now() - older_than
        order by h.starts_at limit batch_limit for update skip locked));
end $$;
