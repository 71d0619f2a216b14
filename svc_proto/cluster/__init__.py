"""Several nodes as one service, over a Redis or Valkey that all of them reach.

How it hangs together, from below:

- `svc_proto.wire.resp` reads and writes RESP3.
- `link.Link` is one connection, that pipelines, hears subscriptions, and drops itself when an answer is late;
  `sentinel.Sentinels` say where one is to be opened, if they were named; `redis.Redis` keeps one up.
- `node.Node` is who this process is among the others. Each subscribes to `svc:DB:all` and to `svc:DB:node:ID`, says
  that it lives twice a second, and numbers what it tells to all, so that who has missed something knows it and asks
  for the whole state. A node is gone when it says so, when its lease is over, or as soon as nobody hears its channel.
- `leases.Leases` are what one node at a time may do, with a fence for what it writes by right of that.
- `passing.pass_on` has another node answer a request, as a gateway does.
- What a service shares by it is the service's: `svc_proto.relay.cluster.coordinator` for the relay, in the place of
  `svc_proto.relay.cluster.local_coordinator`, which is the same for a process that is alone.

What passes (who is there, which phones they have, what changed) is told by messages and kept by nobody but the nodes.
What has to be agreed on (who may use a pairing code up) is a key of Redis with a time to live. What lasts is in the
store. So a Redis that comes back empty has lost nothing but codes that nobody had used.

Nothing of this is imported by a process that has no `SVC_CLUSTER_URL`.
"""
