"""Tools that are HTTP requests: the executor, its client and the outbound rules."""
