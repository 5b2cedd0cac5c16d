"""One server for a team: the HTTP port before engines that Ray Serve replicates."""
