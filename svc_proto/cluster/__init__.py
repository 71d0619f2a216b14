"""Several nodes as one service, over a Redis or Valkey server that all of them reach.

The parts, from the lowest:

- `svc_proto.wire.resp` reads and writes RESP3.
- `redis_connection.RedisConnection` is one connection. It pipelines, receives subscriptions, and aborts when a reply is
  late. `sentinel.SentinelClient` finds the master, if Sentinels are set. `redis_client.RedisClient` reconnects.
- `node.Node` is this process as a node. Each node subscribes to one channel of all nodes and to one of its own, sends
  heartbeats twice a second, and numbers its broadcasts. A node that misses a number requests the sender's whole state.
  A node is lost when it sends `bye`, when its lease expires, or when its channel has no subscriber.
- `leases.LeaseManager` has locks with expiry, each with a fencing token for the writes that the lock permits.
- `forwarding.forward` passes a request to another node and returns its response, as a gateway does.
- `svc_proto.relay.cluster.coordinator` is the relay's use of this package. Its `local_coordinator` has the same
  interface for a single process.

Transient state (nodes, their phones, changes) travels in messages and is kept by the nodes only. Exclusive state
(pairing codes) is a Redis key with a time to live. Durable state is in the store. So an empty Redis loses nothing but
unused codes.

A process without `SVC_CLUSTER_URL` imports nothing of this package.
"""
