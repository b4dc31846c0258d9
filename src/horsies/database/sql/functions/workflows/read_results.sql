-- horsies_is_result: whether a text is a stored TaskResult.
create or replace function horsies_is_result(stored text) returns boolean
language plpgsql immutable
as $$
begin
    return json_typeof(stored::json) = 'object' and (stored::json -> 'ok' is not null or stored::json -> 'err' is not null);
exception when data_exception or invalid_text_representation then
    return false;
end $$;

-- horsies_json: a text as JSON; null when it is none.
create or replace function horsies_json(stored text) returns json
language plpgsql immutable
as $$
begin
    return stored::json;
exception when data_exception or invalid_text_representation then
    return null;
end $$;

-- horsies_error_of: the TaskError of a stored TaskResult; null when it has none, or cannot be read.
create or replace function horsies_error_of(stored text) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    return nullif((horsies_json(stored) -> 'err')::text, 'null');
end $$;

-- horsies_ok_of: the ok value of a stored TaskResult, as JSON text; null when it has none, or cannot be read. The envelope that
-- codec/results.py writes is taken off without reading what is in it.
create or replace function horsies_ok_of(stored text) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    if left(stored, 29) = '{"__task_result__":true,"ok":' and right(stored, 12) = ',"err":null}' then
        return substr(stored, 30, length(stored) - 41);
    end if;
    return case when horsies_error_of(stored) is null then (horsies_json(stored) -> 'ok')::text end;
end $$;

-- horsies_missing_result: what stands for the result of an ended task that has none, or one that cannot be read.
create or replace function horsies_missing_result(task_id text, status text, is_unreadable boolean) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    return case
        when is_unreadable or status = 'FAILED' then horsies_error_result('WORKER_CRASHED',
            'The task ended without a result that can be read', json_build_object('task_id', task_id))
        when status = 'CANCELLED' then horsies_error_result('TASK_CANCELLED',
            'The task was cancelled', json_build_object('task_id', task_id))
        when status = 'EXPIRED' then horsies_error_result('TASK_EXPIRED',
            'The deadline good_until passed before the task started', json_build_object('task_id', task_id))
        else horsies_error_result('RESULT_NOT_AVAILABLE', 'The task has stored no result', json_build_object('task_id', task_id))
    end;
end $$;
