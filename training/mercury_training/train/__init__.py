"""The training run: schedule, loss, optimizer, checkpoints."""
