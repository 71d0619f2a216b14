"""Deterministic simulation for cores: virtual clocks, a TCP-like network, disks, stores and faults, all from one seed.

    world = Simulation(seed=7)
    relay = world.host("relay", "10.0.0.1")
    process = relay.start(lambda entropy: EchoCore(entropy), listen=[8767])
    peer = world.connect(world.host("phone", "10.0.0.2"), "10.0.0.1", 8767)
    peer.send(b"hello")
    assert peer.read_until(b"hello") == b"hello"

Child processes are scripts in `SimHost.programs`: see `runtimes.sim.child`.

The same seed and the same script give the same facts and commands to the byte (`Simulation.trace_digest`). There are
no threads, sockets or sleeps: an hour takes only the processor time of the cores. A violation of the contract of
`svc_proto.facts` and `svc_proto.commands`, by a core or by the simulator, raises `ContractError`.
"""
