"""A deterministic world to run cores in: virtual clocks, a TCP-like network, disks, stores, faults, all from one seed.

    world = World(seed=7)
    relay = world.host("relay", "10.0.0.1")
    process = relay.start(lambda entropy: EchoCore(entropy), listen=[8767])
    wire = world.connect(world.host("phone", "10.0.0.2"), "10.0.0.1", 8767)
    wire.send(b"hello")
    assert wire.read_until(b"hello") == b"hello"

Child processes are scripts in `SimHost.programs`: see `runtimes.sim.child`.

The same seed and the same script give the same facts and commands to the byte (`Simulation.trace_digest`). No thread,
no socket, no sleeping: an hour passes in the time that the cores need for it. What goes against the contract of
`svc_proto.facts` and `svc_proto.commands` raises `ContractError`, on whichever side it is.
"""
