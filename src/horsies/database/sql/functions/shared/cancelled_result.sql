-- horsies_cancelled_result: what a task ends with that was not tried again because someone had asked for its end.
create or replace function horsies_cancelled_result(task_id text) returns text
language plpgsql stable
set search_path from current
as $$
begin
    return horsies_error_result('TASK_CANCELLED', 'The task was cancelled before it was tried again', json_build_object('task_id', task_id));
end $$;
