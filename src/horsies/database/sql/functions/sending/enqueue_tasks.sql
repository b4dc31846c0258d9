-- horsies_enqueue_tasks: - -> PENDING for a batch (T1), one receipt per input in input order.
-- Caller: sending/enqueuer.py; sending/transaction.py in the user's own transaction.
-- The parameters are the fields of NewTask in sending/rows.py: one array per field, one element per row.
-- 'created'; 'exists' (same id, same fingerprint); 'mismatch' (same id, other fingerprint);
-- 'held' (unique key held by a task with the same arguments); 'key_mismatch' (with other arguments);
-- 'freed' (the key's holder ended while it was looked up, ten times over).
create or replace function horsies_enqueue_tasks(
    id text[],
    task_name text[],
    queue_name text[],
    priority integer[],
    args text[],
    kwargs text[],
    sent_at timestamptz[],
    enqueued_at timestamptz[],
    delay_s double precision[],
    good_until timestamptz[],
    max_retries integer[],
    task_options text[],
    enqueue_sha text[],
    unique_key text[],
    unique_stored boolean[],
    tags text[]
) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    created_now text[];
    created_ids text[] := '{}';
    found_ids text[];
    outcomes text[];
begin
    for tries in 1..10 loop
        with inserted as (
            insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at,
                good_until, max_retries, task_options, enqueue_sha, unique_key, unique_stored, tags, created_at, updated_at)
            select i.id, i.task_name, i.queue_name, i.priority, i.args, i.kwargs, i.sent_at,
                coalesce(i.enqueued_at, now_at + make_interval(secs => i.delay_s), now_at),
                i.good_until, i.max_retries, i.task_options, i.enqueue_sha, i.unique_key, i.unique_stored,
                case when i.tags is not null then array(select jsonb_array_elements_text(i.tags::jsonb)) end,
                now_at, now_at
            from unnest(id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, delay_s,
                    good_until, max_retries, task_options, enqueue_sha, unique_key, unique_stored, tags)
                as i(id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, delay_s,
                    good_until, max_retries, task_options, enqueue_sha, unique_key, unique_stored, tags)
            on conflict do nothing
            returning id)
        select coalesce(array_agg(inserted.id::text), '{}') into created_now from inserted;

        created_ids := created_ids || created_now;
        if cardinality(created_ids) = cardinality(id) then
            return query select i, 'created' from unnest(id) as i;
            return;
        end if;

        select array_agg(coalesce(case when i.id = any (created_ids) then i.id end, same_id.id, holder.id, i.id)::text order by i.position),
            array_agg(case when i.id = any (created_ids) then 'created'
                           when same_id.enqueue_sha = i.enqueue_sha then 'exists'
                           when same_id.id is not null then 'mismatch'
                           when holder.id is null then 'freed'
                           when holder.args is not distinct from i.args and holder.kwargs is not distinct from i.kwargs then 'held'
                           else 'key_mismatch' end order by i.position)
        into found_ids, outcomes
        from unnest(id, task_name, args, kwargs, enqueue_sha, unique_key)
            with ordinality as i(id, task_name, args, kwargs, enqueue_sha, unique_key, position)
        left join horsies_tasks same_id on same_id.id = i.id
        left join horsies_tasks holder on holder.task_name = i.task_name and holder.unique_key = i.unique_key
            and holder.id <> i.id
            and (holder.unique_stored or holder.status in ('PENDING', 'CLAIMED', 'RUNNING'));
        exit when not 'freed' = any (outcomes);
    end loop;
    return query select * from unnest(found_ids, outcomes);
end $$;
