-- What one worker does for all: who took it last, whether that went well, and when it is due again.
create table if not exists horsies_duties (
    name varchar(300) collate "C" primary key,
    taken_at timestamptz,
    taken_by varchar(255),
    due_at timestamptz,
    done_at timestamptz,
    failure text
);
-- The workflow definitions that a worker can build sub-workflows from.
alter table horsies_worker_states add column if not exists definition_keys varchar[];
