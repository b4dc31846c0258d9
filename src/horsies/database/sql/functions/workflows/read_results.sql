-- horsies_is_result: whether a text is a stored TaskResult.
create or replace function horsies_is_result(stored text) returns boolean
language plpgsql immutable
set search_path from current
as $$
begin
    return coalesce(horsies_json_member(stored, 'ok') is not null or horsies_json_member(stored, 'err') is not null, false);
end $$;

-- horsies_json: a text as JSON; null when it is none, or nested too deeply to be read.
create or replace function horsies_json(stored text) returns json
language plpgsql immutable
as $$
begin
    return stored::json;
exception when data_exception or invalid_text_representation or statement_too_complex then
    return null;
end $$;

-- horsies_json_member: the JSON text of one member of a stored JSON object; null when there is none, or it cannot be read
-- (horsies_json_text).
create or replace function horsies_json_member(stored text, member text) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    return (stored::json -> member)::text;
exception when data_exception or invalid_text_representation or statement_too_complex then
    begin
        return (horsies_without_odd_escapes(stored)::json -> member)::text;
    exception when data_exception or invalid_text_representation or statement_too_complex then
        return null;
    end;
end $$;

-- horsies_error_of: the TaskError of a stored TaskResult; null when it has none, or cannot be read. The envelope of a success is
-- known by its ends.
create or replace function horsies_error_of(stored text) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    if left(stored, 29) = '{"__task_result__":true,"ok":' and right(stored, 12) = ',"err":null}' then
        return null;
    end if;
    return nullif(horsies_json_member(stored, 'err'), 'null');
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
    return case when horsies_error_of(stored) is null then horsies_json_member(stored, 'ok') end;
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
