-- horsies_next_priority: the priority of a queue that a claim scans next: the next one with a mark, or one without before that.
-- Caller: horsies_scan_queues, under the planner settings of horsies_claim_tasks_v2.  Locks: none.
-- It looks only into the gap between marked priorities: the dead index entries of marked ones are not walked over.
create or replace function horsies_next_priority(queue text, last_priority integer, marked_priority integer) returns integer
language plpgsql stable
as $$
declare
    unmarked_priority integer;
begin
    select t.priority into unmarked_priority from horsies_tasks t
    where t.status = 'PENDING' and t.queue_name = queue
      and t.priority > coalesce(last_priority, -2147483649) and t.priority < coalesce(marked_priority, 2147483648)
    order by t.queue_name, t.priority, t.enqueued_at, t.id limit 1;
    return coalesce(unmarked_priority, marked_priority);
end $$;
