"""Import paths the contract promises: re-exports only; nothing of ours imports them."""
