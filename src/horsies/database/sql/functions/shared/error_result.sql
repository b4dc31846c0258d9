-- horsies_error_result: the stored text of a TaskResult that carries a built-in error.
create or replace function horsies_error_result(code text, message text, data json) returns text
language sql immutable parallel safe as $$
    select json_build_object('__task_result__', true, 'ok', null, 'err', json_build_object(
        '__task_error__', true,
        'error_code', json_build_object('__builtin_task_code__', code),
        'message', message,
        'data', data))::text
$$;
