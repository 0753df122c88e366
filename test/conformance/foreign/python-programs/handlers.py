"""An operator with every kind of kopf's handlers. Each call prints a line."""

import os

import kopf


def say(text):
    os.write(1, f"{text}\n".encode())


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.persistence.finalizer = "foreign.konverge.dev/kopf"
    settings.watching.server_timeout = 3
    settings.posting.level = 0
    say("startup")


@kopf.on.cleanup()
def end(**_):
    say("cleanup")


@kopf.index("configmaps", labels={"part": kopf.PRESENT})
def settings_of_part(name, body, **_):
    return {body["metadata"]["labels"]["part"]: name}


@kopf.on.resume("gadgets")
def resumed(name, **_):
    say(f"resume {name}")


@kopf.on.create("gadgets", id="made", backoff=0.1)
async def created(name, spec, retry, patch, settings_of_part, **_):
    say(f"create {name} try {retry} settings {sorted(settings_of_part.get(name, []))}")
    if spec.get("note") == "fail":
        raise kopf.PermanentError("the note says fail")
    if retry == 0:
        raise kopf.TemporaryError("once more", delay=0.2)
    if retry == 1:
        raise ValueError("any error is retried")
    patch.status["size"] = spec["size"]
    patch.metadata.labels["made"] = "yes"
    return {"by": "create"}


@kopf.on.update("gadgets", field="spec.size", old="s", new="m")
def resized(name, old, new, diff, **_):
    say(f"update {name} from {old} to {new} as {[list(one) for one in diff]}")


@kopf.on.field("gadgets", field="metadata.labels.tier")
def tier(name, old, new, **_):
    say(f"field {name} from {old} to {new}")


@kopf.on.update("gadgets", when=lambda spec, **_: spec.get("note") == "many")
async def split(name, **_):
    for number in range(3):
        @kopf.subhandler(id=f"sub-{number}")
        async def part(number=number, retry=0, **_):
            say(f"sub {name} {number} try {retry}")
            if number == 1 and retry == 0:
                raise kopf.TemporaryError("later", delay=0.1)


@kopf.on.delete("gadgets")
def deleted(name, retry, **_):
    say(f"delete {name} try {retry}")
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)


@kopf.timer("gadgets", interval=0.3, labels={"timer": "on"})
def tick(name, patch, status, **_):
    count = status.get("ticks", 0)
    if count < 3:
        say(f"timer {name} {count}")
        patch.status["ticks"] = count + 1


@kopf.daemon("gadgets", labels={"daemon": "on"}, cancellation_timeout=1)
async def stays(name, stopped, **_):
    say(f"daemon {name} begins")
    while not stopped:
        await stopped.wait(1)
    say(f"daemon {name} ends")


@kopf.on.event("configmaps", labels={"watched": "yes"})
def seen(type, name, **_):
    say(f"event {type} {name}")


@kopf.on.create("configmaps", annotations={"adopt": kopf.PRESENT})
def adopts(name, body, **_):
    kopf.info(body, reason="Adopted", message=f"{name} is watched")
    say(f"create {name}")
