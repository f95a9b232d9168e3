"""What the black-box tests stand on: servers to start and kill, raw sockets, a proxy that breaks connections."""
