-- What advancing a workflow needs: edges in both directions, counts instead of searches, nodes that wait, and tasks that are held.

-- A task of a paused workflow is held: it leaves the claim index until the workflow goes on, so that no claim walks over it.
alter table horsies_tasks add column if not exists is_held boolean not null default false;
drop index if exists horsies_tasks_claim_idx;
create index horsies_tasks_claim_idx on horsies_tasks (queue_name, priority, enqueued_at, id) where status = 'PENDING' and not is_held;

alter table horsies_workflows add column if not exists open_nodes integer not null default 0;
alter table horsies_workflows add column if not exists max_in_flight integer;
alter table horsies_workflows add column if not exists next_index integer not null default 0;
alter table horsies_workflows add column if not exists in_flight integer not null default 0;

alter table horsies_workflow_tasks add column if not exists kind varchar(16) not null default 'task';
alter table horsies_workflow_tasks add column if not exists dependents integer[] not null default '{}';
alter table horsies_workflow_tasks add column if not exists open_dependencies integer not null default 0;
alter table horsies_workflow_tasks add column if not exists completed_dependencies integer not null default 0;
alter table horsies_workflow_tasks add column if not exists good_until timestamptz;
alter table horsies_workflow_tasks add column if not exists max_retries integer not null default 0;
alter table horsies_workflow_tasks add column if not exists settings jsonb;
alter table horsies_workflow_tasks add column if not exists wait_until timestamptz;
alter table horsies_workflow_tasks add column if not exists event_name varchar(255) collate "C";
alter table horsies_workflow_tasks add column if not exists event_key varchar(255) collate "C";
alter table horsies_workflow_tasks set (fillfactor = 70);

-- Nodes are found by their workflow and index, by their task or by their child; workflows by id, tree or age. The other indexes
-- of migration 0002 only cost.
drop index if exists horsies_workflow_tasks_workflow_idx;
drop index if exists horsies_workflow_tasks_node_id_idx;
drop index if exists horsies_workflow_tasks_status_idx;
drop index if exists horsies_workflow_tasks_task_id_idx;
drop index if exists horsies_workflow_tasks_sub_workflow_idx;
drop index if exists horsies_workflow_tasks_dependencies_idx;
drop index if exists horsies_workflows_status_idx;
drop index if exists horsies_workflows_parent_idx;
drop index if exists horsies_workflows_root_idx;
drop index if exists horsies_workflows_updated_at_idx;
create index if not exists horsies_workflow_tasks_task_id_idx on horsies_workflow_tasks (task_id) where task_id is not null;
create index if not exists horsies_workflow_tasks_sub_workflow_idx on horsies_workflow_tasks (sub_workflow_id) where sub_workflow_id is not null;
create index if not exists horsies_workflow_tasks_wait_idx on horsies_workflow_tasks (wait_until) where wait_until is not null and status = 'RUNNING';
create index if not exists horsies_workflow_tasks_event_idx on horsies_workflow_tasks (event_name, event_key) where event_name is not null and status = 'RUNNING';
create index if not exists horsies_workflow_tasks_ready_idx on horsies_workflow_tasks (id) where status = 'READY' and kind = 'sub_workflow';
create index if not exists horsies_workflows_parent_idx on horsies_workflows (parent_workflow_id) where parent_workflow_id is not null;
create index if not exists horsies_workflows_active_idx on horsies_workflows (status, id) where status in ('PENDING', 'RUNNING', 'PAUSED');
create index if not exists horsies_workflows_ended_idx on horsies_workflows ((coalesce(completed_at, updated_at, created_at)))
    where status in ('COMPLETED', 'FAILED', 'CANCELLED');

-- Events that nodes wait for; one that arrives early is kept. The last payload of a name and key counts.
create table if not exists horsies_events (
    name varchar(255) collate "C" not null,
    key varchar(255) collate "C" not null,
    payload text not null,
    is_new boolean not null default true,
    sent_at timestamptz not null default now(),
    primary key (name, key)
);
create index if not exists horsies_events_new_idx on horsies_events (sent_at) where is_new;
create index if not exists horsies_events_sent_at_idx on horsies_events (sent_at);

create trigger horsies_workflow_follow_trigger after update of status on horsies_workflows
    for each row when (new.status is distinct from old.status) execute function horsies_follow_workflow_status();
create trigger horsies_event_notify_trigger after insert or update of payload on horsies_events
    for each statement execute function horsies_notify_event();
