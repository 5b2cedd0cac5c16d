"""One server for a team: the HTTP face before engines that Ray Serve replicates."""
