"""How an answer is drafted, verified and revised."""
