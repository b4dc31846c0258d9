-- horsies_controlled_queues: the queues of a claim without those that are paused, and with the caps that were set at run time.
-- Caller: horsies_claim_tasks_v2.  Locks: none. One read of a table that is mostly empty; a paused queue is left out as a whole, so
-- that none of its rows is skipped one by one, and its marks stay where they are (decision 0003).
create or replace function horsies_controlled_queues(queues jsonb) returns jsonb
language plpgsql stable
as $$
begin
    if not exists (select from horsies_queue_controls) then
        return queues;
    end if;
    return (
        select coalesce(jsonb_agg(case when c.max_concurrency is null then q.queue
                else jsonb_set(q.queue, '{cap}', to_jsonb(c.max_concurrency)) end order by q.number), '[]')
        from jsonb_array_elements(queues) with ordinality q(queue, number)
        left join horsies_queue_controls c on c.queue_name = q.queue ->> 'name'
        where c.paused_at is null);
end $$;
