-- horsies_claim_tasks_v2: PENDING -> RUNNING (claimed and started at once, T2 + T4) or PENDING -> CLAIMED (T2) for one worker.
-- Caller: worker/claimer.py.  Locks: the cluster claim lock, only under a cap; horsies_tasks, skipping locked rows.
-- queues, best first: [{"name", "cap", "marks"}]; horsies_scan_queues describes the marks.
-- lanes, one per execution kind: [{"starts", "free_slots", "ahead_from", "claims", "child_pids", "is_sparse", "only_names",
--   "except_names"}]. The first `starts` rows of a lane start at once, the next `claims` rows wait in the worker's buffer;
--   horsies_take_tasks describes what is taken ahead and the pids, horsies_scan_lane the rest.
-- limits: {"cluster_cap", "counts_claims", "batch_limit", "byte_limit", "counts"}. Under a soft cap (counts_claims false) waiting claims do not count.
--   A queue that gave batch_limit rows shuts out the queues after it; 0 is no limit. The row whose arguments reach byte_limit
--   is the last one. counts is what the last claim returned under this name, null on a full scan.
-- permit: what horsies_grant_permit takes, for a claim that may take tasks ahead; granted if there are tasks.
-- Queues that are paused at run time are left out, caps set at run time replace those of the worker: horsies_controlled_queues.
-- A full scan comes without marks and takes over claims whose lease has passed (T3).
-- Returns tasks with their position in the claim, in no order; before them, without id, how far lanes were scanned that had fewer
-- rows than asked for; and first, without queue, a row with may_have_more if the byte limit ended the claim, one with the counts
-- under caps, and one with what horsies_grant_permit returned.
create or replace function horsies_claim_tasks_v2(
    owner_id text,
    hostname text,
    own_pid integer,
    lease interval,
    queues jsonb,
    lanes jsonb,
    limits jsonb,
    is_full_scan boolean,
    permit jsonb
) returns table (
    id text, queue_name text, priority integer, lane integer, task_name text, args text, kwargs text, attempt integer,
    claim text, enqueued_at text, task_options text, is_workflow_task boolean, worker_pid integer, ahead_number bigint,
    "position" bigint, scanned_to_at text, scanned_to_id text, may_have_more boolean, counts text, voided bigint[]
)
language plpgsql
set search_path from current
-- Scans walk the claim index and stop at their limit; any other plan reads the whole backlog before its first row (decision 0003).
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set datestyle = 'ISO'  -- for marks
set timezone = 'UTC'
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    served jsonb := horsies_controlled_queues(queues);
    has_caps boolean := limits ->> 'cluster_cap' is not null or served @? '$[*].cap ? (@ != null)';
    scan record;
begin
    perform set_config('horsies.is_told_later', 'on', true);  -- by worker/claim_news.py
    if has_caps then
        perform pg_advisory_xact_lock(horsies_lock_key('claim'));
    end if;
    if is_full_scan then
        perform horsies_release_expired_claims(now_at);
    end if;

    scan := horsies_scan_queues(served, lanes, limits, now_at);
    if scan.is_cut_short then
        may_have_more := true;
        return next;
    end if;
    if has_caps and limits ? 'counts' then
        may_have_more := null;
        counts := scan.counts::text;
        return next;
        counts := null;
    end if;
    if permit <> 'null' and scan.task_ids <> '{}' then
        may_have_more := null;
        voided := horsies_grant_permit(owner_id, permit);
        return next;
        voided := null;
    end if;
    for p in 1..cardinality(scan.position_queues) loop
        queue_name := scan.position_queues[p];
        priority := scan.position_priorities[p];
        lane := scan.position_lanes[p];
        scanned_to_at := horsies_mark_text(scan.scanned_to_ats[p]);
        scanned_to_id := scan.scanned_to_ids[p];
        may_have_more := scan.scanned_to_ids[p] is not null;
        return next;
    end loop;
    if scan.task_ids <> '{}' then
        -- A later now: after the wait for the lock and the counts, so that recorded runs never seem to exceed a cap.
        return query select t.*, null::text, null::text, null::boolean, null::text, null::bigint[]
            from horsies_take_tasks(
                owner_id, hostname, own_pid, lease, lanes, scan.task_ids, scan.task_lanes, scan.task_places, horsies_now()) t;
    end if;
end $$;
