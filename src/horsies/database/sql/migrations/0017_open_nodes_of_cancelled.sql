-- Cancelled workflows in which a run has not ended: recovery finds them here, however many others have been cancelled before.
create index if not exists horsies_workflows_cancelled_open_idx on horsies_workflows (id) where status = 'CANCELLED' and open_nodes > 0;
