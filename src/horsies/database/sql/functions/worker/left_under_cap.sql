-- horsies_left_under_cap: how many more tasks may be in flight in a queue, or in all queues when none is named.
-- Caller: horsies_scan_queues, under the claim lock, so that no other claim comes between.
-- A count remembers what the next one of this worker builds on: {"before", "ids"}. Of the rows claimed before that instant only
-- these ids were in flight, at most 50; a row claimed since bears a later time. So the index entries of tasks that have ended are
-- not walked again (decision 0003). Without memory, or when the clock was set back, all is counted.
create or replace function horsies_left_under_cap(
    cap integer, queue text, counts_claims boolean, now_at timestamptz, inout memory jsonb, out left_under_cap integer
)
language plpgsql
as $$
declare
    start_at timestamptz := coalesce((memory ->> 'before')::timestamptz, '-infinity');
    in_flight integer;
begin
    if start_at > now_at then
        start_at := '-infinity';
    end if;
    with found as materialized (
        select t.id, t.claimed_at, t.queue_name, t.status, t.claim_expires_at from horsies_tasks t
        where t.status in ('CLAIMED', 'RUNNING') and t.claimed_at >= start_at
        union all
        select t.id, t.claimed_at, t.queue_name, t.status, t.claim_expires_at from horsies_tasks t
        where t.status in ('CLAIMED', 'RUNNING') and t.claimed_at is null  -- written by hand
        union all
        select t.id, t.claimed_at, t.queue_name, t.status, t.claim_expires_at from horsies_tasks t
        where t.id = any (array(select jsonb_array_elements_text(memory -> 'ids')))
          and t.status || '' in ('CLAIMED', 'RUNNING')  -- found by primary key
          and t.claimed_at < start_at
    ), own as materialized (
        select f.* from found f where queue is null or f.queue_name = queue
    ), reached as (
        select least((array_agg(o.claimed_at order by o.claimed_at))[51], now_at) as before_at from own o
    )
    select count(*) filter (where o.status = 'RUNNING' or (counts_claims and o.claim_expires_at >= now_at)),
        jsonb_build_object('before', max(r.before_at),
            'ids', coalesce(jsonb_agg(o.id) filter (where o.claimed_at < r.before_at), '[]'))
    into in_flight, memory
    from reached r left join own o on true;
    left_under_cap := cap - in_flight;
end $$;
