-- A host is known by its boot and pid namespace, not by its name; ids that would run out become bigint.

alter table horsies_worker_states add column if not exists host_key varchar(255);

alter table horsies_heartbeats alter column id type bigint;
alter sequence if exists horsies_heartbeats_id_seq as bigint;
alter table horsies_worker_states alter column id type bigint;
alter sequence if exists horsies_worker_states_id_seq as bigint;
