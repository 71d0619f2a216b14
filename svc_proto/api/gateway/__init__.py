"""JSON-RPC gateway of the API: live sessions and their turns over WebSockets."""
