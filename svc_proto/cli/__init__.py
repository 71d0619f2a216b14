"""Logic of the command-line programs, without IO: commands of desktop and operator, health checks, supervision."""
