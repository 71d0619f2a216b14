"""Speech providers: vendors over HTTP and WebSocket, local programs, and commands of the operator."""
