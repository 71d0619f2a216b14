"""What goes over the wires and into files, each said once: read and written side by side. Pure."""
