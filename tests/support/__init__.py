"""Tools of the black-box tests: servers to start and kill, raw sockets, a proxy that breaks
connections."""
