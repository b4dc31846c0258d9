-- horsies_queue_backlogs: what waits in each queue: how much, since when, and until when the next one waits for its time.
-- Caller: operations/queues.py.  Locks: none; it only reads. One index probe per queue and priority, and counts that stop at a limit.
-- oldest_due_at: since when the oldest task waits that might run now; next_due_at: when the next one is due that waits for its time.
create or replace function horsies_queue_backlogs(count_limit integer)
returns table (queue_name text, due_count integer, later_count integer, oldest_due_at timestamptz, next_due_at timestamptz)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    at_queue text := '';
    at_priority bigint;
    first_at timestamptz;
    found_count integer;
begin
    for queue_number in 1..1000 loop
        select t.queue_name into at_queue from horsies_tasks t
        where t.status = 'PENDING' and not t.is_held and t.queue_name > at_queue
        order by t.queue_name, t.priority, t.enqueued_at, t.id limit 1;
        exit when at_queue is null;
        queue_name := at_queue;
        due_count := 0;
        later_count := 0;
        oldest_due_at := null;
        next_due_at := null;
        at_priority := -2147483649;
        loop
            select t.priority, horsies_readable(t.enqueued_at) into at_priority, first_at from horsies_tasks t
            where t.status = 'PENDING' and not t.is_held and t.queue_name = at_queue and t.priority > at_priority
            order by t.queue_name, t.priority, t.enqueued_at, t.id limit 1;
            exit when at_priority is null;
            if first_at <= now_at then
                oldest_due_at := least(oldest_due_at, first_at);
            end if;
            select count(*) into found_count from (
                select from horsies_tasks t
                where t.status = 'PENDING' and not t.is_held and t.queue_name = at_queue and t.priority = at_priority
                  and t.enqueued_at <= now_at
                order by t.enqueued_at limit count_limit - due_count) d;
            due_count := due_count + found_count;
            select count(*), least(next_due_at, min(horsies_readable(l.enqueued_at))) into found_count, next_due_at from (
                select t.enqueued_at from horsies_tasks t
                where t.status = 'PENDING' and not t.is_held and t.queue_name = at_queue and t.priority = at_priority
                  and t.enqueued_at > now_at
                order by t.enqueued_at limit greatest(count_limit - later_count, 1)) l;
            later_count := least(later_count + found_count, count_limit);
        end loop;
        return next;
    end loop;
end $$;
