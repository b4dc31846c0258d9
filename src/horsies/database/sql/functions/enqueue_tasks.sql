-- horsies_enqueue_tasks: - -> PENDING for a batch (T1), one receipt per input in input order.
-- Caller: broker/enqueue.py, client/transaction.py (in the user's own transaction).
-- 'created'; 'exists' (same id, same fingerprint); 'mismatch' (same id, other fingerprint);
-- 'held' (unique key held by a task with the same arguments); 'key_mismatch' (with other arguments);
-- 'freed' (the key's holder ended while it was looked up: send again).
create or replace function horsies_enqueue_tasks(
    task_ids text[], task_names text[], queue_names text[], priorities integer[], args_texts text[], kwargs_texts text[],
    sent_ats timestamptz[], enqueued_ats timestamptz[], delays double precision[], good_untils timestamptz[],
    retry_limits integer[], options_texts text[], shas text[], unique_keys text[], stored_keys boolean[], tag_texts text[]
) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    created_ids text[];
begin
    with inserted as (
        insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at,
            good_until, max_retries, task_options, enqueue_sha, unique_key, unique_stored, tags, created_at, updated_at)
        select i.id, i.name, i.queue, i.priority, i.args, i.kwargs, i.sent_at,
            coalesce(i.enqueued_at, now_at + make_interval(secs => i.delay), now_at),
            i.good_until, i.retry_limit, i.options, i.sha, i.unique_key, i.is_stored,
            case when i.tags is not null then array(select jsonb_array_elements_text(i.tags::jsonb)) end,
            now_at, now_at
        from unnest(task_ids, task_names, queue_names, priorities, args_texts, kwargs_texts, sent_ats, enqueued_ats,
                delays, good_untils, retry_limits, options_texts, shas, unique_keys, stored_keys, tag_texts)
            as i(id, name, queue, priority, args, kwargs, sent_at, enqueued_at,
                delay, good_until, retry_limit, options, sha, unique_key, is_stored, tags)
        on conflict do nothing
        returning id)
    select coalesce(array_agg(inserted.id::text), '{}') into created_ids from inserted;

    if cardinality(created_ids) = cardinality(task_ids) then
        return query select i, 'created' from unnest(task_ids) as i;
        return;
    end if;

    return query
        select coalesce(case when i.id = any (created_ids) then i.id end, same_id.id, holder.id, i.id)::text,
            case when i.id = any (created_ids) then 'created'
                 when same_id.enqueue_sha = i.sha then 'exists'
                 when same_id.id is not null then 'mismatch'
                 when holder.id is null then 'freed'
                 when holder.args is not distinct from i.args and holder.kwargs is not distinct from i.kwargs then 'held'
                 else 'key_mismatch' end
        from unnest(task_ids, task_names, args_texts, kwargs_texts, shas, unique_keys)
            with ordinality as i(id, name, args, kwargs, sha, unique_key, position)
        left join horsies_tasks same_id on same_id.id = i.id
        left join horsies_tasks holder on holder.task_name = i.name and holder.unique_key = i.unique_key
            and holder.id <> i.id
            and (holder.unique_stored or holder.status in ('PENDING', 'CLAIMED', 'RUNNING'))
        order by i.position;
end $$;
