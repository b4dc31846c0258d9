-- horsies_node_result: what a terminal node hands on: its stored result, or an error that says why there is none.
create or replace function horsies_node_result(stored text, status text, node_id text, task_index integer) returns text
language plpgsql stable
set search_path from current
as $$
begin
    return coalesce(stored, case
        when status = 'SKIPPED' then horsies_error_result('UPSTREAM_SKIPPED',
            'The node ' || coalesce(node_id, task_index::text) || ' was skipped', json_build_object('dependency_index', task_index))
        else horsies_error_result('RESULT_NOT_AVAILABLE',
            'The node ' || coalesce(node_id, task_index::text) || ' has stored no result', null) end);
end $$;
