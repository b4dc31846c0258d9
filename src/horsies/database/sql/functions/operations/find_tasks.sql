-- horsies_find_tasks: the ids of tasks that match a filter, newest first, and where the search stopped.
-- Caller: the statements list_tasks, find_ids and count_found.  Locks: none; it only reads, so a replica will do.
-- wanted: the filter, as operations/filters.py writes it.
-- walk: which index the search follows. 'id': the primary key, largest id first; 'made': what was made last comes first, by the time in
--   its id or, where an id has none, by that of the row; 'in_flight': what was claimed last comes first;
--   'ended': what ended last comes first, for the ended states in the filter.
-- The search goes on behind (before_at, before_id), ends after match_limit matches, and looks at examine_limit rows at most: no
-- page is slow, however rare the matches are. A last row with is_match false says where it stopped before the end.
create or replace function horsies_find_tasks(
    wanted jsonb, walk text, before_at timestamptz, before_id text, match_limit integer, examine_limit integer
) returns table (id text, reached_at timestamptz, is_match boolean)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off  -- but incremental ones: a whole sort would read all that the index has
set jit = off
as $$
declare
    ended constant text := 'coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at)';
    ended_at constant text := 'case when t.status in (''COMPLETED'', ''FAILED'', ''CANCELLED'', ''EXPIRED'') then ' || ended || ' end';
    -- The hint is never null: behind a null, the arguments would be read after all.
    conditions constant text := $sql$
        ($1 -> 'statuses' is null or $1 -> 'statuses' ? e.status)
        and ($1 ->> 'queue_name' is null or e.queue_name = $1 ->> 'queue_name')
        and ($1 ->> 'task_name' is null or e.task_name like $1 ->> 'task_name')
        and ($1 -> 'task_names' is null or $1 -> 'task_names' ? e.task_name)
        and ($1 ->> 'error_code' is null or e.error_code like $1 ->> 'error_code')
        and ($1 ->> 'tag' is null or $1 ->> 'tag' = any (e.tags))
        and ($1 ->> 'worker' is null or starts_with(e.claimed_by_worker_id, $1 ->> 'worker') or e.worker_hostname = $1 ->> 'worker')
        and ($1 ->> 'sent_since' is null or e.sent_at >= ($1 ->> 'sent_since')::timestamptz)
        and ($1 ->> 'sent_until' is null or e.sent_at < ($1 ->> 'sent_until')::timestamptz)
        and ($1 ->> 'ended_since' is null or e.ended_at >= ($1 ->> 'ended_since')::timestamptz)
        and ($1 ->> 'ended_until' is null or e.ended_at < ($1 ->> 'ended_until')::timestamptz)
        and ($1 ->> 'is_plain' is null or not e.is_workflow_task)
        and ($1 ->> 'hint' is null or strpos(coalesce(e.kwargs, ''), $1 ->> 'hint') > 0 or strpos(coalesce(e.args, ''), $1 ->> 'hint') > 0)
        and ($1 -> 'arguments' is null or horsies_has_arguments(e.args, e.kwargs, $1 -> 'arguments'))
    $sql$;
    -- Only what the conditions read: every row that is examined is handed on several times. Large arguments only if they are asked for.
    columns constant text := 't.id, t.status, t.queue_name, t.task_name, t.error_code, t.tags, t.claimed_by_worker_id, t.worker_hostname, t.sent_at,
        t.is_workflow_task, ' || case when wanted ? 'arguments' then 't.args, t.kwargs' else 'null::text as args, null::text as kwargs' end;
    rows constant text := 'select ' || columns || ', ' || ended_at || ' as ended_at, %s as at from horsies_tasks t where %s order by %s';
    -- Where a row whose id tells no time stands among those whose ids do: the expression of horsies_tasks_other_ids_idx.
    made constant text := $sql$(overlay(lpad(to_hex(case
        when t.created_at > '1970-01-01 00:00:00+00' and t.created_at < '9999-01-01 00:00:00+00'
        then (extract(epoch from t.created_at at time zone 'UTC') * 1000)::bigint else 0 end), 12, '0') placing '-' from 9 for 0) || '-' || t.id)$sql$;
    -- A page goes on behind a place, or behind a row whose id tells no time.
    start constant text := format('case when $2 = ''infinity'' then $3 else %s end', replace(replace(made, 't.created_at', '$2'), 't.id', '$3'));
    source text;
begin
    if walk = 'id' then
        source := format(rows, 'null::timestamptz', 't.id < $3 and t.id >= coalesce($1 ->> ''lowest_id'', '''')', 't.id desc');
    elsif walk = 'made' then
        -- Ordered inside, too, so that the two are merged: neither is read further than the page needs.
        -- Rows that both would bring count as examined, and only then fall out: no page walks over more of them than it may examine.
        source := format('(select %s, %s as ended_at, null::timestamptz as at, t.id::text as place, substr(t.id, 15, 1) <> ''7'' as is_twice
            from horsies_tasks t where t.id < ''02'' and t.id < %s and t.id >= coalesce($1 ->> ''lowest_id'', '''')
            order by t.id::text desc)
            union all
            (select %s, %s, t.created_at, %s, false from horsies_tasks t
            where (t.id >= ''02'' or substr(t.id, 15, 1) <> ''7'') and %s < %s and %s >= coalesce($1 ->> ''lowest_id'', '''')
            order by %s desc)', columns, ended_at, start, columns, ended_at, made, made, start, made, made);
    elsif walk = 'in_flight' then
        source := format(rows, 't.claimed_at', 't.status in (''CLAIMED'', ''RUNNING'') and (t.claimed_at, t.id) < ($2, $3)',
            't.claimed_at desc, t.id desc');
    else
        select string_agg('(' || format(rows, ended, format('t.status = %L and %s <= $2 and (%s, t.id) < ($2, $3) and %s >= %L',
                s.status, ended, ended, ended, coalesce(wanted ->> 'ended_since', '-infinity')), ended || ' desc, t.id desc') || ')', ' union all ')
        into source
        from jsonb_array_elements_text(wanted -> 'statuses') s(status);
    end if;
    source := format('select * from (%s) s order by %s', source,
        case walk when 'id' then 's.id desc' when 'made' then 's.place desc' else 's.at desc, s.id desc' end);

    -- One walk for both: the last row that may be examined is returned as the place where the search stopped, and before that as a match if it is one.
    return query execute format('select e.id::text, e.at, unnest(case when e.number < %1$s then ''{t}'' when %2$s then ''{t,f}'' else ''{f}'' end::boolean[])
        from (select s.*, row_number() over () as number from (%3$s) s limit %1$s) e where e.number = %1$s or (%2$s) limit %4$s',
        examine_limit, conditions || case walk when 'made' then ' and not e.is_twice' else '' end, source, match_limit)
        using wanted, before_at, before_id;
end $$;

-- horsies_has_arguments: whether the stored arguments have these values: [{"path": ["kwargs", "order"], "value": "42"}].
-- The filter's hint, a text that matching arguments contain, spares asking this of most others.
create or replace function horsies_has_arguments(args text, kwargs text, expected jsonb) returns boolean
language plpgsql immutable
set search_path from current
as $$
declare
    one jsonb;
    stored text;
    path text[];
begin
    for one in select * from jsonb_array_elements(expected) loop
        stored := case one -> 'path' ->> 0 when 'args' then args else kwargs end;
        path := array(select p.part from jsonb_array_elements_text(one -> 'path') with ordinality p(part, n) where p.n > 1 order by p.n);
        if horsies_json_text(stored, variadic path) is distinct from one ->> 'value' then
            return false;
        end if;
    end loop;
    return true;
end $$;
