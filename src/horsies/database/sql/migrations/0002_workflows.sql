-- Workflow instances and their nodes.

create table if not exists horsies_workflows (
    id varchar(36) collate "C" primary key,
    name varchar(255) not null,
    status varchar(50) not null default 'PENDING',
    on_error varchar(50) not null default 'fail',
    output_task_index integer,
    success_policy jsonb,
    result text,
    error text,
    definition_key varchar(255),
    parent_workflow_id varchar(36) collate "C" references horsies_workflows (id) on delete cascade,
    parent_task_index integer,
    depth integer not null default 0,
    root_workflow_id varchar(36) collate "C",
    sent_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz,
    updated_at timestamptz not null default now()
);
create index if not exists horsies_workflows_status_idx on horsies_workflows (status);
create index if not exists horsies_workflows_parent_idx on horsies_workflows (parent_workflow_id);
create index if not exists horsies_workflows_root_idx on horsies_workflows (root_workflow_id);
create index if not exists horsies_workflows_updated_at_idx on horsies_workflows (updated_at);

create table if not exists horsies_workflow_tasks (
    id varchar(36) collate "C" primary key,
    workflow_id varchar(36) collate "C" not null references horsies_workflows (id) on delete cascade,
    task_index integer not null,
    node_id varchar(128),
    task_name varchar(255) not null,
    task_args text,
    task_kwargs text,
    queue_name varchar(100) not null default 'default',
    priority integer not null default 100,
    dependencies integer[] not null default '{}',
    args_from jsonb,
    workflow_ctx_from varchar(128)[],
    allow_failed_deps boolean not null default false,
    join_type varchar(10) not null default 'all',
    min_success integer,
    task_options text,
    status varchar(50) not null default 'PENDING',
    task_id varchar(36) collate "C",
    is_subworkflow boolean not null default false,
    sub_workflow_id varchar(36) collate "C" references horsies_workflows (id) on delete set null,
    sub_workflow_name varchar(255),
    sub_definition_key varchar(255),
    sub_workflow_summary text,
    result text,
    error text,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz,
    unique (workflow_id, task_index)
);
create index if not exists horsies_workflow_tasks_workflow_idx on horsies_workflow_tasks (workflow_id);
create index if not exists horsies_workflow_tasks_node_id_idx on horsies_workflow_tasks (node_id);
create index if not exists horsies_workflow_tasks_status_idx on horsies_workflow_tasks (status);
create index if not exists horsies_workflow_tasks_task_id_idx on horsies_workflow_tasks (task_id);
create index if not exists horsies_workflow_tasks_sub_workflow_idx on horsies_workflow_tasks (sub_workflow_id);
create index if not exists horsies_workflow_tasks_dependencies_idx on horsies_workflow_tasks using gin (dependencies);

create trigger horsies_workflow_notify_trigger after update on horsies_workflows
    for each row execute function horsies_notify_workflow_changes();
create trigger horsies_workflow_status_notify_trigger after insert or update on horsies_workflows
    for each row execute function horsies_notify_workflow_status_change();
