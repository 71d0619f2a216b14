"""Client programs: commands, reference phone, gateway, demonstration."""
