-- horsies_join_verdict: whether a node may 'run', is to 'skip' or has to 'wait', by how many of its dependencies are still open
-- and how many are COMPLETED. The only place of the join rules (docs/contract/workflows.md, 5).
create or replace function horsies_join_verdict(
    join_type text, allow_failed_deps boolean, min_success integer, total integer, open_count integer, completed_count integer
) returns text
language sql immutable parallel safe as $$
    select case
        when total = 0 then 'run'
        when join_type = 'any' then
            case when completed_count >= 1 then 'run' when open_count <= 0 then 'skip' else 'wait' end
        when join_type = 'quorum' then
            case when completed_count >= min_success then 'run' when completed_count + open_count < min_success then 'skip' else 'wait' end
        when open_count > 0 then 'wait'
        when completed_count >= total or allow_failed_deps then 'run'
        else 'skip'
    end
$$;
