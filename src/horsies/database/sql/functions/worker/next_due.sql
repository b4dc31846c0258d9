-- horsies_next_due: seconds until the next waiting row of these queues becomes claimable, null when none waits for its time.
-- Caller: worker/claimer.py before it sleeps. One index probe per queue and priority.
-- Nothing of a paused queue becomes claimable.
-- What became due a moment ago counts, as due now: it may have done so between the last claim and this question, and a claim that
-- starts at its marks is cheap.
create or replace function horsies_next_due(queues text[]) returns double precision
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    since_at timestamptz := now_at - interval '5 seconds';
    earliest timestamptz;
    candidate timestamptz;
    at_priority bigint;
begin
    for q in 1..cardinality(queues) loop
        continue when exists (select from horsies_queue_controls c where c.queue_name = queues[q] and c.paused_at is not null);
        at_priority := -2147483649;
        loop
            select t.priority into at_priority from horsies_tasks t
            where t.status = 'PENDING' and not t.is_held and t.queue_name = queues[q] and t.priority > at_priority
            order by t.queue_name, t.priority, t.enqueued_at, t.id limit 1;
            exit when at_priority is null;
            select t.enqueued_at into candidate from horsies_tasks t
            where t.status = 'PENDING' and not t.is_held and t.queue_name = queues[q] and t.priority = at_priority and t.enqueued_at > since_at and t.enqueued_at < 'infinity'
            order by t.enqueued_at, t.id limit 1;
            earliest := least(earliest, candidate);
        end loop;
    end loop;
    return case when earliest < now_at then 0 else extract(epoch from earliest - now_at) end;
end $$;
