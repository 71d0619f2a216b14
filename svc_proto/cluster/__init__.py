"""Several nodes as one service, over a Redis or Valkey server that all of them reach.

The parts, from the lowest:

- `svc_proto.wire.resp` reads and writes RESP3.
- `redis_connection.RedisConnection` is one connection. It pipelines, receives subscriptions, and aborts when a reply is
  late. `sentinel.SentinelClient` finds the master, if Sentinels are set. `redis_client.RedisClient` reconnects.
- `node.Node` is this process as a node: heartbeats, and signed messages to one node or to all.
- `leases.LeaseManager` has locks with expiry, each with a fencing token for the writes that the lock permits.
- `semaphore.DistributedSemaphore` limits the slots in use at all nodes.
- `forwarding.forward` passes a request to another node and returns its response, as a gateway does.
"""
