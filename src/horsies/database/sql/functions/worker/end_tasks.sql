-- horsies_end_tasks: horsies_complete_tasks, horsies_fail_tasks and a permit for what comes next, in one transaction and one round trip.
-- Caller: worker/completer.py.  Locks: as those two in turn, then as horsies_grant_permit.
-- Committed, and only then told (decision 0015). Returns completed ones whose claim was lost; what became of the failed ones, as three arrays
-- in one order; and up to which numbers rows have been taken back.
create or replace procedure horsies_end_tasks(
    owner_id text,
    task_ids text[],
    claims timestamptz[],
    attempts integer[],
    results text[],
    fail_claims timestamptz[],
    fail_attempts integer[],
    fail_results text[],
    fail_error_codes text[],
    fail_error_messages text[],
    fail_failed_reasons text[],
    fail_outcomes text[],
    fail_retry_delays double precision[],
    permit jsonb,
    inout fail_task_ids text[],
    inout lost_ids text[],
    inout verdicts text[],
    inout retry_afters double precision[],
    inout voided bigint[]
)
language plpgsql
as $$
#variable_conflict use_variable
begin
    perform set_config('horsies.is_told_later', 'on', true);
    if task_ids <> '{}' then
        select array_agg(c.task_id) into lost_ids from horsies_complete_tasks(owner_id, task_ids, claims, attempts, results) c;
    end if;
    if fail_task_ids <> '{}' then
        select array_agg(f.task_id), array_agg(f.outcome), array_agg(f.retry_after) into fail_task_ids, verdicts, retry_afters
        from horsies_fail_tasks(owner_id, fail_task_ids, fail_claims, fail_attempts, fail_results, fail_error_codes,
            fail_error_messages, fail_failed_reasons, fail_outcomes, fail_retry_delays) f;
    end if;
    if permit <> 'null' then
        voided := horsies_grant_permit(owner_id, permit);
    end if;
    commit;
    begin
        perform horsies_tell_changed(task_ids || fail_task_ids, task_ids || array(
            select f.id from unnest(fail_task_ids, verdicts) f(id, verdict) where f.verdict not in ('retried', 'claim_lost')));
    exception when others then  -- a migration has just replaced it, say: what is committed must not be answered with an error
        null;
    end;
end $$;
