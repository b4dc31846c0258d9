-- The schema's own bookkeeping, and notifications sent by code.

-- name: lock_schema
select pg_advisory_xact_lock(('x' || left(encode(sha256(convert_to(
    'horsies:schema:' || current_database() || ':' || %(schema)s, 'UTF8')), 'hex'), 16))::bit(64)::bigint);

-- name: current_schema
select current_schema();

-- name: has_version_table
select to_regclass(quote_ident(%(schema)s) || '.horsies_schema_version') is not null;

-- name: create_version_table
create table if not exists horsies_schema_version (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);

-- name: relations_of_others
-- What has the name of a table of ours and is none: another kind of relation, or a table without our columns.
select c.relname::text, case c.relkind when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view'
    when 'm' then 'materialized view' when 'f' then 'foreign table' when 'S' then 'sequence' else 'relation' end
from pg_class c
where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relname = any (%(names)s)
  and (c.relkind <> 'r' or c.relname = 'horsies_tasks' and not exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname = 'enqueue_sha'))
order by 1;

-- name: applied_versions
select v.version, v.name from horsies_schema_version v order by v.version;

-- name: record_version
insert into horsies_schema_version (version, name) values (%(version)s, %(name)s)
on conflict (version) do update set name = excluded.name, applied_at = now();

-- name: notify
select pg_notify(c.channel, c.payload)
from unnest(%(channels)s::text[], %(payloads)s::text[]) c(channel, payload)
where horsies_may_notify();

-- name: drop_functions
-- All of ours but the triggers' own: a changed signature or return type cannot be replaced in place.
do $$
declare
    known regprocedure;
begin
    for known in
        select p.oid from pg_proc p
        where p.pronamespace = quote_ident(current_schema())::regnamespace and starts_with(p.proname, 'horsies_')
          and p.prorettype <> 'trigger'::regtype
    loop
        execute format('drop routine %s', known);
    end loop;
end $$;

-- name: begin_without_limit
-- The client watches over this transaction instead, as long as rows come.
begin;
set local statement_timeout = 0;

-- name: set_savepoint
savepoint horsies_savepoint;

-- name: release_savepoint
release savepoint horsies_savepoint;

-- name: restore_savepoint
rollback to savepoint horsies_savepoint;

-- name: server_facts
select current_setting('server_version_num')::integer,
    pg_encoding_to_char((select d.encoding from pg_database d where d.datname = current_database())),
    current_setting('datestyle'), current_setting('intervalstyle'), current_setting('transaction_isolation'),
    current_setting('array_nulls');

-- name: missing_indexes
-- What a migration leaves out where the table is large, and what an interrupted build has left unfinished.
select w.name, w.definition from (values
    ('horsies_task_attempts_finished_at_brin', 'horsies_task_attempts using brin (finished_at)'),
    ('horsies_tasks_other_ids_idx', 'horsies_tasks ((overlay(lpad(to_hex(case when created_at > ''1970-01-01 00:00:00+00'' and created_at < ''9999-01-01 00:00:00+00'' then (extract(epoch from created_at at time zone ''UTC'') * 1000)::bigint else 0 end), 12, ''0'') placing ''-'' from 9 for 0) || ''-'' || id)) where id >= ''02'' or substr(id, 15, 1) <> ''7''')) w(name, definition)
where not exists (
    select from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where c.relname = w.name and n.nspname = %(schema)s and i.indisvalid);

-- name: limit_migration
-- A migration may take its time, also to wait for another one: only migrations queue up there.
set local statement_timeout = 0;
set local lock_timeout = '10s';

-- name: limit_locks
-- It hardly queues up for the tables: everyone behind it would wait as well.
set local lock_timeout = '300ms';

-- name: migration_holders
select distinct a.pid, a.application_name, coalesce(a.state, 'background'),
    to_char(coalesce(a.xact_start, a.state_change, a.backend_start), 'YYYY-MM-DD HH24:MI:SS'),
    case l.locktype when 'relation' then l.relation::regclass::text || ' (' || l.mode || ')' else 'the lock of another migration' end
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.granted and l.pid <> pg_backend_pid()
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
  and (l.locktype = 'relation' and l.relation in (
            select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname = %(schema)s and starts_with(c.relname, 'horsies_'))
       or l.locktype = 'advisory' and l.objsubid = 1 and (l.classid::bigint << 32) | l.objid::bigint =
            ('x' || left(encode(sha256(convert_to(
                'horsies:schema:' || current_database() || ':' || %(schema)s, 'UTF8')), 'hex'), 16))::bit(64)::bigint)
order by 1 limit 20;

-- name: drop_everything
-- All tables, views of theirs and functions of ours in the current schema, also those that a later release has made.
do $$
declare
    known record;
begin
    for known in
        select c.relname from pg_class c
        where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind = 'r' and starts_with(c.relname, 'horsies_')
    loop
        execute format('drop table if exists %I cascade', known.relname);
    end loop;
    for known in
        select p.oid::regprocedure as name from pg_proc p
        where p.pronamespace = quote_ident(current_schema())::regnamespace and starts_with(p.proname, 'horsies_')
    loop
        execute format('drop routine if exists %s cascade', known.name);
    end loop;
end $$;
