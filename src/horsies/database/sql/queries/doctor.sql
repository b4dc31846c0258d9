-- What `horsies doctor` asks about the server and our tables; all of it only reads.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: old_snapshots
-- Sessions whose snapshot or transaction is so old that vacuum cannot remove what ended since.
select a.pid, coalesce(nullif(a.application_name, ''), '?') as application, coalesce(a.state, '?') as state,
    clock_timestamp() - coalesce(a.xact_start, a.backend_start) as age, left(a.query, 80) as last_query
from pg_stat_activity a
where a.pid <> pg_backend_pid() and (a.datname = current_database() or a.datname is null)
  and (a.backend_xmin is not null or a.backend_xid is not null or a.state like 'idle in transaction%%')
  and a.xact_start < clock_timestamp() - %(min_age)s and a.backend_type = 'client backend'
order by a.xact_start limit 20;

-- name: tables
select c.relname::text as name, s.n_live_tup as live_count, s.n_dead_tup as dead_count,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed_at, clock_timestamp() as read_at,
    coalesce('autovacuum_enabled=false' = any (c.reloptions) or 'autovacuum_enabled=off' = any (c.reloptions), false) as is_unvacuumed,
    has_table_privilege(c.oid, 'select') as may_read,
    has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete') as may_write
from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace and starts_with(c.relname, 'horsies_')
order by c.relname limit 100;

-- name: indexes
select i.relname::text as name, x.indisvalid as is_valid, pg_relation_size(i.oid) as byte_count, greatest(i.reltuples, 0)::double precision as row_count
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
where t.relnamespace = current_schema()::regnamespace and starts_with(t.relname, 'horsies_') order by i.relname limit 1000;

-- name: triggers
select g.tgname::text as name, g.tgenabled <> 'D' as is_enabled
from pg_trigger g join pg_class t on t.oid = g.tgrelid
where not g.tgisinternal and t.relnamespace = current_schema()::regnamespace and starts_with(t.relname, 'horsies_') limit 1000;

-- name: server
select pg_notification_queue_usage() as notify_usage, clock_timestamp() as database_time, pg_is_in_recovery() as is_replica,
    (select count(*) from pg_stat_activity a where a.backend_type = 'client backend') as connection_count,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as connection_limit,
    current_setting('autovacuum') = 'on' as has_autovacuum, current_setting('track_counts') = 'on' as has_counts,
    current_setting('fsync') = 'on' as has_fsync, current_setting('full_page_writes') = 'on' as has_page_writes,
    (select s.reset_val from pg_settings s where s.name = 'synchronous_commit') <> 'off' as has_sync_commit,
    (select s.reset_val::bigint from pg_settings s where s.name = 'idle_in_transaction_session_timeout') > 0 as has_idle_limit,
    current_user::text as role_name;

-- name: plan_as_claims_do
-- The planner settings of horsies_claim_tasks_v2, for this session.
select set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false), set_config('enable_sort', 'off', false);

-- name: claim_plan
explain select t.id from horsies_tasks t
where t.status = 'PENDING' and not t.is_held and t.queue_name = 'default' and t.priority = 100 and t.enqueued_at <= now()
order by t.enqueued_at, t.id limit 100 for update skip locked;

-- name: failing_duties
select d.name::text, d.failure, greatest(horsies_now() - d.taken_at, interval '0') as age from horsies_duties d
where d.failure is not null and isfinite(d.taken_at) order by d.name limit 100;
