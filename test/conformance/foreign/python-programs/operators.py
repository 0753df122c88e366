"""Scenarios with operators written with kopf."""

import time

from world import CLAIMS, PEERINGS, operator, until


def tutorial(world):
    with operator(world, "tutorial.py", "--standalone") as running:
        running.logged("Initial authentication has finished")
        world.create(CLAIMS, "EphemeralVolumeClaim", "mine", {"size": "1G"})
        until("created", lambda: world.read("mine", CLAIMS).get("status", {}).get("create_fn"))
        world.patch("mine", {"spec": {"size": "2G"}}, CLAIMS)
        claim = lambda: world.core.read_namespaced_persistent_volume_claim("mine", world.namespace)
        until("resized", lambda: (claim().metadata.annotations or {}).get("size") == "2G")
        world.patch("mine", {"metadata": {"labels": {"application-name": "some-app"}}}, CLAIMS)
        until("relabelled", lambda: claim().metadata.labels == {"application-name": "some-app"})
        stored = lambda: world.read("mine", CLAIMS)["metadata"]["annotations"]
        until("stored", lambda: "some-app" in stored()["kopf.zalando.org/last-handled-configuration"])
        world.show(world.read("mine", CLAIMS))
        world.show(claim())
        world.delete("mine", CLAIMS)
        until("deleted", lambda: world.read("mine", CLAIMS) is None)


def handlers(world):
    world.config_map("settings", {"a": "1"}, labels={"part": "one"})
    world.gadget("before", {"size": "s"})
    with operator(world, "handlers.py", "--standalone") as running:
        change_gadgets(world, running)
        running.stop()
        report(running)
    world.patch("before", {"metadata": {"labels": {"tier": "db"}}})
    with operator(world, "handlers.py", "--standalone") as running:
        running.has("resume before")
        running.has("field before from None to db")
        for name in ["before", "bad"]:
            world.delete(name)
            until(f"{name} is deleted", lambda name=name: world.read(name) is None)
        running.stop()
        report(running)
    events = world.core.list_namespaced_event(world.namespace).items
    for line in sorted({f"{one.type} {one.reason} {one.involved_object.kind} {one.message}" for one in events}):
        print(line)


def change_gadgets(world, running):
    running.has("create before try 2 settings []")
    world.gadget("one", {"size": "s"}, labels={"daemon": "on", "timer": "on"})
    running.has("create one try 2 settings ['settings']")
    until("status", lambda: world.read("one").get("status", {}).get("size") == "s")
    world.gadget("bad", {"size": "l", "note": "fail"})
    for line in ["create bad try 0 settings []", "timer one 2", "daemon one begins"]:
        running.has(line)
    until("three ticks", lambda: world.read("one")["status"].get("ticks") == 3)
    world.patch("one", {"spec": {"size": "m"}})
    running.has("update one from s to m as [['change', (), 's', 'm']]")
    world.patch("one", {"metadata": {"labels": {"tier": "web"}}})
    running.has("field one from None to web")
    world.patch("one", {"spec": {"note": "many"}})
    for line in ["sub one 2 try 0", "sub one 1 try 1"]:
        running.has(line)
    until("no progress is left", lambda: "kopf" not in world.read("one")["status"])
    world.config_map("watched", labels={"watched": "yes"}, annotations={"adopt": ""})
    running.has("create watched")
    # The operator ends its watches after three seconds, and continues from their last version.
    time.sleep(4)
    world.core.delete_namespaced_config_map("watched", world.namespace)
    running.has("event DELETED watched")
    for name in ["one", "before"]:
        world.show(world.read(name))
    world.delete("one")
    for line in ["delete one try 1", "daemon one ends"]:
        running.has(line)
    until("deleted", lambda: world.read("one") is None)


def peering(world):
    """The operator with the higher priority handles the objects; at its end, the other one continues."""
    world.create(PEERINGS, "KopfPeering", "pair")
    with operator(world, "handlers.py", "--peering", "pair", "--priority", "1") as low:
        world.gadget("first", {"size": "s"})
        low.has("create first try 2 settings []")
        with operator(world, "handlers.py", "--peering", "pair", "--priority", "2") as high:
            low.logged("Pausing operations in favour of")
            high.has("resume first")
            world.gadget("second", {"size": "s"})
            high.has("create second try 2 settings []")
            priorities = [peer["priority"] for peer in world.read("pair", PEERINGS)["status"].values()]
            print(f"priorities {sorted(priorities)}")
            high.stop()
            print("\n".join(line for line in high.lines if "second" in line))
        low.logged("Resuming operations after the pause")
        world.gadget("third", {"size": "s"})
        low.has("create third try 2 settings []")
        for name in ["first", "second", "third"]:
            world.delete(name)
            until(f"{name} is deleted", lambda name=name: world.read(name) is None)
        low.stop()
        print("\n".join(line for line in low.lines if "third" in line or "create second" in line))
    print(f"peers at the end: {world.read('pair', PEERINGS).get('status')}")


def report(running):
    for line in sorted(set(running.lines)):
        print(line)
