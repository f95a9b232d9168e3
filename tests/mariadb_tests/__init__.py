"""MariaDB's own tests, executed through Selkie's routers."""
