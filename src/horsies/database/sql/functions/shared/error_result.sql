-- horsies_task_error: the stored form of a TaskError with a built-in code.
create or replace function horsies_task_error(code text, message text, data json) returns json
language sql immutable parallel safe as $$
    select json_build_object(
        '__task_error__', true,
        'error_code', json_build_object('__builtin_task_code__', code),
        'message', message,
        'data', data)
$$;

-- horsies_error_result: the stored text of a TaskResult that carries an error.
create or replace function horsies_error_result(error json) returns text
language sql immutable parallel safe as $$
    select json_build_object('__task_result__', true, 'ok', null, 'err', error)::text
$$;

-- horsies_error_result: the same for a built-in error.
create or replace function horsies_error_result(code text, message text, data json) returns text
language sql immutable parallel safe as $$
    select json_build_object('__task_result__', true, 'ok', null, 'err', json_build_object(
        '__task_error__', true,
        'error_code', json_build_object('__builtin_task_code__', code),
        'message', message,
        'data', data))::text
$$;
